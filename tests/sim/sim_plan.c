/* SPDX-License-Identifier: MIT
 *
 * The steps of a training program between two topology votes. They follow from the run, the group
 * and the number of the vote, so that all members of a group do the same, as programs must. The
 * votes on pending peers are the same for all groups.
 */
#include <string.h>

#include "tests/sim/sim.h"

static uint64_t run_number(const struct cc_id *run)
{
	uint64_t n;

	memcpy(&n, run->b, sizeof n);
	return n;
}

void sim_plan(struct sim *s, struct sim_peer *p)
{
	uint64_t all = sim_hash(s, run_number(&p->run), p->topo_ballot, 0);
	uint64_t mine = sim_hash(s, run_number(&p->run), p->topo_ballot, 1 + p->group);
	uint32_t i, n_reduce = (uint32_t)(mine >> 8) % 3, n_ask = (uint32_t)(all % 5) / 2;
	uint32_t n_sync = (uint32_t)(mine >> 40) % 5 / 2;

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
		.turn = p->topo_ballot,
		.step = p->step,
		.tag = tag};
}
