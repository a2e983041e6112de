/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/offer.h"

#include <stdlib.h>

struct pccl_offer {
	uint32_t comm;
	struct pccl_map map;
	struct pccl_offer *next;
};

bool pccl_offers_add(struct pccl_offers *o, const struct wl_reply *offer, int fd)
{
	struct pccl_offer *x;

	if (o->n == PCCL_OFFERS_MAX)
		return false;
	x = calloc(1, sizeof *x);
	if (!x || pccl_map_fd(fd, offer->region, offer->size, false, &x->map) != pcclSuccess) {
		free(x);
		return true;
	}
	x->comm = offer->comm;
	x->next = o->first;
	o->first = x;
	o->n++;
	return true;
}

static struct pccl_map unlink_offer(struct pccl_offers *o, struct pccl_offer **p)
{
	struct pccl_offer *x = *p;
	struct pccl_map m = x->map;

	*p = x->next;
	o->n--;
	free(x);
	return m;
}

bool pccl_offers_take(struct pccl_offers *o, uint32_t comm, uint64_t region, struct pccl_map *ret)
{
	for (struct pccl_offer **p = &o->first; *p; p = &(*p)->next) {
		if ((*p)->comm != comm || (*p)->map.region != region)
			continue;
		*ret = unlink_offer(o, p);
		return true;
	}
	return false;
}

void pccl_offers_drop(struct pccl_offers *o, uint32_t comm)
{
	struct pccl_offer **p = &o->first;

	while (*p) {
		struct pccl_map m;

		if ((*p)->comm != comm) {
			p = &(*p)->next;
			continue;
		}
		m = unlink_offer(o, p);
		pccl_map_drop(&m);
	}
}

void pccl_offers_free(struct pccl_offers *o)
{
	while (o->first) {
		struct pccl_map m = unlink_offer(o, &o->first);

		pccl_map_drop(&m);
	}
}
