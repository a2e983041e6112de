/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/lib.h"

#include <stdatomic.h>

enum { NOT_READY = 0, READY = 1, FORKED = 2 };

static _Atomic int state;

void pccl_lib_set_ready(void)
{
	atomic_store(&state, READY);
}

void pccl_lib_after_fork(void)
{
	if (atomic_load(&state) == READY)
		atomic_store(&state, FORKED);
}

pcclResult_t pccl_lib_check(void)
{
	switch (atomic_load(&state)) {
	case READY:
		return pcclSuccess;
	case FORKED:
		return pccl_fail(pcclInvalidUsage,
			"this process was made by fork() and may not use its "
			"parent's objects: call pcclInit and create its own");
	default:
		return pccl_fail(pcclNotInitialized, "call pcclInit first");
	}
}
