/* SPDX-License-Identifier: MIT
 *
 * Error feedback: what this host has lost in the encodings of a quantized operation, it adds to its
 * operand at the next operation with the same tag. Nothing is quantized within a host, so this
 * residual belongs to the host, not to a peer.
 *
 * An operation reads the last residual and writes the next one. The next residual replaces the last
 * one when the operation has succeeded on all hosts. So all hosts replace or drop their residuals
 * with the same operations, and a failed operation changes nothing. A residual may be dropped while
 * threads of the engine still use it, so transfers hold references.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cc_zalloc.h"
#include "pcclagentd/ops/ops_internal.h"

struct residual {
	struct loc *loc;
	uint32_t uid; /* the memory is booked for this user */
	uint32_t refs;
	uint64_t charged;
	void *v; /* numbers of the accumulator type */
};

struct feedback_key {
	uint64_t tag, group;
};

struct feedback {
	struct feedback_key key;
	/* These two numbers name a membership of the group: the world size grows within a
	 * generation, and shrinks only with the next generation. */
	uint64_t generation;
	uint32_t world_size;
	struct wm_op_params params;
	uint32_t comm; /* the first member's communicator: the residual ends with it */
	struct residual *last;
	struct residual *spare; /* memory for the next residual; or NULL */
	UT_hash_handle hh;
};

static void residual_unref(struct residual *r)
{
	if (!r || --r->refs > 0)
		return;
	loc_account_discharge(r->loc, r->uid, r->charged);
	free(r->v);
	free(r);
}

static uint32_t residual_new(
	struct loc *loc, uint32_t uid, uint64_t bytes, struct residual **ret, char *text)
{
	struct residual *r = calloc(1, sizeof *r);
	uint32_t code;

	if (!r)
		rep_out_of_memory("residuals");
	/* A process can use any number of tags, so the structs count, too. */
	*r = (struct residual){.loc = loc,
		.uid = uid,
		.refs = 1,
		.charged = bytes + sizeof *r + sizeof(struct feedback)};
	code = loc_account_charge(loc, uid, r->charged, text);
	if (code != WIRE_SUCCESS) {
		free(r);
		return code;
	}
	r->v = malloc(bytes);
	if (!r->v) {
		residual_unref(r);
		return rep_shortage(
			"the agent has no memory for the residual", "mmap", text, WL_TEXT_MAX);
	}
	*ret = r;
	return WIRE_SUCCESS;
}

static void forget(struct feedback *f)
{
	residual_unref(f->last);
	residual_unref(f->spare);
	free(f);
}

static void drop(struct run *r, struct feedback *f)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DEL(r->feedbacks, f);
	forget(f);
}

static struct feedback *find(const struct run *r, uint64_t tag, uint32_t group)
{
	struct feedback_key key = {tag, group};
	struct feedback *f;

	HASH_FIND(hh, r->feedbacks, &key, sizeof key, f);
	return f;
}

/* Drops the residuals of this group that belong to another membership. */
static void drop_outdated(struct run *r, const struct agt_xfer *t)
{
	struct feedback *f, *tmp;

	HASH_ITER (hh, r->feedbacks, f, tmp) {
		if (f->key.group == t->group &&
			(f->generation != t->generation || f->world_size != t->world_size))
			drop(r, f);
	}
}

/* Does the residual of the last operation of the tag, if there is one, fit this operation? */
static bool fits(const struct feedback *last, const struct feedback *f)
{
	return last && f->generation == last->generation && f->world_size == last->world_size &&
	       wm_op_params_eq(&f->params, &last->params);
}

/* Takes the memory for the next residual. No transfer uses the spare memory, because operations of
 * one tag come one after the other. */
static uint32_t take_next(
	struct xfer *x, struct feedback *last, uint64_t bytes, struct residual **ret, char *text)
{
	const struct loc_comm *c = x->members[0].h.comm;
	struct residual *spare = last ? last->spare : NULL;
	char why[WL_TEXT_MAX];
	uint32_t code;

	if (spare) {
		last->spare = NULL;
		*ret = spare;
		return WIRE_SUCCESS;
	}
	code = residual_new(x->run->o->loc, loc_comm_uid(c), bytes, ret, why);
	if (code != WIRE_SUCCESS)
		snprintf(text, WL_TEXT_MAX, "error feedback: %.480s", why);
	return code;
}

uint32_t op_feedback_take(
	struct xfer *x, const struct agt_xfer *t, struct eng_xfer_spec *spec, char *text)
{
	uint64_t bytes = spec->plan.count * krn_dtype_size(qnt_acc_dtype(&spec->quant.sum));
	struct feedback *f, *last;
	uint32_t code;

	drop_outdated(x->run, t);
	x->quantized = spec->quant.on;
	if (!(t->params.quant.algo & WIRE_QUANT_FEEDBACK) || t->hosts == 1)
		return WIRE_SUCCESS;
	f = x->feedback = cc_zalloc(1, sizeof *f);
	if (!f)
		rep_out_of_memory("residuals");
	f->key = (struct feedback_key){t->tag, t->group};
	f->generation = t->generation;
	f->world_size = t->world_size;
	f->params = t->params;
	f->comm = t->members[0].comm;
	last = find(x->run, t->tag, t->group);
	if (!fits(last, f))
		last = NULL;
	code = take_next(x, last, bytes, &f->last, text);
	if (!f->last)
		return code;
	spec->loss = f->last->v;
	if (!last)
		return WIRE_SUCCESS;
	x->residual = last->last;
	x->residual->refs++;
	spec->residual = x->residual->v;
	return WIRE_SUCCESS;
}

void op_feedback_keep(struct xfer *x)
{
	struct feedback *f = x->feedback, *last = find(x->run, x->tag, x->group);

	if (!x->quantized)
		return;
	if (f && fits(last, f)) {
		f->spare = last->last;
		last->last = NULL;
	}
	if (last)
		drop(x->run, last);
	/* The first member may have left after its report. */
	if (!f || !loc_comm_find(x->run->o->loc, f->comm))
		return;
	x->feedback = NULL;
	HASH_ADD(hh, x->run->feedbacks, key, sizeof f->key, f);
}

void op_feedback_give_back(struct xfer *x)
{
	struct feedback *f = x->feedback, *last = find(x->run, x->tag, x->group);

	if (f && fits(last, f) && !last->spare) {
		last->spare = f->last;
		f->last = NULL;
	}
	if (f)
		forget(f);
	residual_unref(x->residual);
}

void op_feedback_comm_closed(struct ops *o, uint32_t comm)
{
	struct run *r, *next_run;
	struct feedback *f, *tmp;

	HASH_ITER (hh, o->runs, r, next_run) {
		HASH_ITER (hh, r->feedbacks, f, tmp) {
			if (f->comm == comm)
				drop(r, f);
		}
	}
}

void op_feedback_drop_all(struct run *r)
{
	struct feedback *f, *tmp;

	HASH_ITER (hh, r->feedbacks, f, tmp) {
		drop(r, f);
	}
}
