/* SPDX-License-Identifier: MIT
 *
 * Result regions. A transfer gets one for its partial sums and results (or the undo copies); the
 * shims of its members map it and copy out of it, also after the operation has completed. So a
 * region is reused only when every slot that it was for has been taken back by its shim, and only
 * for transfers that all processes which have it mapped are part of. A shim whose session ended
 * meanwhile may still be reading: such a region is left to it and never used again.
 *
 * Sizes are rounded up to powers of two, which costs addresses, not memory: pages are there once
 * touched, and what is charged is the largest part ever used.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "pcclagentd/io.h"

#define SIZE_CLASS_MIN ((uint64_t)64 << 10)
#define IDLE_NS        MS(5000)

static uint64_t size_class(uint64_t need)
{
	uint64_t c = SIZE_CLASS_MIN;

	while (c < need)
		c *= 2;
	return c;
}

static void release_holders(struct result *res)
{
	for (uint32_t i = 0; i < res->n_holders; i++)
		comm_unref(res->holders[i].comm);
	res->n_holders = 0;
}

static void destroy(struct agentd *d, struct result *res)
{
	DL_DELETE(d->results, res);
	release_holders(res);
	region_drop_result(d, res->region, !res->abandoned);
	free(res->holders);
	free(res->mappers);
	free(res);
}

/* HELD -> IDLE when all shims are done with it. */
static void settle(struct result *res, uint64_t now)
{
	if (res->state != RESULT_HELD)
		return;
	for (uint32_t i = 0; i < res->n_holders; i++) {
		if (comm_holds(&res->holders[i]))
			return;
		if (res->holders[i].comm->closed)
			res->abandoned = true;
	}
	release_holders(res);
	res->state = RESULT_IDLE;
	res->idle_since_ns = now;
}

static bool is_member(const struct xfer *x, uint32_t comm)
{
	for (uint32_t i = 0; i < x->n_members; i++)
		if (x->members[i].h.comm->id == comm)
			return true;
	return false;
}

static bool fits(const struct result *res, uint32_t group, uint64_t cls, const struct xfer *x)
{
	if (res->state != RESULT_IDLE || res->abandoned || res->run != x->run->id ||
		res->group != group || res->size_class != cls ||
		res->region->uid != x->members[0].h.comm->uid)
		return false;
	for (uint32_t i = 0; i < res->n_mappers; i++)
		if (!is_member(x, res->mappers[i]))
			return false;
	return true;
}

/* The one used last is the one whose pages are in the caches. */
static struct result *find_idle(
	struct agentd *d, uint32_t group, uint64_t cls, const struct xfer *x)
{
	struct result *res, *best = NULL;
	uint64_t now = cc_now_ns();

	DL_FOREACH (d->results, res) {
		settle(res, now);
		if (fits(res, group, cls, x) &&
			(!best || res->idle_since_ns >= best->idle_since_ns))
			best = res;
	}
	return best;
}

/* True when something was given back. */
static bool drop_idle(struct agentd *d)
{
	struct result *res, *tmp;
	bool any = false;

	DL_FOREACH_SAFE (d->results, res, tmp) {
		if (res->state != RESULT_IDLE)
			continue;
		destroy(d, res);
		any = true;
	}
	return any;
}

static uint32_t make(struct agentd *d, uint32_t group, uint64_t need, const struct xfer *x,
	struct result **ret, char *text)
{
	struct result *res = calloc(1, sizeof *res);
	uint32_t uid = x->members[0].h.comm->uid;
	uint32_t code;

	if (!res)
		agentd_out_of_memory("result regions");
	res->run = x->run->id;
	res->group = group;
	res->size_class = size_class(need);
	code = region_new_result(d, uid, res->size_class, need, &res->region, text);
	if (code != WIRE_SUCCESS && drop_idle(d))
		code = region_new_result(d, uid, res->size_class, need, &res->region, text);
	if (code != WIRE_SUCCESS) {
		free(res);
		return code;
	}
	DL_APPEND(d->results, res);
	*ret = res;
	return WIRE_SUCCESS;
}

/* Whoever has it mapped is a member of what it is used for next: as much room will do. */
static void make_room(struct result *res, uint32_t members)
{
	if (members <= res->cap_members)
		return;
	res->holders = realloc(res->holders, members * sizeof *res->holders);
	res->mappers = realloc(res->mappers, members * sizeof *res->mappers);
	if (!res->holders || !res->mappers)
		agentd_out_of_memory("result regions");
	res->cap_members = members;
}

uint32_t result_take(struct agentd *d, uint32_t group, uint64_t need, const struct xfer *x,
	struct result **ret, char *text)
{
	struct result *res = find_idle(d, group, size_class(need), x);
	uint32_t code = WIRE_SUCCESS;

	if (!res || region_charge(d, res->region, need, text) != WIRE_SUCCESS)
		code = make(d, group, need, x, &res, text);
	if (code != WIRE_SUCCESS)
		return code;
	make_room(res, x->n_members);
	res->state = RESULT_BUSY;
	res->n_holders = x->n_members;
	for (uint32_t i = 0; i < x->n_members; i++) {
		res->holders[i] = x->members[i].h;
		res->holders[i].comm->refs++;
	}
	*ret = res;
	return WIRE_SUCCESS;
}

void result_give_back(struct result *res)
{
	res->state = RESULT_HELD;
	settle(res, cc_now_ns());
}

struct result *result_find(struct agentd *d, uint32_t session, uint32_t comm, uint64_t region)
{
	struct result *res;

	DL_FOREACH (d->results, res) {
		if (res->region->id != region)
			continue;
		for (uint32_t i = 0; i < res->n_holders; i++)
			if (res->holders[i].comm->session == session &&
				res->holders[i].comm->id == comm)
				return res;
	}
	return NULL;
}

bool result_is_mapped(const struct result *res, uint32_t comm)
{
	for (uint32_t i = 0; i < res->n_mappers; i++)
		if (res->mappers[i] == comm)
			return true;
	return false;
}

bool result_add_mapper(struct result *res, uint32_t comm)
{
	if (result_is_mapped(res, comm))
		return true;
	if (res->n_mappers == res->cap_members)
		return false;
	res->mappers[res->n_mappers++] = comm;
	return true;
}

void result_offer(struct agentd *d, struct result *res, const struct xfer *x)
{
	struct wl_reply r = {.region = res->region->id, .size = res->region->size};
	int fd = -1;

	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct comm *c = x->members[i].h.comm;

		if (result_is_mapped(res, c->id))
			continue;
		if (fd < 0)
			fd = cc_shm_read_only(res->region->fd);
		r.comm = c->id;
		/* Whoever does not get it asks for it. */
		if (fd >= 0 && session_offer(d, c->session, &r, fd) == 0)
			result_add_mapper(res, c->id);
	}
	if (fd >= 0)
		close(fd);
}

void result_comm_closed(struct agentd *d, const struct comm *c)
{
	struct result *res;

	DL_FOREACH (d->results, res) {
		if (result_is_mapped(res, c->id))
			res->abandoned = true;
	}
}

void result_tick(struct agentd *d, uint64_t now)
{
	struct result *res, *tmp;

	DL_FOREACH_SAFE (d->results, res, tmp) {
		settle(res, now);
		if (res->state == RESULT_IDLE &&
			(res->abandoned || now - res->idle_since_ns > IDLE_NS))
			destroy(d, res);
	}
}

/* At the end of the process: shims that still read keep what they have mapped. */
void result_free_all(struct agentd *d)
{
	struct result *res, *tmp;

	DL_FOREACH_SAFE (d->results, res, tmp) {
		res->abandoned = true;
		destroy(d, res);
	}
}
