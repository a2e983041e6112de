/* SPDX-License-Identifier: MIT
 *
 * The steps of a training program between two topology votes. They follow from the run, the group
 * and the number of the vote, so that all members of a group do the same, as programs must. The
 * votes on pending peers are the same for all groups.
 */
#include <string.h>

#include "proto/wire_dtype.h"
#include "tests/sim/sim.h"

#define F32  10u /* pcclDataType_t */
#define INT8 1u

static uint64_t run_number(const struct cc_id *run)
{
	uint64_t n;

	memcpy(&n, run->b, sizeof n);
	return n;
}

void sim_plan(struct sim *s, struct sim_peer *p)
{
	uint64_t all = sim_hash(s, run_number(&p->run), p->ballots[WIRE_TOPOLOGY], 0);
	uint64_t mine = sim_hash(s, run_number(&p->run), p->ballots[WIRE_TOPOLOGY], 1 + p->group);
	uint32_t i, n_reduce = (uint32_t)(mine >> 8) % 3, n_ask = (uint32_t)(all % 5) / 2;
	uint32_t n_sync = (uint32_t)(mine >> 40) % 5 / 2;

	p->optimizes = all >> 32 & 1;
	p->n_steps = 0;
	p->step = 0;
	p->step_begun = false;
	for (i = 0; i < n_reduce; i++)
		p->steps[p->n_steps++] = (struct sim_step){
			.n_ops = 1 + (uint32_t)(mine >> (16 + 4 * i)) % s->n_tags};
	for (i = 0; i < n_sync; i++) /* before the all-reduces, after them, or one at each end */
		if ((mine >> (44 + i) & 1) || p->n_steps == 0) {
			p->steps[p->n_steps++] = (struct sim_step){.sync = true};
		} else {
			memmove(&p->steps[1], &p->steps[0], p->n_steps * sizeof p->steps[0]);
			p->n_steps++;
			p->steps[0] = (struct sim_step){.sync = true};
		}
	for (i = 0; i < n_ask; i++) {
		bool beside = n_reduce > 0 && (mine >> (32 + i) & 1);

		if (beside && !p->steps[i % n_reduce].ask && !p->steps[i % n_reduce].sync)
			p->steps[i % n_reduce].ask = true;
		else
			p->steps[p->n_steps++] = (struct sim_step){.ask = true};
	}
}

struct sim_key sim_plan_key(const struct sim_peer *p, uint32_t tag)
{
	return (struct sim_key){.run = p->run,
		.group = p->group,
		.turn = p->ballots[WIRE_TOPOLOGY],
		.step = p->step,
		.tag = tag};
}

/* On three hosts or more, the size and the quantization decide which route the master chooses. */
void sim_plan_params(
	const struct sim *s, const struct sim_peer *p, uint32_t tag, struct shm_submission *sub)
{
	static const struct wire_quant modes[] = {
		{.kind = WIRE_QUANT_MIN_MAX, .dtype = INT8},
		{.kind = WIRE_QUANT_BLOCKWISE, .dtype = INT8, .block = 128},
		{.kind = WIRE_QUANT_BLOCKWISE, .dtype = WIRE_DTYPE_INT4, .block = 32},
		{.kind = WIRE_QUANT_BLOCKWISE,
			.dtype = WIRE_DTYPE_INT4,
			.block = 32,
			.mixed = true,
			.hint = 1},
	};
	uint64_t h = sim_hash(s, run_number(&p->run) ^ p->ballots[WIRE_TOPOLOGY],
		(uint64_t)p->group << 16 | p->step << 8 | tag, 0xa17);
	uint32_t odd = p->ops[tag].odd ? 1 + (uint32_t)(sim_hash(s, h, p->no, 0) % 2) : 0;
	bool quantized = h % 100 < 30;
	uint32_t mode = (uint32_t)(h >> 32) % 4;

	sub->dtype = F32;
	sub->count = tag ? 100 + tag : (h >> 40) % 2 ? UINT64_C(1) << 20 : SIM_LARGE / 4;
	if (odd == 1)
		sub->count++;
	if (odd == 2) {
		mode = (mode + 1) % 4;
		quantized |= h >> 48 & 1;
	}
	if (quantized)
		sub->quant = wire_quant_put(&modes[mode]);
	if (odd == 2 && !quantized)
		sub->op = 1;
	sub->bytes = sub->count * wire_dtype_size[sub->dtype];
}
