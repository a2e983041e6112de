/* SPDX-License-Identifier: MIT
 *
 * pcclInit, which connects the parts of the library, and the functions that work before it.
 */
#include "libpccl-shim/buf.h"
#include "libpccl-shim/copier.h"
#include "libpccl-shim/fork.h"
#include "libpccl-shim/reconnector.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/registered.h"
#include "libpccl-shim/spawn.h"

pcclResult_t pcclInit(void)
{
	/* Each of these parts has state that belongs to one process. */
	static struct pccl_fork_handler handlers[] = {{.child = pccl_lib_after_fork},
		{.child = pccl_spawn_after_fork}, {.child = pccl_registered_after_fork},
		{.child = pccl_copier_after_fork}, {.child = pccl_buf_after_fork},
		{.child = pccl_reconnector_after_fork}};
	pcclResult_t r = pccl_fork_prepare();

	if (r != pcclSuccess)
		return r;
	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
		pccl_fork_handle(&handlers[i]);
	pccl_lib_set_ready();
	return pccl_ok();
}

pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info)
{
	if (!info)
		return pccl_fail(pcclInvalidArgument, "info must not be NULL");
	info->has_cuda_support = pccl_buf_of_device(pcclDeviceCuda) != NULL;
	return pccl_ok();
}

const char *pcclGetVersion(void)
{
	return PACKAGE_VERSION;
}
