/* SPDX-License-Identifier: MIT
 *
 * The fake agent's part in a synchronization of shared state. The test's threads call these
 * functions.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_futex.h"
#include "kernels/hsh.h"
#include "tests/shim/fake_state.h"

static uint64_t region_size(void *arg, uint64_t region)
{
	uint8_t *map;

	return fake_region(arg, region, &map);
}

static const struct shm_state_header *header(const struct fake_op *op)
{
	return (const struct shm_state_header *)(const void *)op->manifest;
}

static void digest_keys(const struct fake_op *op, uint64_t ret[2])
{
	const struct shm_state_header *h = header(op);
	const struct shm_state_entry *v = (const void *)(op->manifest + h->tensors_off);
	uint8_t *buf = malloc(h->n_tensors * SHM_STATE_KEY_MAX + 1);
	size_t n = 0;

	MUST(buf);
	for (uint64_t i = 0; i < h->n_tensors; i++)
		n += shm_state_key_put(
			buf + n, &v[i], (const char *)op->manifest + h->names_off + v[i].name_off);
	hsh_digest(buf, n, ret);
	free(buf);
}

static void digest_content(const struct shm_state *st, uint64_t ret[2])
{
	uint64_t *hashes = calloc(st->n_tensors + 1, sizeof *hashes);
	size_t n = 0;

	MUST(hashes);
	for (uint32_t i = 0; i < st->n_tensors; i++)
		if (!st->tensors[i].may_differ)
			hashes[n++] = st->tensors[i].hash;
	hsh_digest(hashes, n * sizeof *hashes, ret);
	free(hashes);
}

static void check_hashes(const struct fake_op *op, const struct shm_state *st)
{
	const uint64_t *leaves = (const void *)(op->manifest + st->leaves_off);

	for (uint32_t i = 0; i < st->n_tensors; i++) {
		const struct shm_state_tensor *t = &st->tensors[i];

		MUST(t->may_differ || hsh_tensor(leaves + t->first_leaf, t->bytes) == t->hash);
	}
}

struct shm_state fake_manifest(const struct fake_op *op)
{
	const struct shm_sqe_sync *s = &op->sqe.sync;
	struct wm_sync_vote vote = {.n_tensors = s->n_tensors, .bytes = s->bytes};
	struct shm_state_limits lim = {
		.size = op->bytes, .vote = &vote, .region_size = region_size, .arg = op->f};
	char why[SHM_TEXT] = "";
	struct shm_state st;
	uint64_t d[2];

	if (shm_state_get(op->manifest, &lim, &st, why) < 0) {
		fprintf(stderr, "the manifest is wrong: %s\n", why);
		abort();
	}
	check_hashes(op, &st);
	digest_keys(op, d);
	MUST(d[0] == s->keys[0] && d[1] == s->keys[1]);
	digest_content(&st, d);
	MUST(d[0] == s->content[0] && d[1] == s->content[1]);
	MUST(op->sqe.tag == 0 &&
		(op->sqe.flags | SHM_SQE_SYNCED) == (SHM_SQE_SYNC | SHM_SQE_SYNCED) &&
		s->torn <= 1);
	return st;
}

const char *fake_tensor_name(const struct fake_op *op, const struct shm_state_tensor *t)
{
	static _Thread_local char buf[WIRE_TENSOR_NAME_MAX + 1];

	return shm_state_name(op->manifest, t, buf, sizeof buf);
}

uint8_t *fake_window(const struct fake_op *op, uint32_t slot)
{
	return op->manifest + header(op)->window_off + (size_t)slot * SHM_STATE_SLOT;
}

static void wake(struct shm_slot *s, uint32_t asleep)
{
	if (atomic_compare_exchange_strong(&s->wait, &asleep, SHM_WAIT_AWAKE))
		cc_futex_wake(&s->wait, 1);
}

void fake_work(struct fake_op *op, bool at_work)
{
	struct shm_state_end *end = (void *)(op->manifest + SHM_STATE_END_OFF);

	atomic_store(&end->at_work, at_work);
}

void fake_sync_begin(struct fake_op *op)
{
	fake_work(op, true);
	op->slot->seq = op->seq;
	op->slot->view = fake_view_now(op->f);
}

void fake_give(struct fake_op *op, const struct shm_state_command *command)
{
	struct shm_state_commands *c = (void *)(op->manifest + SHM_STATE_CMD_OFF);

	c->v[op->commands % SHM_STATE_SLOTS] = *command;
	atomic_store(&c->tail, ++op->commands);
	wake(op->slot, SHM_WAIT_COMMANDS);
}

void fake_command(struct fake_op *op, enum shm_state_op what, uint32_t slot, uint32_t tensor,
	uint64_t off, uint32_t len)
{
	fake_give(op, &(struct shm_state_command){
			      .op = what, .slot = slot, .tensor = tensor, .len = len, .off = off});
}

uint64_t fake_show(struct fake_op *op, uint64_t size, uint8_t **ret)
{
	uint64_t id;

	pthread_mutex_lock(&op->f->lock);
	id = fake_make_region(op->f, size);
	*ret = op->f->regions[id].map;
	pthread_mutex_unlock(&op->f->lock);
	return id;
}

uint32_t fake_await_acks(struct fake_op *op)
{
	struct shm_state_acks *a = (void *)(op->manifest + SHM_STATE_ACK_OFF);
	struct pollfd p = {.fd = op->data_bell, .events = POLLIN};
	uint64_t rung;

	while (atomic_load(&a->tail) != op->commands) {
		atomic_store(&op->slot->in_want, 1);
		if (atomic_load(&a->tail) == op->commands)
			break;
		if (poll(&p, 1, 10000) <= 0)
			abort(); /* the shim did not ring */
		(void)!read(op->data_bell, &rung, sizeof rung);
	}
	atomic_store(&a->head, op->commands);
	return atomic_load(&a->v[(op->commands - 1) % SHM_STATE_SLOTS]);
}

void fake_touch(struct fake_op *op)
{
	struct shm_state_end *end = (void *)(op->manifest + SHM_STATE_END_OFF);

	atomic_store(&end->touched, 1);
}

void fake_complete(struct fake_op *op, uint64_t revision)
{
	struct shm_state_end *end = (void *)(op->manifest + SHM_STATE_END_OFF);

	atomic_store_explicit(&end->revision, revision, memory_order_relaxed);
	atomic_store_explicit(&end->complete, 1, memory_order_release);
}

void fake_sync_end(struct fake_op *op, uint32_t code, const char *text, uint64_t revision,
	uint64_t tx_bytes, uint64_t rx_bytes)
{
	uint64_t generation = fake_generation_now(op->f);
	struct wire_view view = fake_view_now(op->f);
	struct shm_slot *s = op->slot;

	/* This lock is for ThreadSanitizer. Threads that use the slot one after the other
	 * synchronize in the library, which has another mapping of the slot. */
	pthread_mutex_lock(&op->f->lock);
	s->tx_bytes = tx_bytes;
	s->rx_bytes = rx_bytes;
	s->revision = revision;
	s->generation = generation;
	s->view = view;
	s->code = code;
	snprintf(s->text, sizeof s->text, "%s", text ? text : "");
	pthread_mutex_unlock(&op->f->lock);
	atomic_store(&s->state, SHM_SLOT_DONE);
	if (atomic_exchange(&s->wait, SHM_WAIT_AWAKE) != SHM_WAIT_AWAKE)
		cc_futex_wake(&s->wait, 1);
}
