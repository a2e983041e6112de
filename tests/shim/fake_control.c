/* SPDX-License-Identifier: MIT
 *
 * Functions by which tests control the fake agent from their own threads.
 */
#include "tests/shim/fake_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

void fake_script(
	struct fake *f, enum wl_type type, enum fake_action action, uint32_t code, const char *text)
{
	pthread_mutex_lock(&f->lock);
	f->script[type].action = action;
	f->script[type].code = code;
	f->script[type].text = text;
	pthread_mutex_unlock(&f->lock);
}

void fake_release(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	/* The last request is answered first, because answers may come in any order. */
	while (f->n_held > 0) {
		const struct held *h = &f->held[--f->n_held];

		fake_answer(f, h->conn, &h->request, FAKE_ANSWER);
	}
	pthread_mutex_unlock(&f->lock);
}

void fake_outcome(struct fake *f, uint64_t seq)
{
	pthread_mutex_lock(&f->lock);
	MUST(f->n_outcomes < QUEUED);
	f->outcomes[f->n_outcomes++] = seq;
	pthread_mutex_unlock(&f->lock);
}

void fake_stall(struct fake *f, bool stalled)
{
	pthread_mutex_lock(&f->lock);
	f->stalled = stalled;
	fake_kick(f);
	pthread_mutex_unlock(&f->lock);
}

void fake_hang_up(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < CONNS; i++)
		fake_close_conn(f, i);
	fake_kick(f);
	pthread_mutex_unlock(&f->lock);
}

void fake_goodbye(struct fake *f, uint32_t code, const char *text)
{
	struct wl_reply r = {.code = code};

	snprintf(r.text, sizeof r.text, "%s", text);
	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < CONNS; i++)
		if (f->conns[i] >= 0)
			fake_reply(f, i, &r, NULL, 0);
	pthread_mutex_unlock(&f->lock);
	fake_hang_up(f);
}

unsigned fake_seen(struct fake *f, enum wl_type type)
{
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = f->seen[type];
	pthread_mutex_unlock(&f->lock);
	return n;
}

void fake_await_seen(struct fake *f, enum wl_type type, unsigned n)
{
	pthread_mutex_lock(&f->lock);
	while (f->seen[type] < n)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

struct wl_request fake_last(struct fake *f, enum wl_type type)
{
	struct wl_request q;

	pthread_mutex_lock(&f->lock);
	q = f->last[type];
	pthread_mutex_unlock(&f->lock);
	return q;
}

void fake_generation(struct fake *f, uint64_t generation)
{
	pthread_mutex_lock(&f->lock);
	f->generation = generation;
	pthread_mutex_unlock(&f->lock);
}

int fake_beat(struct fake *f)
{
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pthread_mutex_lock(&f->lock);
	f->beat = pair[1];
	pthread_mutex_unlock(&f->lock);
	return pair[0];
}

void fake_hash_type(struct fake *f, uint32_t hash_type)
{
	pthread_mutex_lock(&f->lock);
	f->hash_type = hash_type;
	pthread_mutex_unlock(&f->lock);
}

uint64_t fake_generation_now(struct fake *f)
{
	uint64_t generation;

	pthread_mutex_lock(&f->lock);
	generation = f->generation;
	pthread_mutex_unlock(&f->lock);
	return generation;
}

void fake_await_connections(struct fake *f, unsigned n)
{
	pthread_mutex_lock(&f->lock);
	while (f->n_conns != n)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

unsigned fake_accepted(struct fake *f)
{
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = f->accepted;
	pthread_mutex_unlock(&f->lock);
	return n;
}

void fake_view(struct fake *f, struct wire_view view)
{
	pthread_mutex_lock(&f->lock);
	f->view = view;
	pthread_mutex_unlock(&f->lock);
}

void fake_not_optimized(struct fake *f, const char *text)
{
	pthread_mutex_lock(&f->lock);
	f->not_optimized = text;
	pthread_mutex_unlock(&f->lock);
}

struct wire_view fake_view_now(struct fake *f)
{
	struct wire_view view;

	pthread_mutex_lock(&f->lock);
	view = f->view;
	pthread_mutex_unlock(&f->lock);
	return view;
}

void fake_attrs(struct fake *f, uint32_t hosts, uint32_t pos)
{
	pthread_mutex_lock(&f->lock);
	MUST(f->n_comms > 0);
	fake_write_attrs(
		fake_attr_of(&f->comms[f->n_comms - 1]), SHM_COMM_CONNECTED, hosts, pos, 0, NULL);
	pthread_mutex_unlock(&f->lock);
}

void fake_master_addr(struct fake *f, const struct cc_addr *at)
{
	pthread_mutex_lock(&f->lock);
	f->master_addr = *at;
	for (uint32_t i = 0; i < f->n_comms; i++)
		fake_write_master_addr(fake_attr_of(&f->comms[i]), at);
	pthread_mutex_unlock(&f->lock);
}

void fake_lose(struct fake *f, uint32_t code, const char *text)
{
	pthread_mutex_lock(&f->lock);
	MUST(f->n_comms > 0);
	fake_write_attrs(fake_attr_of(&f->comms[f->n_comms - 1]), SHM_COMM_LOST, 0, 0, code, text);
	pthread_mutex_unlock(&f->lock);
}

void fake_break_attrs(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	MUST(f->n_comms > 0);
	atomic_fetch_add(&fake_attr_of(&f->comms[f->n_comms - 1])->version, 1);
	pthread_mutex_unlock(&f->lock);
}

struct fake_op fake_take(struct fake *f)
{
	struct fake_op op;

	pthread_mutex_lock(&f->lock);
	while (f->taken == f->queued)
		pthread_cond_wait(&f->changed, &f->lock);
	op = f->queue[f->taken++ % QUEUED];
	pthread_mutex_unlock(&f->lock);
	return op;
}

bool fake_take_unless(struct fake *f, const _Atomic bool *over, struct fake_op *ret)
{
	bool taken;

	pthread_mutex_lock(&f->lock);
	while (f->taken == f->queued && !atomic_load(over))
		pthread_cond_wait(&f->changed, &f->lock);
	taken = f->taken != f->queued;
	if (taken)
		*ret = f->queue[f->taken++ % QUEUED];
	pthread_mutex_unlock(&f->lock);
	return taken;
}

void fake_nudge(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

unsigned fake_waiting(struct fake *f)
{
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = f->queued - f->taken;
	pthread_mutex_unlock(&f->lock);
	return n;
}

uint64_t fake_region(struct fake *f, uint64_t region, uint8_t **ret)
{
	uint64_t size = 0;

	pthread_mutex_lock(&f->lock);
	if (region > 0 && region <= f->n_regions && f->regions[region].map) {
		size = f->regions[region].size;
		*ret = f->regions[region].map;
	}
	pthread_mutex_unlock(&f->lock);
	return size;
}

void fake_asked(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->asked = true;
	pthread_mutex_unlock(&f->lock);
}

static void hand_over(struct fake *f, uint32_t comm, uint64_t id)
{
	struct wl_reply r = {.comm = comm, .region = id, .size = f->regions[id].size};

	if (!f->asked && f->comms[comm].conn >= 0)
		fake_reply(f, f->comms[comm].conn, &r, &f->regions[id].fd, 1);
}

uint64_t fake_result_region(struct fake_op *op, uint64_t size)
{
	struct fake *f = op->f;
	uint64_t id = 0;

	pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; i < f->n_comms; i++) {
		struct comm *c = &f->comms[i];
		uint64_t *mine = &c->result[op->sqe.slot];

		if ((uint8_t *)op->slot < c->queue || (uint8_t *)op->slot >= c->queue + SHM_SIZE)
			continue;
		if (*mine == 0 || f->regions[*mine].size < size) {
			*mine = fake_make_region(f, size);
			hand_over(f, i, *mine);
		}
		id = *mine;
	}
	MUST(id > 0);
	op->area = f->regions[id].map;
	pthread_mutex_unlock(&f->lock);
	return id;
}
