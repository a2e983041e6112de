/* SPDX-License-Identifier: MIT
 *
 * Several all-reduces at the same time, repeated until all have succeeded.
 *
 * A pass goes through the operations that are not done in the order of their descriptors, keeps up
 * to `window` of them in flight and awaits the one that was launched first. Once one has failed
 * nothing more is launched, those in flight are awaited, and another pass begins.
 *
 * Why members cannot end up waiting for each other, whatever the moments at which they see a
 * failure. An operation ends alike for all: each of its members sees it done, or each sees it
 * failed, so what is done differs between members only by what some have not looked at yet. Let m
 * be the lowest descriptor that is not done. Every member gets to m: before it launches anything
 * else in a pass it launches m, since a pass goes by the order of descriptors, a window is at least
 * one, and everything below m is done. A member that has not begun that pass yet is awaiting
 * operations of its last one, oldest first; these have either been launched by all, so that they
 * end, or somebody has stopped launching because of a loss. In that case they end as well: no
 * attempt spans a loss, so what waits for votes is aborted, and what is launched with too low a
 * generation is refused. Thus all members have m in flight sooner or later, with the same
 * count, and it ends; if it fails, then for another loss, and the group is smaller. What the
 * members disagree on, or one of them cannot take part in (its descriptor may be wrong), has ended
 * for all of them and is not repeated, but the others are launched all the same: who stopped there
 * would leave those waiting whose window is larger. Windows need not be equal.
 *
 * A table that is wrong as a whole is refused to the others tag by tag, in the same order: the
 * member takes part in all its operations, one at a time, and each ends for all with the reason.
 */
#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/reduce.h"

struct flight {
	size_t index; /* of the descriptor */
	uint32_t slot;
};

struct batch {
	pcclComm_t *comm;
	const pcclReduceOpDescriptor_t *ops;
	size_t count, n_done;
	bool *done;
	uint32_t window;
	struct flight flights[SHM_SLOTS]; /* a ring, oldest first */
	uint32_t first, n_flights;
	bool lost;          /* something of this pass is to be repeated */
	bool over;          /* nothing more is launched */
	pcclResult_t error; /* the first one that is returned, and its sentence */
	char text[PCCL_TEXT_MAX];
	pcclReduceInfo_t info;
};

struct named {
	uint64_t tag;
	size_t index;
};

static int by_tag(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static pcclResult_t fail_at(size_t index, pcclResult_t r)
{
	char text[PCCL_TEXT_MAX];

	pccl_fail_text(text);
	return pccl_fail(r, "descriptors[%zu]: %s", index, text);
}

static pcclResult_t check_tags(const pcclReduceOpDescriptor_t *ops, size_t count)
{
	struct named *names = calloc(count, sizeof *names);
	pcclResult_t r = pcclSuccess;

	if (!names)
		return pccl_fail_memory("no memory for %zu tags", count);
	for (size_t i = 0; i < count; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pccl_fail never succeeds */
		names[i] = (struct named){ops[i].descriptor.tag, i};
	qsort(names, count, sizeof *names, by_tag);
	for (size_t i = 1; i < count && r == pcclSuccess; i++)
		if (names[i].tag == names[i - 1].tag)
			r = pccl_fail(pcclInvalidArgument,
				"descriptors[%zu]: tag %llu is that of descriptors[%zu] already",
				names[i].index, (unsigned long long)names[i].tag,
				names[i - 1].index);
	free(names);
	return r;
}

/* Is there a table of a communicator? Else the others cannot be told. */
static pcclResult_t check_table(
	const pcclReduceOpDescriptor_t *ops, size_t count, const pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);

	if (r == pcclSuccess && !ops && count > 0)
		r = pccl_fail(pcclInvalidArgument, "descriptors must not be NULL");
	return r;
}

static pcclResult_t check_connected(const pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_connected(c);

	/* This function repeats a lost operation itself; the caller need not. */
	return r == pcclRankConnectionLost ? pccl_comm_connected(c) : r;
}

/* Checks it and makes what the batch needs. */
static pcclResult_t prepare(struct batch *b, int max_in_flight)
{
	pcclResult_t r;

	if (max_in_flight < 1)
		return pccl_fail(pcclInvalidArgument, "max_in_flight must be at least 1, not %d",
			max_in_flight);
	b->window = max_in_flight < (int)SHM_SLOTS ? (uint32_t)max_in_flight : SHM_SLOTS;
	r = b->count > 0 ? check_tags(b->ops, b->count) : pcclSuccess;
	if (r != pcclSuccess)
		return r;
	b->done = calloc(b->count + 1, sizeof *b->done);
	if (!b->done)
		return pccl_fail_memory("no memory for %zu operations", b->count);
	return pcclSuccess;
}

static void note(struct batch *b, size_t index, pcclResult_t r)
{
	if (r == pcclRankConnectionLost) {
		b->lost = true;
		return;
	}
	b->over |= !b->done[index];
	if (b->error == pcclSuccess) {
		b->error = fail_at(index, r);
		pccl_fail_text(b->text);
	}
}

/* Other operations of the caller may be in flight, and take slots. */
static bool slots_left(pcclComm_t *c)
{
	bool left;

	pthread_mutex_lock(&c->lock);
	left = c->n_ops < SHM_SLOTS;
	pthread_mutex_unlock(&c->lock);
	return left;
}

static void launch(struct batch *b, size_t index)
{
	const pcclReduceOpDescriptor_t *op = &b->ops[index];
	struct flight *f = &b->flights[(b->first + b->n_flights) % SHM_SLOTS];
	pcclResult_t r = pccl_reduce_launch(
		b->comm, op->sendbuf, op->recvbuf, &op->descriptor, PCCL_LAUNCH_BATCH, &f->slot);

	if (r != pcclSuccess) {
		/* Under a tag that is in flight the others meet that operation, or end likewise. */
		b->done[index] = r == pcclInvalidArgument;
		b->n_done += b->done[index];
		note(b, index, r);
		return;
	}
	f->index = index;
	b->n_flights++;
}

/* Has the operation ended for all its members, which are not to repeat it? */
static bool has_ended(const struct batch *b, pcclResult_t r)
{
	if (r == pcclOutOfMemory || r == pcclInternalError)
		return pccl_comm_stays(b->comm);
	return r == pcclSuccess || r == pcclInvalidArgument;
}

static void await_oldest(struct batch *b)
{
	const struct flight *f = &b->flights[b->first];
	pcclReduceInfo_t info;
	pcclResult_t r = pccl_reduce_await(b->comm, f->slot, &info);

	b->first = (b->first + 1) % SHM_SLOTS;
	b->n_flights--;
	b->done[f->index] = has_ended(b, r);
	b->n_done += b->done[f->index];
	if (r != pcclSuccess) {
		note(b, f->index, r);
		return;
	}
	b->info.local_world_size = info.local_world_size;
	b->info.tx_bytes += info.tx_bytes;
	b->info.rx_bytes += info.rx_bytes;
}

static void pass(struct batch *b)
{
	size_t next = 0;

	b->lost = false;
	for (;;) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pccl_fail never succeeds */
		while (next < b->count && b->done[next])
			next++;
		if (next < b->count && !b->lost && !b->over && b->n_flights < b->window &&
			(b->n_flights == 0 || slots_left(b->comm)))
			launch(b, next++);
		else if (b->n_flights > 0)
			await_oldest(b);
		else
			return;
	}
}

static bool is_repeated(const struct batch *b, size_t index)
{
	size_t i = 0;

	while (b->ops[i].descriptor.tag != b->ops[index].descriptor.tag)
		i++;
	return i < index;
}

/* Takes part in the operations without carrying them out: they end with this error, whose sentence
 * is the thread's, for all. Needs no memory. */
static pcclResult_t refuse_all(struct batch *b, pcclResult_t error)
{
	pccl_fail_text(b->text);
	for (size_t i = 0; i < b->count; i++) {
		pcclResult_t r = pcclSuccess;
		uint32_t slot;

		if (is_repeated(b, i))
			continue;
		do {
			r = pccl_reduce_refuse(
				b->comm, &b->ops[i].descriptor, error, b->text, &slot);
			if (r == pcclInvalidArgument) /* a tag that is in flight, see launch */
				break;
			if (r != pcclSuccess)
				return pccl_fail(error, "%s", b->text);
			r = pccl_reduce_await(b->comm, slot, NULL);
		} while (r == pcclRankConnectionLost);
		if (!has_ended(b, r))
			return r;
	}
	return pccl_fail(error, "%s", b->text);
}

pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *communicator, pcclReduceInfo_t *reduce_info_out,
	int max_in_flight)
{
	pcclResult_t r = check_table(descriptors, count, communicator);
	struct batch b = {.comm = pccl_comm_own(communicator), .ops = descriptors, .count = count};

	if (r != pcclSuccess)
		return r;
	r = prepare(&b, max_in_flight);
	if (r != pcclSuccess)
		return refuse_all(&b, r);
	r = check_connected(communicator);
	if (r != pcclSuccess) {
		free(b.done);
		return r;
	}
	b.info.local_world_size = pccl_comm_view(b.comm).group;
	while (b.n_done < count && !b.over)
		pass(&b);
	free(b.done);
	if (b.error != pcclSuccess)
		return pccl_fail(b.error, "%s", b.text);
	if (reduce_info_out)
		*reduce_info_out = b.info;
	return pccl_ok();
}
