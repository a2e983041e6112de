/* SPDX-License-Identifier: MIT
 *
 * The library that is measured: the library that this program is linked with, or another library
 * with the functions of PCCL 1.0.
 */
#ifndef BCH_API_H
#define BCH_API_H

#include <pccl.h>

struct bch_api {
	__typeof__(pcclInit) *init;
	__typeof__(pcclCreateCommunicator) *create;
	__typeof__(pcclConnect) *connect;
	__typeof__(pcclUpdateTopology) *update;
	__typeof__(pcclGetAttribute) *attribute;
	__typeof__(pcclAllReduce) *reduce;
	__typeof__(pcclAllReduceAsync) *reduce_async;
	__typeof__(pcclAwaitAsyncReduce) *await_reduce;
	__typeof__(pcclDestroyCommunicator) *destroy;
	/* These three functions are called only if another library is measured, by the process that
	 * runs the master of that library. */
	__typeof__(pcclCreateMaster) *create_master;
	__typeof__(pcclRunMaster) *run_master;
	__typeof__(pcclMasterAwaitTermination) *await_master;
	/* NULL with another library: the one below, and extensions of this library. */
	__typeof__(pcclOptimizeTopology) *optimize;
	__typeof__(pcclMemAlloc) *mem_alloc;
	__typeof__(pcclMemFree) *mem_free;
	__typeof__(pcclSetOutputPolicy) *output_policy;
	__typeof__(pcclGetLastError) *last_error;
};

#define BCH_WHY_SIZE 256

/* Loads a library. path NULL: the linked one. Returns 0, or CC_ERR_NOENT and the reason in `why`.
 * The library stays loaded. */
int bch_api_load(struct bch_api *ret, const char *path, char why[BCH_WHY_SIZE]);

#endif
