/* SPDX-License-Identifier: MIT
 *
 * Receives operands on a link's stream for the eager path. Each operand is read directly into the
 * memory of its operation. An operand whose operation has not started on this host is not read,
 * unless its operation may begin speculatively.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"

#define READ_AHEAD 4096u               /* bytes: one system call reads many short operands */
#define READ_MAX   ((size_t)128 << 10) /* bytes of one read: reduced while they are in the cache */
#define TURN       ((size_t)4 << 20)   /* bytes before other parts of the loop have their turn */

struct eager_in {
	struct net_in_link *link;
	struct run *run;
	struct cc_id peer;
	int fd;
	struct cc_watch *watch;
	uint8_t ahead[READ_AHEAD];
	size_t begin, end; /* bounds of the unused bytes in `ahead` */
	bool under_way;    /* the operand that `d` announced is being received */
	struct wlk_data d;
	uint32_t got;                 /* bytes of this operand that have arrived */
	bool wanted;                  /* the operand had a destination when its first byte came */
	size_t left;                  /* bytes of this turn */
	bool busy, closed;            /* if closed while busy, go_on frees it */
	struct eager_in *prev, *next; /* neighbours in the list of the run */
};

enum step {
	STEP_ON,    /* goes on */
	STEP_WAIT,  /* waits for bytes, or for the start of an operation */
	STEP_YIELD, /* the turn has ended */
	STEP_END,   /* the stream has ended, and `why` is set */
};

static void refuse(const struct eager_in *in, const char *what, const char **why)
{
	char peer[CC_ID_SHORT_SIZE];

	rep_complain(&in->run->o->base->report, CC_LOG_WARNING, "agent %s sent %s",
		cc_id_short(&in->peer, peer), what);
	*why = cc_err_str(CC_ERR_PROTO);
}

static struct xfer *find(const struct eager_in *in)
{
	struct xfer *x;

	HASH_FIND(hh, in->run->xfers, &in->d.seq, sizeof in->d.seq, x);
	return x && !x->over ? x : NULL;
}

/* Reads at most `len` bytes to `to`, and further bytes to `in->ahead`. *ret: the bytes at `to`. */
static enum step receive(
	struct eager_in *in, uint8_t *to, size_t len, size_t *ret, const char **why)
{
	struct iovec v[2] = {{to, len}, {in->ahead + in->end, sizeof in->ahead - in->end}};
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
	ssize_t n;

	if (in->left == 0)
		return STEP_YIELD;
	do
		n = recvmsg(in->fd, &msg, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return STEP_WAIT;
	if (n <= 0) {
		*why = n < 0 ? strerror(errno) : NULL;
		return STEP_END;
	}
	in->left -= (size_t)n < in->left ? (size_t)n : in->left;
	*ret = (size_t)n < len ? (size_t)n : len;
	in->end += (size_t)n - *ret;
	return STEP_ON;
}

static enum step take_header(struct eager_in *in, const char **why)
{
	const char *what;
	size_t none;
	enum step s;

	if (in->begin > 0) {
		memmove(in->ahead, in->ahead + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->begin = 0;
	}
	while (in->end < WLK_DATA_SIZE) {
		s = receive(in, NULL, 0, &none, why);
		if (s != STEP_ON)
			return s;
	}
	if (wlk_data_get(in->ahead, &in->d, &what) < 0) {
		refuse(in, what, why);
		return STEP_END;
	}
	if (in->d.phase != WLK_EAGER || !op_eager_is_possible(in->d.len, 2) || in->d.offset != 0) {
		refuse(in, "a segment that is not of the eager path", why);
		return STEP_END;
	}
	in->begin = WLK_DATA_SIZE;
	in->under_way = true;
	in->got = 0;
	return STEP_ON;
}

/* Receives the next bytes of the operand. dst: NULL if the operand is not needed. */
static enum step take_payload(struct eager_in *in, uint8_t *dst, const char **why)
{
	size_t wanted = in->d.len - in->got, n = in->end - in->begin;
	enum step s;

	if (n > wanted)
		n = wanted;
	if (n > 0) {
		if (dst)
			memcpy(dst + in->got, in->ahead + in->begin, n);
		in->begin += n;
	} else {
		in->begin = in->end = 0;
		wanted = wanted < READ_MAX ? wanted : READ_MAX;
		s = receive(in, dst ? dst + in->got : NULL, dst ? wanted : 0, &n, why);
		if (s != STEP_ON)
			return s;
	}
	in->got += (uint32_t)n;
	return STEP_ON;
}

/* Returns the memory for the operand: in `x`, among the unexpected operands, or NULL. */
static uint8_t *dst_of(const struct eager_in *in, const struct xfer *x)
{
	return x ? op_eager_dst(x, in->d.seg) : op_eager_unexpected_dst(in->run, &in->d);
}

/* Returns NULL or an objection to the operand. A host that begins speculatively may use the seq for
 * another operation. Then *x becomes NULL, and the votes decide which operation has the seq. */
static const char *objection(const struct eager_in *in, struct xfer **x)
{
	const struct cc_id *from = &in->peer;
	const char *what = NULL;
	bool grave = false;

	if (*x)
		what = op_eager_objection(*x, &in->d, from, &grave);
	else if (in->got == 0)
		what = op_eager_unexpected_objection(in->run, &in->d, from);
	if (!what || grave || !*x)
		return what;
	*x = NULL;
	return NULL;
}

static enum step take_operand(struct eager_in *in, const char **why)
{
	struct xfer *x = find(in);
	const char *what = objection(in, &x);
	uint8_t *to = dst_of(in, x);
	enum step s;

	if (!x && in->got == 0 && in->d.seq > in->run->last_seq)
		return STEP_WAIT;
	if (what) {
		refuse(in, what, why);
		return STEP_END;
	}
	if (in->got == 0)
		in->wanted = to != NULL;
	if (!in->wanted) { /* its first bytes were dropped, so the rest is dropped, too */
		x = NULL;
		to = NULL;
	}
	while (in->got < in->d.len) {
		s = take_payload(in, to, why);
		if (s != STEP_ON)
			return s;
		if (x)
			op_eager_got(x, in->d.seg, in->got);
		else if (to)
			op_eager_unexpected_got(in->run, &in->d, in->got);
	}
	in->under_way = false;
	if (x)
		op_eager_arrived(x, &in->d);
	return STEP_ON;
}

static void destroy(struct eager_in *in)
{
	cc_watch_free(in->watch);
	close(in->fd);
	free(in);
}

static bool watch(struct eager_in *in);

static void go_on(void *arg)
{
	struct eager_in *in = arg;
	const char *why = "";
	enum step s = STEP_ON;

	if (in->busy)
		return;
	in->busy = true;
	in->left = TURN;
	while (s == STEP_ON && !in->closed)
		s = in->under_way ? take_operand(in, &why) : take_header(in, &why);
	in->busy = false;
	if (s == STEP_YIELD && !in->closed && !watch(in)) {
		why = cc_err_str(CC_ERR_NOMEM);
		s = STEP_END;
	}
	if (in->closed)
		destroy(in);
	else if (s == STEP_END)
		net_in_link_down(in->link, !why, why ? why : "closed by the other agent");
}

/* Watches the stream edge-triggered, because bytes of an operation that has not started here stay
 * unread. A new watch reports bytes that are already there, too. */
static bool watch(struct eager_in *in)
{
	cc_watch_free(in->watch);
	in->watch = cc_watch_new(in->run->o->base->loop, in->fd, true, go_on, in);
	return in->watch != NULL;
}

void *op_eager_in_open(void *run, struct net_in_link *l, const struct cc_id *peer, int fd)
{
	struct eager_in *in = calloc(1, sizeof *in);
	struct run *r = run;

	if (!in) {
		close(fd);
		return NULL;
	}
	in->link = l;
	in->run = r;
	in->peer = *peer;
	in->fd = fd;
	if (!watch(in)) {
		destroy(in);
		return NULL;
	}
	(void)cc_tcp_tune(fd);
	/* The engine checks on the other streams of the link whether the host is alive. */
	cc_tcp_allow_silence(fd, r->bounds.ms[CC_BOUND_STREAM]);
	DL_APPEND(r->eager_ins, in);
	return in;
}

void op_eager_in_close(void *stream)
{
	struct eager_in *in = stream;

	DL_DELETE(in->run->eager_ins, in);
	in->closed = true;
	if (!in->busy)
		destroy(in);
}

void op_eager_ins_look(struct run *r)
{
	struct eager_in *in, *tmp;

	DL_FOREACH_SAFE (r->eager_ins, in, tmp) {
		if (in->under_way)
			go_on(in);
	}
}
