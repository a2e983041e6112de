/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/handed.h"

#include <stdlib.h>

struct pccl_handed {
	uint32_t comm;
	struct pccl_map map;
	struct pccl_handed *next;
};

bool pccl_handed_add(struct pccl_handed_list *o, const struct wl_reply *handed, int fd)
{
	struct pccl_handed *x;

	if (o->n == PCCL_HANDED_MAX)
		return false;
	x = calloc(1, sizeof *x);
	if (!x || pccl_map_fd(fd, handed->region, handed->size, false, &x->map) != pcclSuccess) {
		free(x);
		return true;
	}
	x->comm = handed->comm;
	x->next = o->first;
	o->first = x;
	o->n++;
	return true;
}

static struct pccl_map unlink_handed(struct pccl_handed_list *o, struct pccl_handed **p)
{
	struct pccl_handed *x = *p;
	struct pccl_map m = x->map;

	*p = x->next;
	o->n--;
	free(x);
	return m;
}

bool pccl_handed_take(
	struct pccl_handed_list *o, uint32_t comm, uint64_t region, struct pccl_map *ret)
{
	for (struct pccl_handed **p = &o->first; *p; p = &(*p)->next) {
		if ((*p)->comm != comm || (*p)->map.region != region)
			continue;
		*ret = unlink_handed(o, p);
		return true;
	}
	return false;
}

void pccl_handed_drop(struct pccl_handed_list *o, uint32_t comm)
{
	struct pccl_handed **p = &o->first;

	while (*p) {
		struct pccl_map m;

		if ((*p)->comm != comm) {
			p = &(*p)->next;
			continue;
		}
		m = unlink_handed(o, p);
		pccl_map_drop(&m);
	}
}

void pccl_handed_free(struct pccl_handed_list *o)
{
	while (o->first) {
		struct pccl_map m = unlink_handed(o, &o->first);

		pccl_map_drop(&m);
	}
}
