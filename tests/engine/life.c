/* SPDX-License-Identifier: MIT
 *
 * Hosts that are slow, and hosts that vanish. A socket stays in the network namespace in which it
 * was made, so one process can play both hosts: the near host has the engine, the far host only
 * sockets. A bridge connects them. When the bridge's port to the far host is shut down, the near
 * host sees only silence.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

#define SLOW_MS  20000u
#define BOUND_MS 3500u
#define COUNT    ((uint64_t)4 << 20) /* elements, enough that a host's own chunk fills any stream */
#define LINKS    16u
#define NEAR     "10.85.0.1"
#define OTHER    "10.85.0.2"

static int near_ns = -1, far_ns = -1, middle_ns = -1;

/* ---- the two hosts ---- */

static int new_namespace(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

__attribute__((format(printf, 2, 3))) static bool ip(int ns, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return setns(ns, CLONE_NEWNET) == 0 && system(line) == 0; /* NOLINT(cert-env33-c) */
}

static bool add_host(int ns, const char *name, const char *addr)
{
	return ip(middle_ns, "ip link add %s type veth peer name eth0 netns /proc/%d/fd/%d", name,
		       (int)getpid(), ns) &&
	       ip(middle_ns, "ip link set %s master bridge up", name) &&
	       ip(ns, "ip addr add %s/24 dev eth0", addr) && ip(ns, "ip link set eth0 up");
}

static bool make_hosts(void)
{
	if (geteuid() != 0)
		return false;
	near_ns = new_namespace();
	far_ns = new_namespace();
	middle_ns = new_namespace();
	return near_ns >= 0 && far_ns >= 0 && middle_ns >= 0 &&
	       ip(middle_ns, "ip link add bridge type bridge") &&
	       ip(middle_ns, "ip link set bridge up") && add_host(near_ns, "near", NEAR) &&
	       add_host(far_ns, "far", OTHER);
}

/* Sets the socket options as the engine of the other host would. The engine that sets them is
 * freed at once, and the options stay. */
static void tune(int fd)
{
	int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct eng *e = eng_new(event_fd);

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(eng_add_tx_stream(e, 1, dup(fd), ENG_NO_SET), 0);
	eng_free(e);
	close(event_fd);
}

/* pair[0]: the near host's end. The far host's end has a small receive buffer and the options of an
 * engine's socket. */
static void connect_hosts(int pair[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof a;
	int l, little = 1 << 16;

	inet_pton(AF_INET, OTHER, &a.sin_addr);
	ck_assert_int_eq(setns(far_ns, CLONE_NEWNET), 0);
	l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(setsockopt(l, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
	ck_assert_int_eq(bind(l, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(l, 1), 0);
	ck_assert_int_eq(getsockname(l, (struct sockaddr *)&a, &len), 0);
	ck_assert_int_eq(setns(near_ns, CLONE_NEWNET), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&a, sizeof a), 0);
	pair[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(pair[1], 0);
	close(l);
	tune(pair[1]);
}

/* ---- an engine, and what it sends ---- */

struct sent { /* a transfer whose results never come back */
	struct eng_xfer_spec spec;
	struct eng_member member;
	struct shm_slot slot;
	struct eng_peer peers[2];
	uint8_t *memory;
};

static void start(struct eng *e, struct sent *s, uint64_t seq, uint32_t link)
{
	s->spec = (struct eng_xfer_spec){.seq = seq,
		.dtype = KRN_U32,
		.op = KRN_SUM,
		.segment_max = CC_PLAN_SEGMENT_MAX,
		.world_size = 2,
		.peers = s->peers,
		.n_members = 1};
	s->peers[1].link = link;
	ck_assert_int_eq(cc_plan_init(&s->spec.plan, COUNT, 4, 2, CC_PLAN_SEGMENT_MAX), 0);
	s->memory = calloc(COUNT, 9);
	ck_assert_ptr_nonnull(s->memory);
	s->spec.area = s->memory;
	s->member = (struct eng_member){.in = s->memory + COUNT * 4, .slot = &s->slot};
	s->spec.members = &s->member;
	s->spec.flags = (_Atomic uint8_t *)(void *)(s->memory + COUNT * 8);
	ck_assert_int_eq(eng_start(e, &s->spec), 0);
}

static void cancel(struct host *h, struct sent *s)
{
	struct eng_event ev;

	eng_cancel(h->e, s->spec.seq);
	ck_assert(wait_event(h, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
	eng_release(h->e, s->spec.seq);
	free(s->memory);
}

struct watch {
	struct host *h;
	uint64_t began_ns, looked_ns;
	uint64_t late_ns;          /* delays of this test's calls of eng_look */
	uint32_t broken_ms[LINKS]; /* the time at which the link broke; 0: it is up */
	uint32_t n_broken;
	bool quiet[LINKS];
	bool silent[LINKS]; /* the link broke because of silence */
	char text[LINKS][128];
};

static void begin(struct watch *w, struct host *h)
{
	memset(w, 0, sizeof *w);
	w->h = h;
	w->began_ns = w->looked_ns = cc_now_ns();
	eng_look(h->e, true);
}

static uint32_t passed_ms(const struct watch *w)
{
	return (uint32_t)((cc_now_ns() - w->began_ns - w->late_ns) / 1000000);
}

/* Calls eng_look like the agent, until the time is over or n_broken links are broken. */
static void watch(struct watch *w, uint32_t until_ms, uint32_t n_broken)
{
	while (passed_ms(w) < until_ms && w->n_broken < n_broken) {
		uint64_t now = cc_now_ns(), since = now - w->looked_ns;
		struct eng_event ev;

		if (since >= FLOW_LOOK_MS * UINT64_C(1000000)) {
			w->late_ns += since > UINT64_C(300000000) ? since - UINT64_C(300000000) : 0;
			w->looked_ns = now;
			eng_look(w->h->e, true);
		}
		if (!wait_event(w->h, &ev, 50))
			continue;
		ck_assert_uint_lt(ev.link, LINKS);
		if (ev.type == ENG_LINK_HEARD) {
			w->quiet[ev.link] = ev.heard_ms >= FLOW_QUIET_MS;
			continue;
		}
		ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
		w->silent[ev.link] = ev.silent;
		w->broken_ms[ev.link] = passed_ms(w) + 1;
		w->n_broken++;
		memcpy(w->text[ev.link], ev.text, sizeof ev.text);
	}
}

/* Reads exactly `most` bytes. */
static void take(int fd, size_t most)
{
	static uint8_t buf[1 << 16];
	ssize_t n;

	while (most > 0) {
		n = recv(fd, buf, most < sizeof buf ? most : sizeof buf, 0);
		ck_assert_int_gt(n, 0);
		most -= (size_t)n;
	}
}

/* Sends more bytes than the other side accepts, for an operation that it does not know. */
static void send_early(int fd)
{
	static const uint8_t zeros[1 << 16];
	struct wlk_data d = {.phase = WLK_REDUCE, .seq = 99, .len = WLK_LEN_MAX};
	uint8_t hdr[WLK_DATA_SIZE];

	wlk_data_put(hdr, &d);
	ck_assert_int_eq(send(fd, hdr, sizeof hdr, 0), sizeof hdr);
	while (send(fd, zeros, sizeof zeros, MSG_DONTWAIT) > 0)
		;
}

/* ---- the tests ---- */

enum {
	TX_SHUT = 1,    /* the far host reads nothing */
	TX_MIDWAY = 2,  /* the far host reads only after a long time */
	TX_IDLE = 3,    /* nothing is sent to the far host */
	TX_LATE = 4,    /* something is sent only after the far host has vanished */
	RX_IDLE = 5,    /* the far host sends nothing */
	RX_MIDWAY = 6,  /* the far host has sent half a header */
	RX_STALLED = 7, /* the far host sends more than the engine accepts */
	ALL = 7,
};

static void expect_alive(const struct watch *w)
{
	for (uint32_t i = 1; i <= ALL; i++)
		ck_assert_msg(w->broken_ms[i] == 0 && !w->quiet[i], "link %u broke after %u ms: %s",
			i, w->broken_ms[i], w->text[i]);
}

START_TEST(only_links_to_vanished_hosts_break)
{
	int fd[ALL + 1][2];
	struct sent sent[3];
	struct watch w;
	struct net n;

	net_up(&n, 1, 1);
	for (uint32_t i = 1; i <= ALL; i++) {
		connect_hosts(fd[i]);
		if (i < RX_IDLE)
			ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, i, fd[i][0], ENG_NO_SET), 0);
		else
			ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, i, NULL, fd[i][0]), 0);
	}
	start(n.h[0].e, &sent[0], 1, TX_SHUT);
	start(n.h[0].e, &sent[1], 2, TX_MIDWAY);
	ck_assert_int_eq(send(fd[RX_MIDWAY][1], "half a header", 13, 0), 13);
	send_early(fd[RX_STALLED][1]);
	begin(&w, &n.h[0]);
	watch(&w, SLOW_MS, 1);
	expect_alive(&w);

	take(fd[TX_MIDWAY][1], 3u << 20);
	expect_alive(&w);
	ck_assert(ip(middle_ns, "ip link set far down"));
	begin(&w, &n.h[0]);
	start(n.h[0].e, &sent[2], 3, TX_LATE);
	watch(&w, 2 * BOUND_MS, ALL);
	for (uint32_t i = 1; i <= ALL; i++) {
		ck_assert_msg(w.broken_ms[i] != 0 && w.broken_ms[i] <= BOUND_MS,
			"link %u: %u ms: %s", i, w.broken_ms[i], w.text[i]);
		ck_assert_msg(w.quiet[i] && w.silent[i], "link %u: %s", i, w.text[i]);
	}
	for (uint32_t i = 0; i < 3; i++)
		cancel(&n.h[0], &sent[i]);
	net_down(&n);
	for (uint32_t i = 1; i <= ALL; i++)
		close(fd[i][1]);
}
END_TEST

/* The other end of a stream reads nothing and sends no keepalives, so it is silent for about three
 * seconds at a time. This silence breaks a link that has only this stream. It does not
 * break a link that has another stream on which the host is not silent. */
START_TEST(link_breaks_only_if_all_its_streams_are_silent)
{
	int alone[2], silent[2], other[2], no = 0;
	struct sent sent[2];
	struct watch w;
	struct net n;

	net_up(&n, 1, 1);
	tcp_pair(alone);
	tcp_pair(silent);
	tcp_pair(other);
	/* The transfer uses one stream after the other, in the order in which they were added. */
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, alone[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 2, silent[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 2, other[0], ENG_NO_SET), 0);
	ck_assert_int_eq(setsockopt(silent[1], SOL_SOCKET, SO_KEEPALIVE, &no, sizeof no), 0);
	tune(other[1]);
	start(n.h[0].e, &sent[0], 1, 1);
	start(n.h[0].e, &sent[1], 2, 2);
	begin(&w, &n.h[0]);
	watch(&w, 11000, 1);
	watch(&w, passed_ms(&w) + 1000, 2);
	ck_assert_uint_ge(w.broken_ms[1], 2800);
	ck_assert_ptr_nonnull(strstr(w.text[1], "nothing was received from the other host for "));
	ck_assert_uint_eq(w.broken_ms[2], 0);
	for (uint32_t i = 0; i < 2; i++)
		cancel(&n.h[0], &sent[i]);
	net_down(&n);
	close(alone[1]);
	close(silent[1]);
	close(other[1]);
}
END_TEST

/* The operator of the master may allow more silence than the usual 2.8 s. */
START_TEST(bound_of_the_master_sets_the_longest_silence)
{
	struct cc_bounds told = {.ms = {[CC_BOUND_LINK] = 5000}};
	struct watch w;
	struct net n;
	int fd[2];

	cc_bounds_complete(&told);
	ck_assert(ip(middle_ns, "ip link set far up"));
	net_up(&n, 1, 1);
	connect_hosts(fd);
	eng_set_bounds(n.h[0].e, &told);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 1, NULL, fd[0]), 0);
	ck_assert(ip(middle_ns, "ip link set far down"));
	begin(&w, &n.h[0]);
	watch(&w, 20000, 1);
	ck_assert_msg(w.broken_ms[1] > BOUND_MS, "%u ms: %s", w.broken_ms[1], w.text[1]);
	ck_assert(w.silent[1]);
	net_down(&n);
	close(fd[1]);
}
END_TEST

Suite *life_suite(void)
{
	Suite *s = suite_create("life");
	TCase *tc = tcase_create("streams");
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, link_breaks_only_if_all_its_streams_are_silent);
	if (make_hosts()) {
		tcase_add_test(tc, only_links_to_vanished_hosts_break);
		tcase_add_test(tc, bound_of_the_master_sets_the_longest_silence);
	} else {
		puts("# no network namespaces: the tests of vanished hosts are skipped");
	}
	setns(home, CLONE_NEWNET);
	suite_add_tcase(s, tc);
	return s;
}
