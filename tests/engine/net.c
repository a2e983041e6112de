/* SPDX-License-Identifier: MIT */
#include "tests/engine/net.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t rng_state;

uint64_t rng(void)
{
	uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void tcp_pair(int pair[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(l, 0);
	ck_assert_int_eq(bind(l, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(l, 1), 0);
	ck_assert_int_eq(getsockname(l, (struct sockaddr *)&a, &len), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&a, sizeof a), 0);
	pair[1] = accept(l, NULL, NULL);
	ck_assert_int_ge(pair[1], 0);
	close(l);
}

void net_up(struct net *n, uint32_t hosts, uint32_t streams)
{
	memset(n, 0, sizeof *n);
	n->hosts = hosts;
	n->streams = streams;
	for (uint32_t i = 0; i < hosts; i++) {
		struct host *h = &n->h[i];

		h->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		h->e = eng_new(h->event_fd);
		ck_assert_ptr_nonnull(h->e);
		for (uint32_t m = 0; m < MEMBERS_MAX; m++) {
			h->bell[m] = eventfd(0, EFD_CLOEXEC);
			ck_assert_int_eq(eng_bell_add(h->e, h->bell[m]), 0);
		}
	}
	for (uint32_t i = 0; hosts > 1 && i < hosts; i++) {
		for (uint32_t s = 0; s < streams; s++) {
			int pair[2];

			tcp_pair(pair);
			ck_assert_int_eq(eng_add_tx_stream(n->h[i].e, 1, pair[0]), 0);
			ck_assert_int_eq(eng_add_rx_stream(n->h[(i + 1) % hosts].e, 2, pair[1]), 0);
		}
	}
}

void net_down(struct net *n)
{
	for (uint32_t i = 0; i < n->hosts; i++) {
		struct host *h = &n->h[i];

		for (uint32_t m = 0; m < MEMBERS_MAX; m++) {
			eng_bell_remove(h->e, h->bell[m]);
			close(h->bell[m]);
		}
		eng_free(h->e);
		close(h->event_fd);
	}
}

bool wait_event(struct host *h, struct eng_event *ev, int ms)
{
	struct pollfd p = {.fd = h->event_fd, .events = POLLIN};
	uint64_t v;

	for (;;) {
		if (eng_next_event(h->e, ev))
			return true;
		if (poll(&p, 1, ms) != 1)
			return false;
		ck_assert_int_eq(read(h->event_fd, &v, sizeof v), sizeof v);
	}
}

static uint64_t expected(const struct net *n, const struct op *o, uint64_t i, uint32_t world)
{
	uint32_t acc = 0;
	bool first = true;

	for (uint32_t h = 0; h < n->hosts; h++) {
		for (uint32_t m = 0; m < n->h[h].n_members; m++) {
			uint32_t v;

			memcpy(&v, n->h[h].in[m] + 4 * i, 4);
			if (first)
				acc = v;
			else if (o->op == KRN_MAX)
				acc = v > acc ? v : acc;
			else
				acc += v;
			first = false;
		}
	}
	return o->op == KRN_AVG ? acc / world : acc;
}

/* What a shim copies first if it takes its host to be at this position; any is allowed. */
static struct cc_span first_chunk(const struct cc_plan *p, uint32_t pos)
{
	if (p->hosts < 2)
		return (struct cc_span){0};
	return cc_plan_chunk(p, cc_plan_first_chunk(p, pos));
}

void start_one(struct net *n, const struct op *o, uint32_t pos, uint32_t world)
{
	struct host *h = &n->h[pos];
	struct eng_xfer_spec s = {.seq = o->seq,
		.tag = 77,
		.epoch = 3,
		.group = 5,
		.dtype = KRN_U32,
		.op = o->op,
		.pos = pos,
		.world = world,
		.tx_link = 1};

	ck_assert_int_eq(cc_plan_init(&s.plan, o->count, 4, n->hosts, o->segment_max), 0);
	s.segment_max = (uint32_t)o->segment_max;
	s.area = h->area;
	s.flags = h->flags;
	s.direct = o->direct ? h->direct : NULL;
	s.n_members = h->n_members;
	for (uint32_t m = 0; m < h->n_members; m++)
		s.members[m] = (struct eng_member){.in = h->in[m],
			.slot = &h->slot[m],
			.staged = o->staged,
			.in_start = first_chunk(&s.plan, pos + m).off,
			.in_second = first_chunk(&s.plan, pos + m).off +
				     first_chunk(&s.plan, pos + m).len};
	ck_assert_int_eq(eng_start(h->e, &s), 0);
}

/* What a shim does while it copies the operand in: publish, look, ring. */
void feed(struct net *n, const struct op *o)
{
	uint64_t bytes = o->count * 4, one = 1;
	struct cc_plan p;

	ck_assert_int_eq(cc_plan_init(&p, o->count, 4, n->hosts, o->segment_max), 0);
	for (uint64_t done = 0; done < bytes;) {
		done = done + 40000 < bytes ? done + 40000 : bytes;
		for (uint32_t i = 0; i < n->hosts; i++) {
			for (uint32_t m = 0; m < n->h[i].n_members; m++) {
				struct shm_slot *slot = &n->h[i].slot[m];
				uint64_t first = first_chunk(&p, i + m).len;

				first = first < done / 2 ? first : done / 2;
				first = done == bytes ? first_chunk(&p, i + m).len : first;
				atomic_store(&slot->in_done[0], first);
				atomic_store(&slot->in_done[1], done - first);
				if (atomic_exchange(&slot->in_want, 0))
					ck_assert_int_eq(write(n->h[i].bell[m], &one, 8), 8);
			}
		}
	}
}

void prepare(struct net *n, const struct op *o)
{
	uint64_t bytes = o->count * 4;

	for (uint32_t i = 0; i < n->hosts; i++) {
		struct host *h = &n->h[i];

		h->area = malloc(bytes);
		h->flags = calloc(o->count + 64, 1);
		h->direct = NULL;
		for (uint32_t m = 0; m < h->n_members; m++) {
			memset(&h->slot[m], 0, sizeof h->slot[m]);
			h->in[m] = malloc(bytes);
			for (uint64_t k = 0; k < o->count; k++) {
				uint32_t v = (uint32_t)rng();

				memcpy(h->in[m] + 4 * k, &v, 4);
			}
		}
		if (o->direct) {
			h->direct = malloc(bytes);
			memset(h->direct, OLD_BYTE, bytes);
		}
	}
}

void cleanup(struct net *n)
{
	for (uint32_t i = 0; i < n->hosts; i++) {
		free(n->h[i].area);
		free((void *)n->h[i].flags);
		free(n->h[i].direct);
		for (uint32_t m = 0; m < n->h[i].n_members; m++)
			free(n->h[i].in[m]);
	}
}

bool all_bytes(const uint8_t *p, uint8_t value, uint64_t n)
{
	return n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0);
}

void run_op(struct net *n, const struct op *o)
{
	uint32_t world = 0;
	uint8_t *want = malloc(o->count * 4);

	prepare(n, o);
	for (uint32_t i = 0; i < n->hosts; i++)
		world += n->h[i].n_members;
	ck_assert_uint_gt(world, 0);
	for (uint64_t k = 0; k < o->count; k++) {
		uint32_t v = (uint32_t)expected(n, o, k, world);

		memcpy(want + 4 * k, &v, 4);
	}
	/* In place: the output is the only member's operand. */
	if (o->in_place)
		for (uint32_t i = 0; i < n->hosts; i++) {
			ck_assert_ptr_nonnull(n->h[i].direct);
			memcpy(n->h[i].direct, n->h[i].in[0], o->count * 4);
		}
	for (uint32_t i = 0; i < n->hosts; i++) {
		uint8_t *in = n->h[i].in[0];

		if (o->in_place)
			n->h[i].in[0] = n->h[i].direct;
		start_one(n, o, i, world);
		n->h[i].in[0] = in;
	}
	if (o->staged)
		feed(n, o);
	for (uint32_t i = 0; i < n->hosts; i++) {
		struct host *h = &n->h[i];
		struct eng_event ev;

		ck_assert_msg(wait_event(h, &ev, WAIT_MS), "host %u: no end of the transfer", i);
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		ck_assert_uint_eq(ev.seq, o->seq);
		ck_assert_mem_eq(o->direct ? h->direct : h->area, want, o->count * 4);
		if (o->in_place) /* what the area holds now would undo it */
			ck_assert_mem_eq(h->area, h->in[0], o->count * 4);
		else if (o->direct)
			ck_assert(all_bytes(h->area, OLD_BYTE, o->count * 4));
		eng_release(h->e, o->seq);
	}
	free(want);
	cleanup(n);
}
