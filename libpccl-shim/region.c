/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/region.h"

#include <unistd.h>

#include "libpccl-shim/session.h"

pcclResult_t pccl_region_alloc(struct pccl_session *s, uint64_t size, enum wl_region_use use,
	struct pccl_map *ret, int *ret_fd)
{
	struct wl_request request = {.type = WL_REGION_ALLOC, .size = size, .use = use};
	struct wl_request give_back = {.type = WL_REGION_FREE};
	struct pccl_map m = {0};
	struct wl_reply reply;
	pcclResult_t r;
	int fd;

	r = pccl_session_call(s, &request, &reply, &fd, 1);
	if (r != pcclSuccess)
		return r;
	r = pccl_map_fd(fd, reply.region, size, use == WL_REGION_REGISTERED, &m);
	if (r != pcclSuccess || !ret_fd)
		close(fd);
	if (r != pcclSuccess) {
		char text[PCCL_TEXT_MAX];

		/* Keep the sentence about the mapping. */
		pccl_fail_text(text);
		give_back.region = reply.region;
		(void)pccl_session_post(s, &give_back);
		return pccl_fail(r, "%s", text);
	}
	if (ret_fd)
		*ret_fd = fd;
	*ret = m;
	return pcclSuccess;
}

pcclResult_t pccl_region_named(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret)
{
	struct wl_request request = {.type = WL_REGION_MAP, .comm = comm, .region = region};
	struct wl_reply reply;
	pcclResult_t r;
	int fd;

	r = pccl_session_call(s, &request, &reply, &fd, 1);
	if (r != pcclSuccess)
		return r;
	r = pccl_map_fd(fd, region, reply.size, false, ret);
	close(fd);
	return r;
}

void pccl_region_free(struct pccl_session *s, struct pccl_map *m)
{
	struct wl_request request = {.type = WL_REGION_FREE, .region = m->region};

	(void)pccl_session_post(s, &request);
	pccl_map_drop(m);
}
