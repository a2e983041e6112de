/* SPDX-License-Identifier: MIT */
#include "tests/engine/net.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire_link.h"

uint64_t rng_state;

uint64_t rng(void)
{
	uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

struct cc_rings random_rings(uint32_t hosts)
{
	struct cc_rings x = {.n = 2 + (uint32_t)(rng() % (CC_RINGS_MAX - 1)), .hosts = hosts};

	for (uint32_t r = 0; r < x.n; r++) {
		x.share[r] = (uint16_t)(1 + rng() % (UINT16_MAX >> rng() % 16));
		for (uint32_t i = 0; i < hosts; i++) {
			uint32_t k = (uint32_t)(rng() % (i + 1));

			x.order[r][i] = x.order[r][k];
			x.order[r][k] = (uint8_t)i;
		}
	}
	ck_assert_int_eq(cc_rings_complete(&x), 0);
	return x;
}

struct cc_plan plan_op(const struct op *o, uint32_t hosts)
{
	struct cc_shares shares = cc_rings_shares(o->rings);
	struct cc_plan p;

	ck_assert_int_eq(cc_plan_init_shares(&p, o->count, 4, hosts, o->segment_max, &shares), 0);
	return p;
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

static void hosts_up(struct net *n, uint32_t hosts, uint32_t streams)
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
}

/* Opens the streams of a link from one position to another one. */
static void link_up(struct net *n, uint32_t from, uint32_t to, uint32_t out, uint32_t in,
	const struct cc_id *agent)
{
	for (uint32_t s = 0; s < n->streams; s++) {
		int pair[2];

		tcp_pair(pair);
		ck_assert_int_eq(eng_add_tx_stream(n->h[from].e, out, pair[0], ENG_NO_SET), 0);
		ck_assert_int_eq(eng_add_rx_stream(n->h[to].e, in, agent, pair[1]), 0);
	}
}

void net_up(struct net *n, uint32_t hosts, uint32_t streams)
{
	hosts_up(n, hosts, streams);
	for (uint32_t i = 0; hosts > 1 && i < hosts; i++)
		link_up(n, i, (i + 1) % hosts, 1, 2, NULL);
}

/* Returns the agent at this position of a mesh. */
static struct cc_id agent_at(uint32_t pos)
{
	return (struct cc_id){{(uint8_t)(1 + pos)}};
}

void net_up_mesh(struct net *n, uint32_t hosts, uint32_t streams)
{
	hosts_up(n, hosts, streams);
	n->mesh = true;
	for (uint32_t i = 0; i < hosts; i++) {
		struct cc_id agent = agent_at(i);

		for (uint32_t k = 0; k < hosts; k++)
			if (k != i)
				link_up(n, i, k, 1 + k, 101 + i, &agent);
	}
}

void fill_peers(const struct net *n, uint32_t pos, struct eng_peer *ret)
{
	memset(ret, 0, n->hosts * sizeof *ret);
	if (!n->mesh)
		ret[(pos + 1) % n->hosts].link = 1;
	for (uint32_t i = 0; n->mesh && i < n->hosts; i++)
		ret[i] = (struct eng_peer){.agent = agent_at(i), .link = i == pos ? 0 : 1 + i};
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

static uint64_t expected(const struct net *n, const struct op *o, uint64_t i, uint32_t world_size)
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
	return o->op == KRN_AVG ? acc / world_size : acc;
}

/* Returns the part that a shim copies first if its host is at this position. The shim may assume a
 * wrong position, and it does not know the route. */
static struct cc_span first_chunk(const struct op *o, uint32_t hosts, uint32_t pos)
{
	struct cc_plan p;

	if (hosts < 2)
		return (struct cc_span){0};
	ck_assert_int_eq(cc_plan_init(&p, o->count, 4, hosts, o->segment_max), 0);
	return cc_plan_chunk(&p, cc_plan_first_chunk(&p, pos));
}

void start_one(struct net *n, const struct op *o, uint32_t pos, uint32_t world_size)
{
	struct host *h = &n->h[pos];
	struct eng_member members[MEMBERS_MAX];
	struct eng_peer peers[HOSTS_MAX];
	struct eng_xfer_spec s = {.seq = o->seq,
		.tag = 77,
		.epoch = 3,
		.group = 5,
		.dtype = o->floats ? KRN_F32 : KRN_U32,
		.op = o->op,
		.plan = plan_op(o, n->hosts),
		.route = o->route,
		.rings = o->rings,
		.pos = pos,
		.world_size = world_size,
		.peers = peers};

	s.segment_max = (uint32_t)o->segment_max;
	s.area = h->area;
	s.flags = h->flags;
	s.direct = o->direct ? h->direct : NULL;
	fill_peers(n, pos, peers);
	free(h->scratch);
	s.scratch = h->scratch = malloc(eng_scratch_size(&s) + 1);
	s.n_members = h->n_members;
	s.members = members;
	for (uint32_t m = 0; m < h->n_members; m++) {
		struct cc_span first = first_chunk(o, n->hosts, pos + m);

		members[m] = (struct eng_member){.in = o->window[m] > 0 ? h->window[m] : h->in[m],
			.window = o->window[m],
			.out = o->outs && m > 0 ? h->out[m] : NULL,
			.slot = &h->slot[m],
			.staged = o->staged || o->window[m] > 0,
			.in_start = first.off,
			.in_second = first.off + first.len};
	}
	ck_assert_int_eq(eng_start(h->e, &s), 0);
}

/* Acts like shims that copy their operands: publishes the progress, reads in_want, rings the
 * doorbell. */
void feed(struct net *n, const struct op *o)
{
	uint64_t bytes = o->count * 4, one = 1;

	for (uint64_t done = 0; done < bytes;) {
		done = done + 40000 < bytes ? done + 40000 : bytes;
		for (uint32_t i = 0; i < n->hosts; i++) {
			for (uint32_t m = 0; m < n->h[i].n_members; m++) {
				struct shm_slot *slot = &n->h[i].slot[m];
				uint64_t all = first_chunk(o, n->hosts, i + m).len;
				uint64_t first = all < done / 2 ? all : done / 2;

				first = done == bytes ? all : first;
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

		h->flags = calloc(o->count + 64, 1);
		h->direct = NULL;
		for (uint32_t m = 0; m < h->n_members; m++) {
			memset(&h->slot[m], 0, sizeof h->slot[m]);
			h->in[m] = malloc(bytes);
			for (uint64_t k = 0; k < o->count; k++) {
				uint32_t v = (uint32_t)rng();

				memcpy(h->in[m] + 4 * k, &v, 4);
			}
			h->out[m] = malloc(bytes);
			memset(h->out[m], OLD_BYTE, bytes);
			h->window[m] = malloc(shm_window_size(o->window[m]) + 1);
		}
		h->area = o->replaces ? h->in[0] : malloc(bytes);
		if (o->direct) {
			h->direct = malloc(bytes);
			memset(h->direct, OLD_BYTE, bytes);
		}
	}
}

void cleanup(struct net *n)
{
	for (uint32_t i = 0; i < n->hosts; i++) {
		if (n->h[i].area != n->h[i].in[0])
			free(n->h[i].area);
		free((void *)n->h[i].flags);
		free(n->h[i].direct);
		free(n->h[i].scratch);
		n->h[i].scratch = NULL;
		for (uint32_t m = 0; m < n->h[i].n_members; m++) {
			free(n->h[i].in[m]);
			free(n->h[i].out[m]);
			free(n->h[i].window[m]);
		}
	}
}

uint8_t *results(const struct net *n, const struct op *o)
{
	uint8_t *want = malloc(o->count * 4);
	uint32_t world_size = 0;

	for (uint32_t i = 0; i < n->hosts; i++)
		world_size += n->h[i].n_members;
	ck_assert_uint_gt(world_size, 0);
	for (uint64_t k = 0; k < o->count; k++) {
		uint32_t v = (uint32_t)expected(n, o, k, world_size);

		memcpy(want + 4 * k, &v, 4);
	}
	return want;
}

/* ---- readers ---- */

static void read_on(struct reader *r)
{
	for (uint32_t i = 0; i < r->n->hosts; i++) {
		const struct host *h = &r->n->h[i];

		for (uint32_t seg = 0; seg < r->plan.n_segs; seg++) {
			struct cc_span span = cc_plan_segment(&r->plan, seg);

			if (r->taken[i][seg] || !atomic_load(&h->flags[seg]))
				continue;
			r->taken[i][seg] = true;
			memcpy(r->got[i] + span.off, h->area + span.off, span.len);
			if (r->o->replaces)
				memset(h->area + span.off, OLD_BYTE, span.len);
		}
	}
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	while (!atomic_load(&r->stop)) {
		read_on(r);
		sched_yield();
	}
	read_on(r);
	return NULL;
}

void reader_start(struct reader *r, const struct net *n, const struct op *o)
{
	r->n = n;
	r->o = o;
	r->plan = plan_op(o, n->hosts);
	for (uint32_t i = 0; i < n->hosts; i++) {
		r->got[i] = malloc(o->count * 4);
		r->taken[i] = calloc(r->plan.n_segs, sizeof(bool));
	}
	atomic_init(&r->stop, false);
	ck_assert_int_eq(pthread_create(&r->thread, NULL, reader_main, r), 0);
}

void reader_stop(struct reader *r)
{
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
}

void reader_check(const struct reader *r, const uint8_t *want, bool whole)
{
	for (uint32_t i = 0; i < r->n->hosts; i++) {
		for (uint32_t seg = 0; seg < r->plan.n_segs; seg++) {
			struct cc_span span = cc_plan_segment(&r->plan, seg);

			if (!r->taken[i][seg]) {
				ck_assert_msg(!whole || span.len == 0,
					"host %u: segment %u is not flagged", i, seg);
				continue;
			}
			ck_assert_msg(memcmp(r->got[i] + span.off, want + span.off, span.len) == 0,
				"host %u: segment %u is flagged and wrong", i, seg);
			ck_assert_msg(!r->o->replaces || all_bytes(r->n->h[i].area + span.off,
								 OLD_BYTE, span.len),
				"host %u: segment %u was written after its flag", i, seg);
		}
		free(r->got[i]);
		free(r->taken[i]);
	}
}

/* ---- one transfer over all hosts ---- */

/* In place: the output is the only member's operand. */
static void start_in_place(struct net *n, const struct op *o, uint32_t pos, uint32_t world_size)
{
	struct host *h = &n->h[pos];
	uint8_t *in = h->in[0];

	ck_assert_ptr_nonnull(h->direct);
	memcpy(h->direct, in, o->count * 4);
	h->in[0] = h->direct;
	start_one(n, o, pos, world_size);
	h->in[0] = in;
}

static void check_place(const struct host *h, const struct op *o, const uint8_t *want)
{
	uint64_t bytes = o->count * 4;

	if (o->replaces)
		return; /* the reader has the result */
	ck_assert_mem_eq(o->direct ? h->direct : h->area, want, bytes);
	if (o->in_place) /* the area has the undo copy */
		ck_assert_mem_eq(h->area, h->in[0], bytes);
	else if (o->direct)
		ck_assert(all_bytes(h->area, OLD_BYTE, bytes));
	for (uint32_t m = 1; m < h->n_members; m++)
		if (o->outs)
			ck_assert_mem_eq(h->out[m], want, bytes);
		else
			ck_assert(all_bytes(h->out[m], OLD_BYTE, bytes));
}

void run_op(struct net *n, const struct op *o)
{
	uint32_t world_size = 0;
	struct reader r;
	uint8_t *want;

	prepare(n, o);
	want = results(n, o);
	for (uint32_t i = 0; i < n->hosts; i++)
		world_size += n->h[i].n_members;
	if (!o->direct)
		reader_start(&r, n, o);
	for (uint32_t i = 0; i < n->hosts; i++)
		if (o->in_place)
			start_in_place(n, o, i, world_size);
		else
			start_one(n, o, i, world_size);
	if (o->staged)
		feed(n, o);
	for (uint32_t i = 0; i < n->hosts; i++) {
		struct host *h = &n->h[i];
		struct eng_event ev;

		ck_assert_msg(wait_event(h, &ev, WAIT_MS), "host %u: no end of the transfer", i);
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		ck_assert_uint_eq(ev.seq, o->seq);
		check_place(h, o, want);
		eng_release(h->e, o->seq);
	}
	if (!o->direct) {
		reader_stop(&r);
		reader_check(&r, want, true);
	}
	free(want);
	cleanup(n);
}

/* ---- one host ---- */

void start_alone(struct net *n, const struct op *o, struct cc_plan *plan)
{
	n->h[0].n_members = 1;
	prepare(n, o);
	n->hosts = 2;
	start_one(n, o, 0, 2);
	n->hosts = 1;
	*plan = plan_op(o, 2);
}

void cancel_alone(struct net *n, uint64_t seq)
{
	struct eng_event ev;

	eng_cancel(n->h[0].e, seq);
	ck_assert(wait_event(&n->h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
	eng_release(n->h[0].e, seq);
	cleanup(n);
}

size_t make_segment(
	uint8_t *buf, const struct cc_plan *plan, uint64_t seq, uint32_t seg, uint8_t fill)
{
	struct cc_span span = cc_plan_segment(plan, seg);
	struct wlk_data d = {.phase = WLK_REDUCE,
		.group = 5,
		.epoch = 3,
		.seq = seq,
		.tag = 77,
		.seg = seg,
		.len = (uint32_t)span.len,
		.offset = span.off};

	wlk_data_put(buf, &d);
	memset(buf + WLK_DATA_SIZE, fill, span.len);
	return WLK_DATA_SIZE + span.len;
}

void send_segment(int fd, const struct cc_plan *plan, uint64_t seq, uint32_t seg, uint8_t fill)
{
	uint8_t *buf = malloc(WLK_DATA_SIZE + CC_PLAN_SEGMENT_MAX);
	size_t len = make_segment(buf, plan, seq, seg, fill);

	ck_assert_int_eq(send(fd, buf, len, 0), (ssize_t)len);
	free(buf);
}

bool all_bytes(const uint8_t *p, uint8_t value, uint64_t n)
{
	return n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0);
}

void receive_all(int fd, uint8_t *buf, size_t len)
{
	while (len > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "the engine sends no more bytes");
		n = recv(fd, buf, len, 0);
		ck_assert_int_gt(n, 0);
		buf += n;
		len -= (size_t)n;
	}
}
