/* SPDX-License-Identifier: MIT
 *
 * Shared memory: the memory that processes register or use for staging, and the memory of results.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_shm.h"
#include "pcclagentd/local/loc_internal.h"

/* The kernel limits the mappings of a process (vm.max_map_count, 65530 by default). */
#define REGIONS_PER_USER 4096u
#define REGIONS_MAX      32768u
#define REGION_SIZE_MAX  ((uint64_t)1 << 48)

/* Returns the code, and writes the reason to text, after cc_shm_create or cc_shm_adopt has failed
 * with `err`. */
static uint32_t no_memory(int err, uint64_t size, char *text)
{
	char limit[CC_LIMIT_TEXT];

	if (err == CC_ERR_PERM || err == CC_ERR_INVAL) {
		snprintf(text, WL_TEXT_MAX,
			"the descriptor is not a writable, sealed memfd of %" PRIu64 " bytes",
			size);
		return WIRE_INVALID_ARGUMENT;
	}
	snprintf(text, WL_TEXT_MAX, "the agent could not get %" PRIu64 " bytes: %s", size,
		cc_limit_call_text(cc_shm_failed_call(), errno, size, limit, sizeof limit));
	return err == CC_ERR_NOMEM || errno == EMFILE || errno == ENFILE ? WIRE_OUT_OF_MEMORY
									 : WIRE_INTERNAL_ERROR;
}

/* Makes a region. If *fd is -1, the memory is new, and the caller gets its descriptor; otherwise
 * the region uses the memory of *fd. own: only the agent writes to the memory. */
static uint32_t make(struct loc *loc, uint32_t uid, uint64_t size, uint64_t bytes, bool own,
	struct loc_region **ret, int *fd, char *text)
{
	struct account *a = loc_account_get(loc, uid);
	struct loc_region *r = NULL;
	void *map;
	uint32_t code = WIRE_OUT_OF_MEMORY;
	int err;

	if (a->regions >= REGIONS_PER_USER || loc->n_regions >= REGIONS_MAX) {
		snprintf(text, WL_TEXT_MAX,
			"too many memory regions: this user has %" PRIu32 " of %u, all users have "
			"%" PRIu32 " of %u; free some, or use fewer and larger ones",
			a->regions, REGIONS_PER_USER, loc->n_regions, REGIONS_MAX);
		goto err;
	}
	code = loc_account_book(loc, a, bytes, text);
	if (code != WIRE_SUCCESS)
		goto err;
	r = calloc(1, sizeof *r);
	if (!r)
		rep_out_of_memory("regions");
	if (*fd >= 0)
		err = cc_shm_adopt(*fd, (size_t)size, &map);
	else if (own)
		err = cc_shm_create_own("pccl-result", (size_t)size, fd, &map);
	else
		err = cc_shm_create("pccl-region", (size_t)size, fd, &map);
	if (err < 0) {
		code = no_memory(err, size, text);
		a->bytes -= bytes;
		loc->mem_used -= bytes;
		goto err;
	}
	*r = (struct loc_region){.id = ++loc->next_region,
		.uid = uid,
		.size = size,
		.charged = bytes,
		.map = map,
		.fd = -1};
	a->regions++;
	loc->n_regions++;
	HASH_ADD(hh, loc->regions, id, sizeof r->id, r);
	*ret = r;
	return WIRE_SUCCESS;
err:
	free(r);
	loc_account_put(loc, a);
	return code;
}

static void destroy(struct loc *loc, struct loc_region *r)
{
	HASH_DEL(loc->regions, r);
	cc_shm_unmap(r->map, (size_t)r->size);
	if (r->fd >= 0)
		close(r->fd);
	loc_account_unbook(loc, r->uid, r->charged, 1);
	free(r->mapped);
	free(r);
}

static uint64_t whole_pages(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Returns a duplicate of fd, or -1 if descriptors are scarce. The duplicate is kept because other
 * processes may get access to the memory (op_sync_shown). Half of the descriptors that the agent
 * may open are left for other uses. */
static int keep(int fd)
{
	struct rlimit rl;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own >= 0 && (getrlimit(RLIMIT_NOFILE, &rl) < 0 || (rlim_t)own >= rl.rlim_cur / 2)) {
		close(own);
		own = -1;
	}
	return own;
}

static void give_to(struct session *s, struct loc_region *r, enum wl_region_use use, int fd)
{
	if (use == WL_REGION_REGISTERED || use == WL_REGION_STATE)
		r->fd = keep(fd);
	r->session = s->id;
	r->use = use;
	DL_APPEND(s->regions, r);
}

uint32_t loc_region_alloc(struct loc *loc, struct session *s, uint64_t size, enum wl_region_use use,
	struct loc_region **ret, int *ret_fd, char *text)
{
	uint32_t code;

	if (size == 0 || size > REGION_SIZE_MAX) {
		snprintf(text, WL_TEXT_MAX, "a region of %" PRIu64 " bytes: must be 1 .. 2^48",
			size);
		return WIRE_INVALID_ARGUMENT;
	}
	size = whole_pages(size);
	*ret_fd = -1;
	code = make(loc, s->uid, size, size, false, ret, ret_fd, text);
	if (code == WIRE_SUCCESS)
		give_to(s, *ret, use, *ret_fd);
	return code;
}

uint32_t loc_region_adopt(struct loc *loc, struct session *s, int *fd, uint64_t size,
	struct loc_region **ret, char *text)
{
	uint32_t code;

	if (size == 0 || size > REGION_SIZE_MAX || size != whole_pages(size)) {
		snprintf(text, WL_TEXT_MAX,
			"a region of %" PRIu64 " bytes: must be whole pages, up to 2^48 bytes",
			size);
		return WIRE_INVALID_ARGUMENT;
	}
	code = make(loc, s->uid, size, size, false, ret, fd, text);
	if (code != WIRE_SUCCESS)
		return code;
	give_to(s, *ret, WL_REGION_REGISTERED, *fd);
	close(*fd);
	*fd = -1;
	return WIRE_SUCCESS;
}

uint32_t loc_region_free(struct loc *loc, struct session *s, uint64_t id, char *text)
{
	struct loc_region *r = loc_region_find(loc, id);

	if (!r || r->session != s->id) {
		snprintf(text, WL_TEXT_MAX, "this process has no memory region %" PRIu64, id);
		return WIRE_INVALID_ARGUMENT;
	}
	if (r->refs > r->lent) {
		snprintf(text, WL_TEXT_MAX,
			"the memory is in use by an operation in flight; await it first");
		return WIRE_INVALID_USAGE;
	}
	DL_DELETE(s->regions, r);
	r->orphan = true;
	if (r->refs == 0)
		destroy(loc, r);
	return WIRE_SUCCESS;
}

struct loc_region *loc_region_find(const struct loc *loc, uint64_t id)
{
	struct loc_region *r;

	HASH_FIND(hh, loc->regions, &id, sizeof id, r);
	return r;
}

struct loc_region *loc_region_ref(struct loc_region *r)
{
	r->refs++;
	return r;
}

void loc_region_unref(struct loc *loc, struct loc_region *r)
{
	if (r && --r->refs == 0 && r->orphan)
		destroy(loc, r);
}

struct loc_region *loc_region_lend(struct loc_region *r)
{
	if (r)
		r->lent++;
	return r ? loc_region_ref(r) : NULL;
}

void loc_region_return(struct loc *loc, struct loc_region *r)
{
	if (r)
		r->lent--;
	loc_region_unref(loc, r);
}

void loc_region_session_closed(struct loc *loc, struct session *s)
{
	struct loc_region *r, *tmp;

	DL_FOREACH_SAFE (s->regions, r, tmp) {
		DL_DELETE(s->regions, r);
		r->orphan = true;
		if (r->refs == 0)
			destroy(loc, r);
	}
}

/* ---- result regions ---- */

uint32_t loc_region_new_result(struct loc *loc, uint32_t uid, uint64_t size, uint64_t bytes,
	struct loc_region **ret, char *text)
{
	uint32_t code;
	int fd = -1;

	code = make(loc, uid, size, bytes, true, ret, &fd, text);
	if (code == WIRE_SUCCESS)
		(*ret)->fd = fd;
	return code;
}

uint32_t loc_region_charge(struct loc *loc, struct loc_region *r, uint64_t bytes, char *text)
{
	uint32_t code;

	if (bytes <= r->charged)
		return WIRE_SUCCESS;
	code = loc_account_book(loc, loc_account_get(loc, r->uid), bytes - r->charged, text);
	if (code == WIRE_SUCCESS)
		r->charged = bytes;
	return code;
}

void loc_region_drop_result(struct loc *loc, struct loc_region *r, bool empty)
{
	if (empty &&
		fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)r->size) < 0)
		cc_log(CC_LOG_DEBUG, "result region %" PRIu64 ": %s", r->id, strerror(errno));
	r->orphan = true;
	if (r->refs == 0)
		destroy(loc, r);
}

/* ---- for other parts of the agent ---- */

uint64_t loc_region_id(const struct loc_region *r)
{
	return r->id;
}

uint8_t *loc_region_map(const struct loc_region *r)
{
	return r->map;
}
