/* SPDX-License-Identifier: MIT */
#include "pccl-bench/api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_err.h"

static const struct bch_api linked = {
	.init = pcclInit,
	.create = pcclCreateCommunicator,
	.connect = pcclConnect,
	.update = pcclUpdateTopology,
	.attribute = pcclGetAttribute,
	.reduce = pcclAllReduce,
	.reduce_async = pcclAllReduceAsync,
	.await_reduce = pcclAwaitAsyncReduce,
	.destroy = pcclDestroyCommunicator,
	.create_master = pcclCreateMaster,
	.run_master = pcclRunMaster,
	.await_master = pcclMasterAwaitTermination,
	.optimize = pcclOptimizeTopology,
	.mem_alloc = pcclMemAlloc,
	.mem_free = pcclMemFree,
	.output_policy = pcclSetOutputPolicy,
	.last_error = pcclGetLastError,
};

static const struct {
	const char *name;
	size_t off;
} wanted[] = {
	{"pcclInit", offsetof(struct bch_api, init)},
	{"pcclCreateCommunicator", offsetof(struct bch_api, create)},
	{"pcclConnect", offsetof(struct bch_api, connect)},
	{"pcclUpdateTopology", offsetof(struct bch_api, update)},
	{"pcclGetAttribute", offsetof(struct bch_api, attribute)},
	{"pcclAllReduce", offsetof(struct bch_api, reduce)},
	{"pcclAllReduceAsync", offsetof(struct bch_api, reduce_async)},
	{"pcclAwaitAsyncReduce", offsetof(struct bch_api, await_reduce)},
	{"pcclDestroyCommunicator", offsetof(struct bch_api, destroy)},
	{"pcclCreateMaster", offsetof(struct bch_api, create_master)},
	{"pcclRunMaster", offsetof(struct bch_api, run_master)},
	{"pcclMasterAwaitTermination", offsetof(struct bch_api, await_master)},
};

int bch_api_load(struct bch_api *ret, const char *path, char why[BCH_WHY_SIZE])
{
	struct bch_api api = {0};
	void *lib, *symbol;

	if (!path) {
		*ret = linked;
		return 0;
	}
	/* RTLD_DEEPBIND: calls inside that library must not reach the linked library. */
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!lib) {
		snprintf(why, BCH_WHY_SIZE, "%s", dlerror());
		return CC_ERR_NOENT;
	}
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		symbol = dlsym(lib, wanted[i].name);
		if (!symbol) {
			snprintf(why, BCH_WHY_SIZE, "%s has no function %s", path, wanted[i].name);
			dlclose(lib);
			return CC_ERR_NOENT;
		}
		memcpy((char *)&api + wanted[i].off, &symbol, sizeof symbol);
	}
	*ret = api;
	return 0;
}
