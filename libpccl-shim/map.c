/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_shm.h"

pcclResult_t pccl_map_fd(
	int fd, uint64_t region, uint64_t size, bool inherited, struct pccl_map *ret)
{
	char limit[CC_LIMIT_TEXT];
	void *base;
	int err;

	if (size > SIZE_MAX / 2)
		return pccl_fail(pcclInternalError, "the agent names an impossible size");
	err = cc_shm_map(fd, (size_t)size, &base);
	if (err == CC_ERR_NOMEM)
		return pccl_fail(pcclOutOfMemory, "no address space for %zu bytes: %s",
			(size_t)size, cc_limit_call_text("mmap", errno, size, limit, sizeof limit));
	if (err < 0)
		return pccl_fail(pcclInternalError,
			"the agent handed out memory that cannot be mapped: %s", cc_err_str(err));
	if (!inherited)
		madvise(base, (size_t)size, MADV_DONTFORK);
	*ret = (struct pccl_map){.region = region, .base = base, .size = (size_t)size};
	return pcclSuccess;
}

void pccl_map_drop(struct pccl_map *m)
{
	if (!m->unpin || m->unpin(m->base))
		cc_shm_unmap(m->base, m->size);
	memset(m, 0, sizeof *m);
}
