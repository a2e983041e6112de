/* SPDX-License-Identifier: MIT
 *
 * Gives the public functions other names inside the library. entry.c defines the functions with the
 * public names and translates the codes that callers of PCCL 1.0 do not know. To be included before
 * pccl.h.
 */
#ifndef PCCL_SHIM_INNER_H
#define PCCL_SHIM_INNER_H

#define PCCL_1_0_CODES /* pccl.h must not rename pcclInit */

#define pcclInit                       pccl_inner_init
#define pcclGetBuildInfo               pccl_inner_get_build_info
#define pcclMemAlloc                   pccl_inner_mem_alloc
#define pcclMemFree                    pccl_inner_mem_free
#define pcclCreateCommunicator         pccl_inner_create_communicator
#define pcclDestroyCommunicator        pccl_inner_destroy_communicator
#define pcclConnect                    pccl_inner_connect
#define pcclInterrupt                  pccl_inner_interrupt
#define pcclSetOutputPolicy            pccl_inner_set_output_policy
#define pcclSetStream                  pccl_inner_set_stream
#define pcclSetErrorFeedback           pccl_inner_set_error_feedback
#define pcclGetAttribute               pccl_inner_get_attribute
#define pcclUpdateTopology             pccl_inner_update_topology
#define pcclArePeersPending            pccl_inner_are_peers_pending
#define pcclAreNewPeersPending         pccl_inner_are_new_peers_pending
#define pcclOptimizeTopology           pccl_inner_optimize_topology
#define pcclAllReduce                  pccl_inner_all_reduce
#define pcclAllReduceAsync             pccl_inner_all_reduce_async
#define pcclAwaitAsyncReduce           pccl_inner_await_async_reduce
#define pcclAllReduceMultipleWithRetry pccl_inner_all_reduce_multiple_with_retry
#define pcclSynchronizeSharedState     pccl_inner_synchronize_shared_state
#define pcclCreateMaster               pccl_inner_create_master
#define pcclRunMaster                  pccl_inner_run_master
#define pcclInterruptMaster            pccl_inner_interrupt_master
#define pcclMasterAwaitTermination     pccl_inner_master_await_termination
#define pcclDestroyMaster              pccl_inner_destroy_master

#endif
