/* SPDX-License-Identifier: MIT
 *
 * The first half of an all-reduce: checks the arguments, submits the operation and copies the
 * operand in.
 */
#include "libpccl-shim/reduce.h"

#include <stdio.h>
#include <string.h>

#include "common/cc_plan.h"
#include "common/cc_route.h"
#include "libpccl-shim/registered.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/slot.h"
#include "proto/wire_quant.h"

#define OPERAND_MAX ((uint64_t)1 << 48) /* the limit of cc_plan_init, in bytes */
#define WINDOW      16u                 /* segments, 4 MiB in all */
#define WINDOW_FROM ((uint64_t)16 << 20)
/* From this size on, another thread copies for pcclAllReduceAsync. The wake-up of that thread would
 * pay off for smaller operands, too, but the thread takes a CPU from the daemons: on a host with
 * two CPUs, operations of 1 MiB were a third slower with it. */
#define LATER_FROM ((uint64_t)4 << 20)

static uint32_t element_size(pcclDataType_t t)
{
	switch (t) {
	case pcclUint8:
	case pcclInt8:
		return 1;
	case pcclInt16:
	case pcclUint16:
	case pcclFloat16:
	case pcclBFloat16:
		return 2;
	case pcclUint32:
	case pcclInt32:
	case pcclFloat:
		return 4;
	case pcclUint64:
	case pcclInt64:
	case pcclDouble:
		return 8;
	default: /* a type that exists only on the network, or no type */
		return 0;
	}
}

static pcclResult_t check_quantization(const pcclReduceDescriptor_t *d)
{
	struct wire_quant_numbers n = {.algo = (uint32_t)d->quantization_options.algorithm,
		.dtype = (uint32_t)d->quantization_options.quantized_datatype,
		.hint = (uint32_t)d->src_descriptor.distribution_hint};
	char why[WIRE_QUANT_TEXT];
	struct wire_quant q;

	if (n.algo & WIRE_QUANT_FEEDBACK)
		return pccl_fail(pcclInvalidArgument,
			"quantization_options: there is no quantization algorithm %d; error "
			"feedback is set by pcclSetErrorFeedback",
			(int)n.algo);
	if (wire_quant_get((uint32_t)d->src_descriptor.datatype, &n, &q, why) == 0)
		return pcclSuccess;
	return pccl_fail(pcclInvalidArgument, "quantization_options: %s", why);
}

static pcclResult_t check_descriptor(const pcclReduceDescriptor_t *d)
{
	uint32_t esize = element_size(d->src_descriptor.datatype);

	if (esize == 0)
		return pccl_fail(pcclInvalidArgument,
			"src_descriptor.datatype: there is no type %d",
			(int)d->src_descriptor.datatype);
	if (d->src_descriptor.distribution_hint < pcclDistributionNone ||
		d->src_descriptor.distribution_hint > pcclDistributionUniform)
		return pccl_fail(pcclInvalidArgument,
			"src_descriptor.distribution_hint: there is no hint %d",
			(int)d->src_descriptor.distribution_hint);
	if (d->op < pcclSum || d->op > pcclMin)
		return pccl_fail(pcclInvalidArgument, "op: there is no operation %d", (int)d->op);
	if (d->count > OPERAND_MAX / esize)
		return pccl_fail(pcclInvalidArgument,
			"count is %zu, the limit for elements of %u bytes is %llu", d->count, esize,
			(unsigned long long)(OPERAND_MAX / esize));
	return check_quantization(d);
}

static pcclResult_t check_buffers(const void *send, const void *recv, uint64_t bytes)
{
	uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;

	if (bytes > UINTPTR_MAX - s || bytes > UINTPTR_MAX - r)
		return pccl_fail(pcclInvalidArgument,
			"count: %llu bytes at these addresses go beyond the address space",
			(unsigned long long)bytes);
	if (s != r && s < r + bytes && r < s + bytes)
		return pccl_fail(pcclInvalidArgument,
			"sendbuff and recvbuff overlap: they must be equal or apart");
	return pcclSuccess;
}

/* Returns how many segments the window for an operand has, or 0 for no window. If the ring has one
 * host, a call that waits for its result can copy the rest of a large operand during the wait.
 */
static uint32_t choose_window(const struct pccl_op *op, const struct pccl_attrs *attrs, bool waits)
{
	return waits && attrs->hosts == 1 && op->bytes >= WINDOW_FROM ? WINDOW : 0;
}

/* Names the operand and the output in the submission if they are in registered memory. The agent
 * uses them in place, so they must be aligned. Other buffers are copied. */
static void place(const pcclComm_t *c, struct pccl_op *op, struct shm_sqe *e)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): refused by check_descriptor */
	if ((uintptr_t)op->recv.at % op->esize == 0)
		op->out = pccl_registered_get(
			op->att->session, op->recv.at, op->bytes, &e->out_region, &e->out_off);
	if (op->out)
		e->flags |= SHM_SQE_OUT_REGISTERED;
	if (op->out && op->recv.at != op->send.at && atomic_load(&c->disposable))
		e->flags |= SHM_SQE_OUT_DISPOSABLE;
	if ((uintptr_t)op->send.at % op->esize == 0)
		op->in = pccl_registered_get(
			op->att->session, op->send.at, op->bytes, &e->in_region, &e->in_off);
	if (op->in)
		e->flags |= SHM_SQE_IN_REGISTERED;
}

/* Gets the staging memory into which the operand is copied, and names it in the submission. */
static pcclResult_t stage(struct pccl_op *op, struct shm_sqe *e, uint32_t window)
{
	uint64_t size = window > 0 ? shm_window_size(window) : op->bytes;
	pcclResult_t r = pccl_staging_get(op->att, size, &op->staging);

	if (r != pcclSuccess) {
		op->staging = NULL;
		return r;
	}
	pccl_buf_pin(&op->send, &op->staging->map);
	e->in_region = op->staging->map.region;
	e->in_off = 0;
	e->window = window;
	if (window > 0) /* no other thread reads this, because the call waits */
		op->window = window;
	return pcclSuccess;
}

/* Chooses the order in which the operand is copied: the agent first needs the chunk that starts at
 * this host, to send it. It also needs the chunks that follow, to add them to partial sums that
 * arrive in the meantime. This is only a hint, since the ring may change. */
static void choose_order(
	const struct pccl_op *op, const struct pccl_attrs *attrs, struct shm_sqe *e)
{
	struct cc_plan plan;
	struct cc_span first;

	if (attrs->hosts < 2 ||
		cc_plan_init(&plan, op->count, op->esize, attrs->hosts, CC_PLAN_SEGMENT_MAX) < 0)
		return;
	first = cc_plan_chunk(&plan, cc_plan_first_chunk(&plan, attrs->pos % attrs->hosts));
	e->in_start = first.off;
	e->in_second = first.off + first.len;
}

/* The copies of an operand. Its two parts are [in_start, in_second), and the rest: from in_second
 * to the end, and then from 0 to in_start. */
struct copies {
	uint64_t begun[2], done[2]; /* bytes of each part */
	struct piece {
		uint64_t n;
		bool second;
	} pieces[PCCL_BUF_LANES]; /* under way; the oldest one is pieces[n_done % lanes] */
	uint64_t n_begun, n_done; /* numbers of pieces */
};

/* Begins to copy the next piece of [from, to) of the operand. */
static pcclResult_t begin_range(
	const struct pccl_op *op, struct copies *y, bool second, uint64_t from, uint64_t to)
{
	unsigned lane = (unsigned)(y->n_begun % op->send.kind->lanes);
	uint64_t n = to - from < op->send.kind->piece ? to - from : op->send.kind->piece;
	pcclResult_t r = pccl_buf_start_in(&op->send, from, op->staging->map.base + from, n, lane);

	if (r != pcclSuccess)
		return r;
	y->pieces[lane] = (struct piece){.n = n, .second = second};
	y->begun[second] += n;
	y->n_begun++;
	return pcclSuccess;
}

/* Begins to copy the next piece. Takes it from the two parts in turn, until one of them is
 * complete. */
static pcclResult_t begin_piece(const struct pccl_op *op, const struct shm_sqe *e, struct copies *y)
{
	uint64_t first = e->in_second - e->in_start, tail = op->bytes - e->in_second;
	const uint64_t *begun = y->begun;
	bool second = begun[0] == first || (begun[1] < begun[0] && begun[1] < op->bytes - first);

	if (!second)
		return begin_range(op, y, false, e->in_start + begun[0], e->in_second);
	if (begun[1] < tail)
		return begin_range(op, y, true, e->in_second + begun[1], op->bytes);
	return begin_range(op, y, true, begun[1] - tail, e->in_start);
}

/* Begins copies until as many as possible are under way, and waits for the oldest one. */
static pcclResult_t finish_piece(
	const struct pccl_op *op, const struct shm_sqe *e, struct copies *y)
{
	const struct pccl_buf_kind *kind = op->send.kind;
	unsigned lane = (unsigned)(y->n_done % kind->lanes);
	pcclResult_t r = pcclSuccess;

	while (r == pcclSuccess && y->begun[0] + y->begun[1] < op->bytes &&
		y->n_begun - y->n_done < kind->lanes)
		r = begin_piece(op, e, y);
	if (r != pcclSuccess)
		return r;
	y->n_done++;
	r = pccl_buf_finish_in(&op->send, lane);
	if (r == pcclSuccess)
		y->done[y->pieces[lane].second] += y->pieces[lane].n;
	return r;
}

/* Waits for the copies that are under way, whose bytes nobody needs. Keeps the sentence. */
static void give_up_copies(const struct pccl_op *op, struct copies *y)
{
	char text[PCCL_TEXT_MAX];

	pccl_fail_text(text);
	for (; y->n_done < y->n_begun; y->n_done++)
		(void)pccl_buf_finish_in(&op->send, (unsigned)(y->n_done % op->send.kind->lanes));
	(void)pccl_fail(pcclInternalError, "%s", text);
}

/* Before the operation is submitted, copies the first piece of an operand that can fail to be
 * copied: most failures show here, and the operation can still be refused. Also, the memory of a
 * device may have to wait for the work that computes the operand. */
static pcclResult_t copy_first(const struct pccl_op *op, const struct shm_sqe *e, struct copies *y)
{
	pcclResult_t r;

	if (!op->send.use)
		return pcclSuccess;
	r = finish_piece(op, e, y);
	if (r != pcclSuccess)
		give_up_copies(op, y);
	return r;
}

/* Has the operation ended, or is it about to be abandoned? */
static bool is_pointless(const struct pccl_op *op, const struct shm_slot *s)
{
	return atomic_load_explicit(&op->job.stop, memory_order_relaxed) ||
	       atomic_load_explicit(&s->state, memory_order_relaxed) == SHM_SLOT_DONE;
}

static void publish(const struct pccl_op *op, struct shm_slot *s, const struct copies *y)
{
	for (unsigned part = 0; part < 2; part++)
		if (atomic_load_explicit(&s->in_done[part], memory_order_relaxed) < y->done[part])
			atomic_store(&s->in_done[part], y->done[part]);
	pccl_slot_progress(op, s, false);
}

void pccl_reduce_leave_unfed(pcclComm_t *c, struct pccl_op *op, pcclResult_t code)
{
	static const char what[] = "cannot take part in an operation";
	char why[PCCL_TEXT_MAX], text[PCCL_TEXT_MAX], others[PCCL_TEXT_MAX];

	if (op->unfed || !pccl_session_check(op->att->session))
		return;
	op->unfed = true;
	pccl_fail_text(why);
	(void)snprintf(text, sizeof text, "this peer %s: %.500s", what, why);
	(void)snprintf(others, sizeof others, "it %s: %.500s", what, why);
	(void)pccl_comm_leave(c, code, text, others);
}

/* Copies the operand of an operation that is submitted. */
static void copy_in(pcclComm_t *c, const struct shm_sqe *e, struct copies *y)
{
	struct pccl_op *op = &c->ops[e->slot];
	struct shm_slot *s = pccl_attachment_slot(op->att, e->slot);
	pcclResult_t r = pcclSuccess;

	if (y->n_done > 0)
		publish(op, s, y);
	while (r == pcclSuccess && y->done[0] + y->done[1] < op->bytes && !is_pointless(op, s)) {
		r = finish_piece(op, e, y);
		publish(op, s, y);
	}
	give_up_copies(op, y);
	if (r != pcclSuccess && !is_pointless(op, s))
		pccl_reduce_leave_unfed(c, op, r);
}

/* Submits an eager operation before the copy, so that the vote begins during the copy. If the copy
 * can fail, it is made first. */
static void submit_eager(pcclComm_t *c, struct shm_sqe *e, enum pccl_op_state state)
{
	const struct pccl_op *op = &c->ops[e->slot];
	struct shm_slot *s = pccl_attachment_slot(op->att, e->slot);
	pcclResult_t r;

	if (op->send.use) {
		r = pccl_buf_copy_in(&op->send, 0, op->staging->map.base, op->bytes);
		if (r != pcclSuccess)
			pccl_slot_refuse(c, e, r);
		pccl_slot_submit(c, e, r == pcclSuccess ? op->bytes : 0, state);
		return;
	}
	pccl_slot_submit(c, e, 0, state);
	(void)pccl_buf_copy_in(&op->send, 0, op->staging->map.base, op->bytes);
	atomic_store(&s->in_done[1], op->bytes);
	pccl_slot_progress(op, s, true);
}

bool pccl_reduce_window_plan(const struct pccl_op *op, struct cc_plan *ret)
{
	return cc_plan_init(ret, op->count, op->esize, 1, CC_PLAN_SEGMENT_MAX) == 0;
}

/* Copies a segment to its place in the window. */
static pcclResult_t begin_segment(
	const struct pccl_op *op, const struct cc_plan *plan, uint32_t seg)
{
	struct cc_span span = cc_plan_segment(plan, seg);

	return pccl_buf_start_in(&op->send, span.off,
		op->staging->map.base + shm_window_off(op->window, seg), span.len,
		seg % op->send.kind->lanes);
}

pcclResult_t pccl_reduce_feed(
	const struct pccl_op *op, const struct cc_plan *plan, struct pccl_feed *f, uint32_t room)
{
	uint32_t lanes = op->send.kind->lanes;
	struct cc_span span = cc_plan_segment(plan, f->fed);
	pcclResult_t r = pcclSuccess;
	char text[PCCL_TEXT_MAX];

	while (r == pcclSuccess && f->begun < room && f->begun < f->fed + lanes) {
		r = begin_segment(op, plan, f->begun);
		if (r == pcclSuccess)
			f->begun++;
	}
	if (r == pcclSuccess)
		r = pccl_buf_finish_in(&op->send, f->fed++ % lanes);
	if (r == pcclSuccess) {
		f->bytes = span.off + span.len;
		return r;
	}
	pccl_fail_text(text);
	for (; f->fed < f->begun; f->fed++)
		(void)pccl_buf_finish_in(&op->send, f->fed % lanes);
	return pccl_fail(r, "%s", text);
}

/* Fills the window, and submits the operation. */
static void submit_window(pcclComm_t *c, struct shm_sqe *e, enum pccl_op_state state)
{
	const struct pccl_op *op = &c->ops[e->slot];
	struct pccl_feed f = {0};
	struct cc_plan plan;
	pcclResult_t r = pcclSuccess;

	if (pccl_reduce_window_plan(op, &plan))
		while (r == pcclSuccess && f.fed < op->window)
			r = pccl_reduce_feed(op, &plan, &f, op->window);
	if (r != pcclSuccess)
		pccl_slot_refuse(c, e, r);
	pccl_slot_submit(c, e, r == pcclSuccess ? f.bytes : 0, state);
}

pcclResult_t pccl_reduce_check(const void *send, const void *recv, const pcclReduceDescriptor_t *d)
{
	pcclResult_t r;

	if (d->count > 0 && (!send || !recv))
		return pccl_fail(pcclInvalidArgument, "%s must not be NULL",
			!send ? "sendbuff" : "recvbuff");
	r = check_descriptor(d);
	if (r != pcclSuccess)
		return r;
	return check_buffers(send, recv, d->count * element_size(d->src_descriptor.datatype));
}

/* Ends an operation without elements at once. No other peer takes part in it. */
static void begin_empty(pcclComm_t *c, uint32_t slot, enum pccl_op_state state)
{
	struct pccl_op *op = &c->ops[slot];
	struct shm_slot *s = pccl_attachment_slot(op->att, slot);

	pthread_mutex_lock(&c->lock);
	op->state = state;
	op->end_status = PCCL_END_DONE;
	pthread_mutex_unlock(&c->lock);
	atomic_store(&s->state, SHM_SLOT_FREE);
}

/* Submits an operation in the way that its operand needs. */
static void submit(
	pcclComm_t *c, struct shm_sqe *e, const struct pccl_attrs *attrs, enum pccl_op_state state)
{
	struct pccl_op *op = &c->ops[e->slot];
	struct copies copies = {.n_begun = 0};
	pcclResult_t r = pcclSuccess;

	if (op->window > 0) {
		submit_window(c, e, state);
	} else if (op->staging && op->bytes <= cc_route_eager_max(attrs->hosts)) {
		submit_eager(c, e, state);
	} else if (op->staging) {
		choose_order(op, attrs, e);
		r = copy_first(op, e, &copies);
		if (r != pcclSuccess)
			pccl_slot_refuse(c, e, r);
		pccl_slot_submit(c, e, 0, state);
		if (r == pcclSuccess)
			copy_in(c, e, &copies);
	} else {
		pccl_slot_submit(c, e, 0, state);
	}
}

static bool end_job(void *arg)
{
	struct pccl_job *j = arg;

	return atomic_load(&j->stop) || pccl_comm_interrupted(j->comm);
}

static void carry_out(struct pccl_job *j)
{
	struct shm_sqe *e = &j->entry;
	struct pccl_op *op = &j->comm->ops[e->slot];
	struct pccl_ender outer =
		pccl_session_endable((struct pccl_ender){.end = end_job, .arg = j});
	struct copies copies = {.n_begun = 0};
	struct pccl_attrs attrs;
	pcclResult_t r = stage(op, e, 0);

	(void)pccl_session_endable(outer);
	/* after an interrupt the operation has an end status, or no thread waits for it */
	if (r == pcclInterrupted)
		return;
	pccl_attachment_attrs(op->att, &attrs);
	choose_order(op, &attrs, e);
	if (r == pcclSuccess)
		r = copy_first(op, e, &copies);
	if (r != pcclSuccess) {
		/* If the agent is gone, no agent reads the refusal, but the operation already has
		 * an end status. */
		pccl_slot_refuse(j->comm, e, r);
		pccl_slot_push(j->comm, e, 0);
		return;
	}
	if (atomic_load(&j->stop)) {
		give_up_copies(op, &copies);
		return;
	}
	pccl_slot_push(j->comm, e, 0);
	pccl_copier_submitted(j);
	copy_in(j->comm, e, &copies);
}

/* As stage, but pcclInterrupt ends the wait for memory. After an interrupt the operation is
 * released without a submission. */
static pcclResult_t stage_or(pcclComm_t *c, struct pccl_op *op, struct shm_sqe *e, uint32_t window)
{
	struct pccl_ender outer = pccl_comm_enter(c);
	pcclResult_t r = stage(op, e, window);

	(void)pccl_session_endable(outer);
	return r;
}

static pcclResult_t open_buffers(struct pccl_op *op)
{
	pcclResult_t r;

	pccl_buf_find(&op->send, &op->recv);
	r = pccl_buf_open(&op->send, op->bytes, "sendbuff", &op->bufs);
	if (r == pcclSuccess)
		r = pccl_buf_open(&op->recv, op->bytes, "recvbuff", &op->bufs);
	return r;
}

/* Checks whether the operation may take part. If not, the caller submits a refusal, so that no
 * other peer waits for this one. */
static pcclResult_t admit(pcclComm_t *c, struct pccl_op *op, const struct pccl_call_args *args)
{
	pcclResult_t r;

	if (args->refused != pcclSuccess)
		return pccl_fail(args->refused, "%s", args->why);
	r = pccl_reduce_check(args->send, args->recv, &args->d);
	if (r == pcclSuccess && args->feedback && args->d.op > pcclAvg)
		r = pccl_fail(pcclInvalidArgument,
			"op: tag %llu has error feedback (pcclSetErrorFeedback), which is only for "
			"pcclSum and pcclAvg",
			(unsigned long long)args->d.tag);
	if (r == pcclSuccess && pccl_comm_is_fatal(c, op))
		r = pccl_comm_fail_fatal(op);
	return r == pcclSuccess ? open_buffers(op) : r;
}

pcclResult_t pccl_reduce_launch_on(pcclComm_t *c, const struct pccl_call_args *args,
	const struct pccl_attrs *attrs, enum pccl_launch how, uint32_t *ret_slot, bool *again)
{
	const pcclReduceDescriptor_t *d = &args->d;
	struct shm_sqe e = {.tag = d->tag,
		.count = d->count,
		.dtype = d->src_descriptor.datatype,
		.op = d->op,
		.src_hint = d->src_descriptor.distribution_hint,
		.quant_algo = d->quantization_options.algorithm,
		.quant_dtype = d->quantization_options.quantized_datatype,
		.generation = args->generation};
	enum pccl_op_state state = how == PCCL_LAUNCH_ASYNC ? PCCL_OP_IN_FLIGHT : PCCL_OP_AWAITED;
	struct pccl_op *op;
	pcclResult_t r = pccl_slot_take(c, args->att, d->tag, NULL, &e.slot, again);

	if (r != pcclSuccess || *again) {
		pccl_attachment_unref(args->att);
		return r;
	}
	*ret_slot = e.slot;
	op = &c->ops[e.slot];
	op->send = pccl_buf_host_at(args->send); /* admit finds their kinds */
	op->recv = pccl_buf_host_at(args->recv);
	op->bufs.stream = args->stream;
	op->count = d->count;
	op->esize = element_size(d->src_descriptor.datatype);
	op->bytes = op->count * op->esize;
	if (op->count == 0) {
		begin_empty(c, e.slot, state);
		return pcclSuccess;
	}
	if (args->feedback)
		e.quant_algo |= WIRE_QUANT_FEEDBACK;
	op->waited = how == PCCL_LAUNCH_WAIT;
	e.flags = (op->waited ? SHM_SQE_WAITED : 0u) |
		  (op->thread == c->main_thread ? SHM_SQE_MAIN : 0u);
	r = admit(c, op, args);
	if (r == pcclSuccess)
		place(c, op, &e);
	if (r == pcclSuccess && !op->in && how == PCCL_LAUNCH_ASYNC && op->bytes >= LATER_FROM) {
		pccl_slot_prepare(c, e.slot, state);
		pccl_copier_add(&op->job, c, &e, carry_out);
		return pcclSuccess;
	}
	if (r == pcclSuccess && !op->in)
		r = stage_or(c, op, &e, choose_window(op, attrs, state == PCCL_OP_AWAITED));
	if (r == pcclInterrupted) {
		pccl_slot_release(c, e.slot);
		return pccl_comm_fail_interrupted(c);
	}
	if (r != pcclSuccess && !pccl_session_check(op->att->session)) {
		*again = true;
		pccl_slot_release(c, e.slot);
		return r;
	}
	if (r != pcclSuccess)
		pccl_slot_refuse(c, &e, r);
	submit(c, &e, attrs, state);
	return pcclSuccess;
}

bool pccl_reduce_launch_later(pcclComm_t *c, const struct pccl_call_args *args)
{
	struct pccl_attrs attrs;
	uint32_t slot;
	bool again;

	pccl_attachment_attrs(args->att, &attrs);
	pccl_attachment_ref(args->att);
	return pccl_reduce_launch_on(c, args, &attrs, PCCL_LAUNCH_ASYNC, &slot, &again) ==
		       pcclSuccess &&
	       !again;
}
