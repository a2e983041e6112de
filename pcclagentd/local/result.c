/* SPDX-License-Identifier: MIT
 *
 * Result regions. A transfer gets a region for its partial sums and results, or for the undo
 * copies. The shims of its members map the region and copy out of it, also after the operation has
 * completed. So a region is reused only when the shims have taken back every slot whose operation
 * used it, and only for transfers whose members include all processes that have the region mapped.
 * A shim whose session has ended may still read the region: then the region is left to the shim and
 * never used again.
 *
 * Sizes are rounded up to powers of two. This costs addresses, not memory, because a page exists
 * only after it was touched. The largest part that was ever used is charged.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "pcclagentd/local/loc_internal.h"

#define SIZE_CLASS_MIN ((uint64_t)64 << 10)
#define IDLE_NS        BASE_MS(5000)

static uint64_t size_class(uint64_t need)
{
	uint64_t c = SIZE_CLASS_MIN;

	while (c < need)
		c *= 2;
	return c;
}

static void release_readers(struct loc_result *res)
{
	for (uint32_t i = 0; i < res->n_readers; i++)
		loc_comm_unref(res->readers[i].comm);
	res->n_readers = 0;
}

static void destroy(struct loc *loc, struct loc_result *res)
{
	DL_DELETE(loc->results, res);
	release_readers(res);
	loc_region_drop_result(loc, res->region, !res->abandoned);
	free(res->readers);
	free(res->mappers);
	free(res);
}

/* Changes the state from IN_USE to IDLE if all shims have finished with the region. */
static void settle(struct loc_result *res, uint64_t now)
{
	if (res->state != RESULT_IN_USE)
		return;
	for (uint32_t i = 0; i < res->n_readers; i++) {
		if (loc_comm_holds(&res->readers[i]))
			return;
		if (res->readers[i].comm->closed)
			res->abandoned = true;
	}
	release_readers(res);
	res->state = RESULT_IDLE;
	res->idle_since_ns = now;
}

static bool is_member(const struct loc_member *members, uint32_t n, uint32_t comm)
{
	for (uint32_t i = 0; i < n; i++)
		if (members[i].h.comm->id == comm)
			return true;
	return false;
}

/* The operation for which a region is wanted. */
struct want {
	const struct loc_group *group;
	uint64_t bytes;
	const struct loc_member *members;
	uint32_t n;
};

static bool fits(const struct loc_result *res, const struct want *w)
{
	if (res->state != RESULT_IDLE || res->abandoned || res->group.run != w->group->run ||
		res->group.group != w->group->group || res->size_class != size_class(w->bytes) ||
		res->region->uid != w->members[0].h.comm->uid)
		return false;
	for (uint32_t i = 0; i < res->n_mappers; i++)
		if (!is_member(w->members, w->n, res->mappers[i]))
			return false;
	return true;
}

/* Returns the idle region that fits and was used last, because its pages are probably in the
 * caches; or NULL. */
static struct loc_result *find_idle(struct loc *loc, const struct want *w)
{
	struct loc_result *res, *best = NULL;
	uint64_t now = cc_now_ns();

	DL_FOREACH (loc->results, res) {
		settle(res, now);
		if (fits(res, w) && (!best || res->idle_since_ns >= best->idle_since_ns))
			best = res;
	}
	return best;
}

/* Frees all idle regions. False: there was none. */
static bool drop_idle(struct loc *loc)
{
	struct loc_result *res, *tmp;
	bool any = false;

	DL_FOREACH_SAFE (loc->results, res, tmp) {
		if (res->state != RESULT_IDLE)
			continue;
		destroy(loc, res);
		any = true;
	}
	return any;
}

static uint32_t make(struct loc *loc, const struct want *w, struct loc_result **ret, char *text)
{
	struct loc_result *res = calloc(1, sizeof *res);
	uint32_t uid = w->members[0].h.comm->uid;
	uint32_t code;

	if (!res)
		rep_out_of_memory("result regions");
	res->loc = loc;
	res->group = *w->group;
	res->size_class = size_class(w->bytes);
	code = loc_region_new_result(loc, uid, res->size_class, w->bytes, &res->region, text);
	if (code != WIRE_SUCCESS && drop_idle(loc))
		code = loc_region_new_result(
			loc, uid, res->size_class, w->bytes, &res->region, text);
	if (code != WIRE_SUCCESS) {
		free(res);
		return code;
	}
	DL_APPEND(loc->results, res);
	*ret = res;
	return WIRE_SUCCESS;
}

/* Makes room for this many readers and mappers. Every process that has the region mapped is a
 * member of its next operation, so mappers need no more room than readers. */
static void make_room(struct loc_result *res, uint32_t members)
{
	if (members <= res->cap_members)
		return;
	res->readers = realloc(res->readers, members * sizeof *res->readers);
	res->mappers = realloc(res->mappers, members * sizeof *res->mappers);
	if (!res->readers || !res->mappers)
		rep_out_of_memory("result regions");
	res->cap_members = members;
}

uint32_t loc_result_take(struct loc *loc, const struct loc_group *group, uint64_t need,
	const struct loc_member *members, uint32_t n, struct loc_result **ret, char *text)
{
	struct want w = {group, need, members, n};
	struct loc_result *res = find_idle(loc, &w);
	uint32_t code = WIRE_SUCCESS;

	if (!res || loc_region_charge(loc, res->region, need, text) != WIRE_SUCCESS)
		code = make(loc, &w, &res, text);
	if (code != WIRE_SUCCESS)
		return code;
	make_room(res, n);
	res->state = RESULT_BUSY;
	res->n_readers = n;
	for (uint32_t i = 0; i < n; i++) {
		res->readers[i] = members[i].h;
		res->readers[i].comm->refs++;
	}
	*ret = res;
	return WIRE_SUCCESS;
}

void loc_result_give_back(struct loc_result *res)
{
	res->state = RESULT_IN_USE;
	settle(res, cc_now_ns());
}

struct loc_result *loc_result_find(
	struct loc *loc, uint32_t session, uint32_t comm, uint64_t region)
{
	struct loc_result *res;

	DL_FOREACH (loc->results, res) {
		if (res->region->id != region)
			continue;
		for (uint32_t i = 0; i < res->n_readers; i++)
			if (res->readers[i].comm->session == session &&
				res->readers[i].comm->id == comm)
				return res;
	}
	return NULL;
}

static bool is_mapped(const struct loc_result *res, uint32_t comm)
{
	for (uint32_t i = 0; i < res->n_mappers; i++)
		if (res->mappers[i] == comm)
			return true;
	return false;
}

bool loc_result_is_mapped(const struct loc_result *res, const struct loc_comm *c)
{
	return is_mapped(res, c->id);
}

bool loc_result_add_mapper(struct loc_result *res, uint32_t comm)
{
	if (is_mapped(res, comm))
		return true;
	if (res->n_mappers == res->cap_members)
		return false;
	res->mappers[res->n_mappers++] = comm;
	return true;
}

void loc_result_hand_over(
	struct loc *loc, struct loc_result *res, const struct loc_member *members, uint32_t n)
{
	struct wl_reply r = {.region = res->region->id, .size = res->region->size};
	int fd = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct loc_comm *c = members[i].h.comm;

		if (is_mapped(res, c->id))
			continue;
		if (fd < 0)
			fd = cc_shm_read_only(res->region->fd);
		r.comm = c->id;
		/* A process that does not get the descriptor asks for it. */
		if (fd >= 0 && loc_session_hand_over(loc, c->session, &r, fd) == 0)
			loc_result_add_mapper(res, c->id);
	}
	if (fd >= 0)
		close(fd);
}

void loc_result_comm_closed(struct loc *loc, const struct loc_comm *c)
{
	struct loc_result *res;

	DL_FOREACH (loc->results, res) {
		if (is_mapped(res, c->id))
			res->abandoned = true;
	}
}

void loc_result_tick(struct loc *loc, uint64_t now)
{
	struct loc_result *res, *tmp;

	DL_FOREACH_SAFE (loc->results, res, tmp) {
		settle(res, now);
		if (res->state == RESULT_IDLE &&
			(res->abandoned || now - res->idle_since_ns > IDLE_NS))
			destroy(loc, res);
	}
}

/* For the end of the agent. Shims that still read keep what they have mapped. */
void loc_result_free_all(struct loc *loc)
{
	struct loc_result *res, *tmp;

	DL_FOREACH_SAFE (loc->results, res, tmp) {
		res->abandoned = true;
		destroy(loc, res);
	}
}

uint8_t *loc_result_map(const struct loc_result *res)
{
	return res->region->map;
}

uint64_t loc_result_region(const struct loc_result *res)
{
	return res->region->id;
}
