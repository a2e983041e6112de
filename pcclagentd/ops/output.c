/* SPDX-License-Identifier: MIT
 *
 * Chooses where the result of a transfer goes. The modes: section 7 of docs/data-path.md; constants
 * in proto/shm_queue.h (enum shm_result_mode).
 */
#include "pcclagentd/ops/output.h"

#include <string.h>

#include "pcclagentd/ops/ops_internal.h"

#define ALIGN 64u

static uint64_t align(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool all_disposable(const struct agt_xfer *t)
{
	for (uint32_t i = 0; i < t->n_members; i++)
		if (!t->members[i].sub.out_disposable)
			return false;
	return true;
}

static bool is_possible(const struct xfer *x, const struct agt_xfer *t, enum shm_result_mode mode)
{
	switch (mode) {
	case SHM_RESULT_DIRECT:
		return all_disposable(t);
	case SHM_RESULT_STAGED:
		return x->n_members == 1 && !t->members[0].sub.in_registered;
	case SHM_RESULT_UNDO:
		return x->n_members == 1 && x->members[0].out;
	default:
		return mode == SHM_RESULT_AREA;
	}
}

/* Returns the possible mode that moves the least memory. */
static enum shm_result_mode choose_mode(
	const struct xfer *x, const struct agt_xfer *t, uint32_t modes)
{
	static const enum shm_result_mode best[] = {
		SHM_RESULT_DIRECT, SHM_RESULT_STAGED, SHM_RESULT_UNDO};

	for (unsigned i = 0; i < sizeof best / sizeof best[0]; i++)
		if ((modes & ENG_OUTPUT(best[i])) && is_possible(x, t, best[i]))
			return best[i];
	return SHM_RESULT_AREA;
}

static uint8_t *output_of(const struct xfer *x, const struct agt_xfer *t, uint32_t i)
{
	return loc_region_map(x->members[i].out) + t->members[i].sub.out_off;
}

/* Does the result region hold sums, results or undo copies in front of the flags? */
static bool has_area(enum shm_result_mode mode)
{
	return mode == SHM_RESULT_AREA || mode == SHM_RESULT_UNDO;
}

uint32_t op_output_take(struct xfer *x, const struct agt_xfer *t, uint32_t modes,
	struct eng_xfer_spec *spec, struct eng_member *members, char *text)
{
	struct loc_group group = {.run = x->run->id, .group = t->group};
	struct op_output *out = &x->output;
	uint64_t scratch_off;
	uint32_t code;
	uint8_t *map;

	out->mode = choose_mode(x, t, modes);
	out->flags_off = has_area(out->mode) ? align(x->bytes) : 0;
	scratch_off = align(out->flags_off + spec->plan.n_segs);
	code = loc_result_take(x->run->o->loc, &group, scratch_off + eng_scratch_size(spec),
		x->members, x->n_members, &out->result, text);
	if (code != WIRE_SUCCESS)
		return code;
	map = loc_result_map(out->result);
	/* The shim restores the old contents if the agent dies, so it must have mapped the region
	 * that holds them. */
	if (out->mode == SHM_RESULT_UNDO &&
		!loc_result_is_mapped(out->result, x->members[0].h.comm))
		out->mode = SHM_RESULT_AREA;
	spec->area = map;
	if (out->mode == SHM_RESULT_UNDO)
		spec->direct = output_of(x, t, 0);
	if (out->mode == SHM_RESULT_STAGED)
		spec->area = loc_region_map(x->members[0].in) + t->members[0].sub.in_off;
	if (out->mode == SHM_RESULT_DIRECT)
		spec->area = output_of(x, t, 0);
	for (uint32_t i = 1; out->mode == SHM_RESULT_DIRECT && i < x->n_members; i++)
		members[i].out = output_of(x, t, i);
	spec->flags = (_Atomic uint8_t *)(void *)(map + out->flags_off);
	memset(map + out->flags_off, 0, spec->plan.n_segs);
	spec->scratch = map + scratch_off;
	return WIRE_SUCCESS;
}

void op_output_announce(const struct xfer *x, const struct agt_xfer *t)
{
	const struct op_output *out = &x->output;
	struct cc_shares shares = cc_rings_shares(t->rings);

	loc_result_hand_over(x->run->o->loc, out->result, x->members, x->n_members);
	for (uint32_t i = 0; i < x->n_members; i++) {
		struct shm_slot *s = loc_comm_slot(x->members[i].h.comm, x->members[i].h.slot);

		s->seq = t->seq;
		s->hosts = t->hosts;
		s->segment_max = t->segment_max;
		s->shares = cc_shares_pack(&shares);
		s->local_world_size = t->world_size;
		loc_comm_put_view(s, &t->begin);
		s->flags_off_lo = (uint32_t)out->flags_off;
		s->flags_off_hi = (uint32_t)(out->flags_off >> 32);
		s->result_region = loc_result_region(out->result);
		s->result_off = 0;
		atomic_store_explicit(&s->mode,
			x->spec ? (uint32_t)SHM_RESULT_SPEC : (uint32_t)out->mode,
			memory_order_release);
	}
}

void op_output_withdraw(const struct xfer *x)
{
	for (uint32_t i = 0; i < x->n_members; i++)
		atomic_store(&loc_comm_slot(x->members[i].h.comm, x->members[i].h.slot)->mode,
			SHM_RESULT_NONE);
}

void op_output_give_back(struct op_output *out)
{
	if (out->result)
		loc_result_give_back(out->result);
	*out = (struct op_output){.mode = SHM_RESULT_NONE};
}
