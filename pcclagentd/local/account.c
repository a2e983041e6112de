/* SPDX-License-Identifier: MIT
 *
 * The memory and regions of each user, and the limits on them. A region is charged to its user from
 * its creation for as long as the agent has it mapped, even if its pages were never touched. When
 * another user needs memory, only the pages in memory count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pcclagentd/local/loc_internal.h"

/* The pause between two counts of pages, as a multiple of the time that a count takes. */
#define COUNT_PAUSE 20u

struct account *loc_account_get(struct loc *loc, uint32_t uid)
{
	struct account *a;

	HASH_FIND(hh, loc->accounts, &uid, sizeof uid, a);
	if (a)
		return a;
	a = calloc(1, sizeof *a);
	if (!a)
		rep_out_of_memory("accounts");
	a->uid = uid;
	HASH_ADD(hh, loc->accounts, uid, sizeof a->uid, a);
	return a;
}

void loc_account_put(struct loc *loc, struct account *a)
{
	if (a->sessions || a->regions || a->bytes)
		return;
	HASH_DEL(loc->accounts, a);
	free(a);
}

static const char *mib(uint64_t bytes, char buf[32])
{
	snprintf(buf, 32, "%" PRIu64 ".%" PRIu64 " MiB", bytes >> 20, (bytes & 0xfffff) * 10 >> 20);
	return buf;
}

/* Returns how many bytes of a region are in memory. */
static uint64_t count_touched(const struct loc_region *r)
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

/* Returns how many bytes other users have reserved but not touched. Other users can make this count
 * slow, so its result is used for a while. */
static uint64_t count_untouched(const struct loc *loc, struct account *a)
{
	uint64_t began = cc_now_ns(), touched;
	struct loc_region *r, *tmp;

	if (began < a->untouched_until_ns)
		return a->untouched;
	a->untouched = 0;
	HASH_ITER (hh, loc->regions, r, tmp) {
		touched = r->uid == a->uid ? r->charged : count_touched(r);
		if (touched < r->charged)
			a->untouched += r->charged - touched;
	}
	a->untouched_until_ns = cc_now_ns() + COUNT_PAUSE * (cc_now_ns() - began);
	return a->untouched;
}

/* Do `more` bytes fit? For a user who has less than an equal part, memory that other users have
 * reserved but not touched does not count. */
static bool fits_in_total(const struct loc *loc, struct account *a, uint64_t more)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is at least this user's account */
	uint64_t total = loc->base->cfg.mem_total, part = total / HASH_COUNT(loc->accounts),
		 untouched;

	if (more <= total && loc->mem_used <= total - more)
		return true;
	if (more > part || a->bytes > part - more)
		return false;
	untouched = count_untouched(loc, a);
	return untouched > loc->mem_used || loc->mem_used - untouched <= total - more;
}

uint32_t loc_account_book(struct loc *loc, struct account *a, uint64_t more, char *text)
{
	const char *whose = loc->base->cfg.mem_of_cgroup ? ", half of its cgroup's memory" : "";
	char limit[32], used[32], asked[32];

	if (more <= loc->base->cfg.mem_per_user && a->bytes <= loc->base->cfg.mem_per_user - more &&
		fits_in_total(loc, a, more)) {
		a->bytes += more;
		loc->mem_used += more;
		return WIRE_SUCCESS;
	}
	if (more > loc->base->cfg.mem_per_user || a->bytes > loc->base->cfg.mem_per_user - more)
		snprintf(text, WL_TEXT_MAX,
			"the agent's shared memory limit per user (mem_per_user%s) is %s and %s "
			"are in use by this user: %s more do not fit; free some, or raise the "
			"limit",
			whose, mib(loc->base->cfg.mem_per_user, limit), mib(a->bytes, used),
			mib(more, asked));
	else
		snprintf(text, WL_TEXT_MAX,
			"the agent's shared memory limit (mem_total%s) is %s and %s are in use by "
			"all users: %s more do not fit; free some, or raise the limit",
			whose, mib(loc->base->cfg.mem_total, limit), mib(loc->mem_used, used),
			mib(more, asked));
	return WIRE_OUT_OF_MEMORY;
}

void loc_account_unbook(struct loc *loc, uint32_t uid, uint64_t bytes, uint32_t regions)
{
	struct account *a = loc_account_get(loc, uid);

	a->bytes -= bytes;
	loc->mem_used -= bytes;
	a->regions -= regions;
	loc->n_regions -= regions;
	loc_account_put(loc, a);
}

static bool fits_in_own(const struct loc *loc, uint64_t more, char *text)
{
	char limit[32], used[32], asked[32];

	if (more <= loc->base->cfg.mem_own && loc->own_used <= loc->base->cfg.mem_own - more)
		return true;
	snprintf(text, WL_TEXT_MAX,
		"the agent's tables of shared state and its residuals of error feedback may take "
		"%s, half of its cgroup's memory, and take %s now: %s more do not fit; use less "
		"of them, or raise the cgroup's limit and restart the agent",
		mib(loc->base->cfg.mem_own, limit), mib(loc->own_used, used), mib(more, asked));
	return false;
}

uint32_t loc_account_charge(struct loc *loc, uint32_t uid, uint64_t bytes, char *text)
{
	struct account *a;
	uint32_t code;

	if (!fits_in_own(loc, bytes, text))
		return WIRE_OUT_OF_MEMORY;
	a = loc_account_get(loc, uid);
	code = loc_account_book(loc, a, bytes, text);
	if (code == WIRE_SUCCESS)
		loc->own_used += bytes;
	loc_account_put(loc, a);
	return code;
}

void loc_account_discharge(struct loc *loc, uint32_t uid, uint64_t bytes)
{
	loc->own_used -= bytes;
	loc_account_unbook(loc, uid, bytes, 0);
}
