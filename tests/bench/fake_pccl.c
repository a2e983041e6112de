/* SPDX-License-Identifier: MIT
 *
 * A library with the functions of PCCL 1.0 that pccl-bench uses, and with faults. It opens no
 * connection, and each communicator is one of two peers. The variable BENCH_FAKE selects what an
 * all-reduce does:
 *	copy   gives each peer its own operand
 *	lost   fails every other time
 *	hang   does not return
 *	die    ends the process
 */
#include <pccl.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORLD 2

struct pcclComm_t {
	int calls;
};

struct pcclMasterInstanceState_t {
	int unused;
};

static struct pcclComm_t the_comm;
static struct pcclMasterInstanceState_t the_master;

#undef pcclInit /* pccl-bench looks for this name */
pcclResult_t pcclInit(void);
pcclResult_t pcclInit(void)
{
	return pcclSuccess;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out)
{
	(void)params;
	*comm_out = &the_comm;
	return pcclSuccess;
}

pcclResult_t pcclConnect(pcclComm_t *communicator)
{
	(void)communicator;
	return pcclSuccess;
}

pcclResult_t pcclUpdateTopology(pcclComm_t *communicator)
{
	(void)communicator;
	return pcclSuccess;
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator)
{
	(void)communicator;
	return pcclSuccess;
}

pcclResult_t pcclGetAttribute(
	const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out)
{
	(void)communicator;
	(void)attribute;
	*p_attribute_out = WORLD;
	return pcclSuccess;
}

static bool is_fault(const char *name)
{
	const char *fault = getenv("BENCH_FAKE");

	return fault && strcmp(fault, name) == 0;
}

/* Supports only floats. */
pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *reduce_info_out)
{
	(void)communicator;
	(void)reduce_info_out;
	if (is_fault("lost") && the_comm.calls++ % 2)
		return pcclRankConnectionLost;
	if (is_fault("die"))
		raise(SIGKILL);
	while (is_fault("hang"))
		pause();
	memcpy(recvbuff, sendbuff, descriptor->count * sizeof(float));
	return pcclSuccess;
}

pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out)
{
	*reduce_handle_out = (pcclAsyncReduceOp_t){.comm = &the_comm, .tag = descriptor->tag};
	return pcclAllReduce(sendbuff, recvbuff, descriptor, communicator, NULL);
}

pcclResult_t pcclAwaitAsyncReduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *reduce_info_out)
{
	(void)reduce_handle;
	(void)reduce_info_out;
	return pcclSuccess;
}

pcclResult_t pcclCreateMaster(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out)
{
	(void)listen_address;
	*p_master_handle_out = &the_master;
	return pcclSuccess;
}

pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance)
{
	(void)master_instance;
	return pcclSuccess;
}

pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance)
{
	(void)master_instance;
	for (;;)
		pause();
}
