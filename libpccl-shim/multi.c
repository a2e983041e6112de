/* SPDX-License-Identifier: MIT
 *
 * Several all-reduces at the same time, repeated until all have succeeded.
 *
 * A pass goes through the operations that are not done, in the order of their descriptors. It keeps
 * up to `window` operations in flight and awaits the one that was launched first. When an operation
 * has failed, the pass launches nothing more and awaits the operations in flight. Then another pass
 * begins.
 *
 * Members cannot end up waiting for each other, even if they see a failure at different moments.
 * The proof: an operation ends in the same way for all members, so either all see it done or all
 * see it failed. Members differ only in that some of them have not seen some ends yet. Let m be the
 * lowest descriptor that is not done. Every member launches m: everything below m is done, a window
 * is at least one, and a pass follows the order of the descriptors, so m is the first operation
 * that a pass launches. A member that has not begun this pass yet is awaiting operations of its
 * last pass, oldest first. Either all members have launched these operations, so they end. Or a
 * member has stopped launching because of a loss. Then these operations end, too: no attempt spans
 * a loss, so an operation that waits for votes is aborted, and a vote with too low a generation is
 * refused. So at some time all members have m in flight with the same generation, and m ends. If m
 * fails, another loss is the reason, and the group is smaller.
 *
 * An operation can also end for all members because they disagree on it, or because one of them
 * cannot take part (its descriptor may be wrong). Such an operation is not repeated, but the others
 * are still launched: a member that stopped there would make members with a larger window wait.
 * Windows need not be equal.
 *
 * If a member's table (its array of descriptors) is wrong as a whole, the member refuses the
 * operations of the table one at a time, in the same order. It takes part in each operation, and
 * each ends for all members with the reason.
 */
#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/reduce.h"

struct flight {
	size_t index; /* index of the descriptor */
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
	bool lost;          /* an operation of this pass must be repeated */
	bool over;          /* nothing more is launched */
	pcclResult_t error; /* the first error, which is returned, and its sentence */
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
				"descriptors[%zu]: tag %llu is already that of descriptors[%zu]",
				names[i].index, (unsigned long long)names[i].tag,
				names[i - 1].index);
	free(names);
	return r;
}

/* Checks that there is a communicator and a table. If one of them is missing, the error cannot be
 * sent to the other peers. */
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

	/* The call repeats lost operations itself, so its caller need not see
	 * pcclRankConnectionLost. */
	return r == pcclRankConnectionLost ? pccl_comm_connected(c) : r;
}

/* Checks the table and allocates the memory of the batch. */
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

/* Is a slot free? Operations that the caller has started before this call take slots, too. */
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
		/* The tag is that of an operation in flight: the other peers meet that operation,
		 * or their calls fail in the same way. */
		b->done[index] = r == pcclInvalidArgument;
		b->n_done += b->done[index];
		note(b, index, r);
		return;
	}
	f->index = index;
	b->n_flights++;
}

/* Has the operation ended for all members, so that it must not be repeated? */
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

/* Takes part in the operations without carrying them out: they end for all members with this error
 * and the thread's sentence. Needs no memory. */
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
			if (r == pcclInvalidArgument) /* the tag is in flight, see launch */
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
