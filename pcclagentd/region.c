/* SPDX-License-Identifier: MIT
 *
 * Shared memory: what processes registered or stage through, and the accounts that bound it. A
 * region is charged to a user when it is made and for as long as it is mapped here, whether or not
 * its pages were ever touched. For others it counts then only as far as these are in memory.
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
#include "pcclagentd/io.h"

/* The kernel bounds the mappings of a process (vm.max_map_count, 65530 by default). */
#define REGIONS_PER_USER 4096u
#define REGIONS_MAX      32768u
#define REGION_SIZE_MAX  ((uint64_t)1 << 48)
#define COUNT_PAUSE      20u /* between two counts of pages, by the time that one takes */

struct account *account_get(struct agentd *d, uint32_t uid)
{
	struct account *a;

	HASH_FIND(hh, d->accounts, &uid, sizeof uid, a);
	if (a)
		return a;
	a = calloc(1, sizeof *a);
	if (!a)
		agentd_out_of_memory("accounts");
	a->uid = uid;
	HASH_ADD(hh, d->accounts, uid, sizeof a->uid, a);
	return a;
}

void account_put(struct agentd *d, struct account *a)
{
	if (a->sessions || a->regions || a->bytes)
		return;
	HASH_DEL(d->accounts, a);
	free(a);
}

static const char *mib(uint64_t bytes, char buf[32])
{
	snprintf(buf, 32, "%" PRIu64 ".%" PRIu64 " MiB", bytes >> 20, (bytes & 0xfffff) * 10 >> 20);
	return buf;
}

/* Bytes of a region that are in memory. */
static uint64_t count_touched(const struct region *r)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0;
	uint8_t *map = r->map;
	unsigned char there[16384];

	for (uint64_t off = 0; off < r->size; off += sizeof there * page) {
		uint64_t len =
			r->size - off < sizeof there * page ? r->size - off : sizeof there * page;

		if (mincore(map + off, (size_t)len, there) < 0)
			return r->size;
		for (uint64_t i = 0; i < (len + page - 1) / page; i++)
			n += there[i] & 1u;
	}
	return n * page;
}

/* What others have reserved and is not in memory. How long it takes to find out depends on them, so
 * it is not done all the time. */
static uint64_t count_untouched(const struct agentd *d, struct account *a)
{
	uint64_t began = cc_now_ns(), touched;
	struct region *r, *tmp;

	if (began < a->untouched_until_ns)
		return a->untouched;
	a->untouched = 0;
	HASH_ITER (hh, d->regions, r, tmp) {
		touched = r->uid == a->uid ? r->charged : count_touched(r);
		if (touched < r->charged)
			a->untouched += r->charged - touched;
	}
	a->untouched_until_ns = cc_now_ns() + COUNT_PAUSE * (cc_now_ns() - began);
	return a->untouched;
}

/* A user who has less than an equal part is not locked out by what others have only reserved. */
static bool fits_in_total(const struct agentd *d, struct account *a, uint64_t more)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is this account */
	uint64_t total = d->cfg.mem_total, part = total / HASH_COUNT(d->accounts), untouched;

	if (more <= total && d->mem_used <= total - more)
		return true;
	if (more > part || a->bytes > part - more)
		return false;
	untouched = count_untouched(d, a);
	return untouched > d->mem_used || d->mem_used - untouched <= total - more;
}

/* Books `more` bytes for uid, or says which limit is in the way. */
static uint32_t charge(struct agentd *d, struct account *a, uint64_t more, char *text)
{
	const char *whose = d->cfg.mem_of_cgroup ? ", half of its cgroup's memory" : "";
	char limit[32], used[32], asked[32];

	if (more <= d->cfg.mem_per_user && a->bytes <= d->cfg.mem_per_user - more &&
		fits_in_total(d, a, more)) {
		a->bytes += more;
		d->mem_used += more;
		return WIRE_SUCCESS;
	}
	if (more > d->cfg.mem_per_user || a->bytes > d->cfg.mem_per_user - more)
		snprintf(text, WL_TEXT_MAX,
			"the agent's shared memory limit per user (mem_per_user%s) is %s and %s "
			"are "
			"in use by this user: %s more are not possible",
			whose, mib(d->cfg.mem_per_user, limit), mib(a->bytes, used),
			mib(more, asked));
	else
		snprintf(text, WL_TEXT_MAX,
			"the agent's shared memory limit (mem_total%s) is %s and %s are in use by "
			"all users: %s more are not possible",
			whose, mib(d->cfg.mem_total, limit), mib(d->mem_used, used),
			mib(more, asked));
	return WIRE_OUT_OF_MEMORY;
}

static void discharge(struct agentd *d, uint32_t uid, uint64_t bytes, uint32_t regions)
{
	struct account *a = account_get(d, uid);

	a->bytes -= bytes;
	d->mem_used -= bytes;
	a->regions -= regions;
	d->n_regions -= regions;
	account_put(d, a);
}

static bool fits_in_own(const struct agentd *d, uint64_t more, char *text)
{
	char limit[32], used[32], asked[32];

	if (more <= d->cfg.mem_own && d->own_used <= d->cfg.mem_own - more)
		return true;
	snprintf(text, WL_TEXT_MAX,
		"the agent's tables of shared state may take %s, half of its cgroup's memory, and "
		"take %s now: %s more do not fit; use fewer tensors, or raise the cgroup's limit "
		"and restart the agent",
		mib(d->cfg.mem_own, limit), mib(d->own_used, used), mib(more, asked));
	return false;
}

uint32_t account_charge(struct agentd *d, uint32_t uid, uint64_t bytes, char *text)
{
	struct account *a;
	uint32_t code;

	if (!fits_in_own(d, bytes, text))
		return WIRE_OUT_OF_MEMORY;
	a = account_get(d, uid);
	code = charge(d, a, bytes, text);
	if (code == WIRE_SUCCESS)
		d->own_used += bytes;
	account_put(d, a);
	return code;
}

void account_discharge(struct agentd *d, uint32_t uid, uint64_t bytes)
{
	d->own_used -= bytes;
	discharge(d, uid, bytes, 0);
}

/* Why there is no memory, of which cc_shm_create or cc_shm_adopt has said err. */
static uint32_t no_memory(int err, uint64_t size, char *text)
{
	char limit[CC_LIMIT_TEXT];

	if (err == CC_ERR_PERM || err == CC_ERR_INVAL) {
		snprintf(text, WL_TEXT_MAX,
			"the descriptor is no writable, sealed memfd of %" PRIu64 " bytes", size);
		return WIRE_INVALID_ARGUMENT;
	}
	snprintf(text, WL_TEXT_MAX, "the agent could not get %" PRIu64 " bytes: %s", size,
		cc_limit_call_text(cc_shm_failed_call(), errno, size, limit, sizeof limit));
	return err == CC_ERR_NOMEM || errno == EMFILE || errno == ENFILE ? WIRE_OUT_OF_MEMORY
									 : WIRE_INTERNAL_ERROR;
}

/* New memory when *fd is -1, its descriptor stays with the caller; or that of *fd. own: it is this
 * process alone that writes to it. */
static uint32_t make(struct agentd *d, uint32_t uid, uint64_t size, uint64_t bytes, bool own,
	struct region **ret, int *fd, char *text)
{
	struct account *a = account_get(d, uid);
	struct region *r = NULL;
	void *map;
	uint32_t code = WIRE_OUT_OF_MEMORY;
	int err;

	if (a->regions >= REGIONS_PER_USER || d->n_regions >= REGIONS_MAX) {
		snprintf(text, WL_TEXT_MAX,
			"too many memory regions: this user has %" PRIu32 " of %u, all users have "
			"%" PRIu32 " of %u; free some, or use fewer and larger ones",
			a->regions, REGIONS_PER_USER, d->n_regions, REGIONS_MAX);
		goto err;
	}
	code = charge(d, a, bytes, text);
	if (code != WIRE_SUCCESS)
		goto err;
	r = calloc(1, sizeof *r);
	if (!r)
		agentd_out_of_memory("regions");
	if (*fd >= 0)
		err = cc_shm_adopt(*fd, (size_t)size, &map);
	else if (own)
		err = cc_shm_create_own("pccl-result", (size_t)size, fd, &map);
	else
		err = cc_shm_create("pccl-region", (size_t)size, fd, &map);
	if (err < 0) {
		code = no_memory(err, size, text);
		a->bytes -= bytes;
		d->mem_used -= bytes;
		goto err;
	}
	*r = (struct region){.id = ++d->next_region,
		.uid = uid,
		.size = size,
		.charged = bytes,
		.map = map,
		.fd = -1};
	a->regions++;
	d->n_regions++;
	HASH_ADD(hh, d->regions, id, sizeof r->id, r);
	*ret = r;
	return WIRE_SUCCESS;
err:
	free(r);
	account_put(d, a);
	return code;
}

static void destroy(struct agentd *d, struct region *r)
{
	HASH_DEL(d->regions, r);
	cc_shm_unmap(r->map, (size_t)r->size);
	if (r->fd >= 0)
		close(r->fd);
	discharge(d, r->uid, r->charged, 1);
	free(r->mapped);
	free(r);
}

static uint64_t whole_pages(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Other processes may be shown it (sync_shown): a duplicate of fd, or -1: half of what can be open
 * is for the rest. */
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

static void give_to(struct session *s, struct region *r, enum wl_region_use use, int fd)
{
	if (use == WL_REGION_REGISTERED || use == WL_REGION_STATE)
		r->fd = keep(fd);
	r->session = s->id;
	r->use = use;
	DL_APPEND(s->regions, r);
}

uint32_t region_alloc(struct agentd *d, struct session *s, uint64_t size, enum wl_region_use use,
	struct region **ret, int *ret_fd, char *text)
{
	uint32_t code;

	if (size == 0 || size > REGION_SIZE_MAX) {
		snprintf(text, WL_TEXT_MAX, "a region of %" PRIu64 " bytes: must be 1 .. 2^48",
			size);
		return WIRE_INVALID_ARGUMENT;
	}
	size = whole_pages(size);
	*ret_fd = -1;
	code = make(d, s->uid, size, size, false, ret, ret_fd, text);
	if (code == WIRE_SUCCESS)
		give_to(s, *ret, use, *ret_fd);
	return code;
}

uint32_t region_adopt(struct agentd *d, struct session *s, int *fd, uint64_t size,
	struct region **ret, char *text)
{
	uint32_t code;

	if (size == 0 || size > REGION_SIZE_MAX || size != whole_pages(size)) {
		snprintf(text, WL_TEXT_MAX,
			"a region of %" PRIu64 " bytes: must be whole pages, up to 2^48 bytes",
			size);
		return WIRE_INVALID_ARGUMENT;
	}
	code = make(d, s->uid, size, size, false, ret, fd, text);
	if (code != WIRE_SUCCESS)
		return code;
	give_to(s, *ret, WL_REGION_REGISTERED, *fd);
	close(*fd);
	*fd = -1;
	return WIRE_SUCCESS;
}

uint32_t region_free(struct agentd *d, struct session *s, uint64_t id, char *text)
{
	struct region *r = region_find(d, id);

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
		destroy(d, r);
	return WIRE_SUCCESS;
}

struct region *region_find(const struct agentd *d, uint64_t id)
{
	struct region *r;

	HASH_FIND(hh, d->regions, &id, sizeof id, r);
	return r;
}

struct region *region_ref(struct region *r)
{
	r->refs++;
	return r;
}

void region_unref(struct agentd *d, struct region *r)
{
	if (r && --r->refs == 0 && r->orphan)
		destroy(d, r);
}

struct region *region_lend(struct region *r)
{
	if (r)
		r->lent++;
	return r ? region_ref(r) : NULL;
}

void region_return(struct agentd *d, struct region *r)
{
	if (r)
		r->lent--;
	region_unref(d, r);
}

void region_session_closed(struct agentd *d, struct session *s)
{
	struct region *r, *tmp;

	DL_FOREACH_SAFE (s->regions, r, tmp) {
		DL_DELETE(s->regions, r);
		r->orphan = true;
		if (r->refs == 0)
			destroy(d, r);
	}
}

/* ---- result regions ---- */

uint32_t region_new_result(struct agentd *d, uint32_t uid, uint64_t size, uint64_t bytes,
	struct region **ret, char *text)
{
	uint32_t code;
	int fd = -1;

	code = make(d, uid, size, bytes, true, ret, &fd, text);
	if (code == WIRE_SUCCESS)
		(*ret)->fd = fd;
	return code;
}

uint32_t region_charge(struct agentd *d, struct region *r, uint64_t bytes, char *text)
{
	uint32_t code;

	if (bytes <= r->charged)
		return WIRE_SUCCESS;
	code = charge(d, account_get(d, r->uid), bytes - r->charged, text);
	if (code == WIRE_SUCCESS)
		r->charged = bytes;
	return code;
}

void region_drop_result(struct agentd *d, struct region *r, bool empty)
{
	if (empty &&
		fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)r->size) < 0)
		cc_log(CC_LOG_DEBUG, "result region %" PRIu64 ": %s", r->id, strerror(errno));
	r->orphan = true;
	if (r->refs == 0)
		destroy(d, r);
}
