/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/feedback.h"

#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/lib.h"

/* Returns how many tags are lower. */
static size_t lower_bound(const struct pccl_feedback *f, uint64_t tag)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->tags[mid] < tag)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_at(const struct pccl_feedback *f, size_t at, uint64_t tag)
{
	return at < f->n && f->tags[at] == tag;
}

bool pccl_feedback_has(pcclComm_t *c, uint64_t tag)
{
	const struct pccl_feedback *f = &c->feedback;
	bool has;

	pthread_mutex_lock(&c->lock);
	has = is_at(f, lower_bound(f, tag), tag);
	pthread_mutex_unlock(&c->lock);
	return has;
}

static bool make_room(struct pccl_feedback *f)
{
	size_t cap = f->cap ? 2 * f->cap : 8;
	uint64_t *tags;

	if (f->n < f->cap)
		return true;
	tags = reallocarray(f->tags, cap, sizeof *tags);
	if (!tags)
		return false;
	f->tags = tags;
	f->cap = cap;
	return true;
}

/* Adds or removes the tag. Returns false if there is no memory. */
static bool set(struct pccl_feedback *f, uint64_t tag, bool enabled)
{
	size_t at = lower_bound(f, tag);

	if (is_at(f, at, tag) == enabled)
		return true;
	if (!enabled) {
		f->n--;
		memmove(f->tags + at, f->tags + at + 1, (f->n - at) * sizeof *f->tags);
		return true;
	}
	if (!make_room(f))
		return false;
	memmove(f->tags + at + 1, f->tags + at, (f->n - at) * sizeof *f->tags);
	f->tags[at] = tag;
	f->n++;
	return true;
}

pcclResult_t pcclSetErrorFeedback(pcclComm_t *communicator, uint64_t tag, bool enabled)
{
	pcclResult_t r = pccl_comm_check(communicator);
	bool done;

	if (r != pcclSuccess)
		return r;
	pthread_mutex_lock(&communicator->lock);
	done = set(&communicator->feedback, tag, enabled);
	pthread_mutex_unlock(&communicator->lock);
	return done ? pccl_ok() : pccl_fail_memory("no memory for another tag");
}
