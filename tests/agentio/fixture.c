/* SPDX-License-Identifier: MIT */
#include "tests/agentio/fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_log.h"
#include "common/cc_seal.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "daemon/cc_channel.h"
#include "kernels/krn.h"
#include "pcclagentd/base/handshake.h"
#include "pcclagentd/options.h"
#include "proto/wire_codes.h"
#include "proto/wire_frame.h"

/* ---- the agent ---- */

static void renew(void *arg)
{
	struct fx *f = arg;
	bool stop;

	pthread_mutex_lock(&f->lock);
	agentd_get_stats(f->agent, &f->stats);
	f->renewed++;
	if (f->call)
		f->call(f->agent, f->call_arg);
	f->call = NULL;
	stop = f->stop;
	pthread_cond_broadcast(&f->cond);
	pthread_mutex_unlock(&f->lock);
	if (stop)
		agentd_stop(f->agent, "the test is over");
}

static void *run(void *arg)
{
	struct fx *f = arg;

	ck_assert_int_eq(agentd_run(f->agent), 0);
	agentd_free(f->agent);
	return NULL;
}

void fx_make_place(struct fx *f)
{
	memset(f, 0, sizeof *f);
	cc_log_set_level(CC_LOG_ERR);
	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	strcpy(f->dir, "/tmp/agentio-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->dir));
	snprintf(f->path, sizeof f->path, "%s/agent.sock", f->dir);
	snprintf(f->admin, sizeof f->admin, "%s/admin.sock", f->dir);
}

void fx_remove_place(struct fx *f)
{
	unlink(f->path);
	unlink(f->admin);
	rmdir(f->dir);
}

static void on_kick(void *arg, int signo)
{
	(void)signo;
	renew(arg);
}

/* Makes the agent's thread renew the figures soon. */
static void kick(const struct fx *f)
{
	if (f->still)
		kill(getpid(), SIGUSR1);
}

static void start(struct fx *f, void (*tweak)(struct agentd_config *c), bool still)
{
	struct agentd_config c;

	fx_make_place(f);
	agentd_config_init(&c);
	strcpy(c.name, "testhost");
	c.bind = (struct cc_addr){.family = CC_INET4, .ip = {127, 0, 0, 1}};
	c.port_p2p = c.port_shared_state = c.port_benchmark = 0;
	c.session_fd = cc_listen_unix(f->path, SOCK_SEQPACKET, 0600);
	c.admin_fd = cc_listen_unix(f->admin, SOCK_STREAM, 0600);
	ck_assert(c.session_fd >= 0 && c.admin_fd >= 0);
	if (tweak)
		tweak(&c);
	f->still = still;
	f->agent = agentd_new(&c);
	ck_assert_ptr_nonnull(f->agent);
	agentd_get_stats(f->agent, &f->stats);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->cond, NULL);
	if (still)
		ck_assert_int_eq(agentd_on_signal(f->agent, SIGUSR1, on_kick, f), 0);
	else
		ck_assert_int_eq(agentd_every(f->agent, 5, renew, f), 0);
	ck_assert_int_eq(pthread_create(&f->thread, NULL, run, f), 0);
}

void fx_start(struct fx *f, void (*tweak)(struct agentd_config *c))
{
	start(f, tweak, false);
}

void fx_start_still(struct fx *f, void (*tweak)(struct agentd_config *c))
{
	start(f, tweak, true);
}

void fx_stop(struct fx *f)
{
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	kick(f);
	pthread_join(f->thread, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->cond);
	fx_remove_place(f);
}

static bool always(const struct agentd_stats *s, uint64_t arg)
{
	(void)s;
	(void)arg;
	return true;
}

static struct agentd_stats await_stats(
	struct fx *f, bool (*done)(const struct agentd_stats *s, uint64_t arg), uint64_t arg)
{
	struct agentd_stats s;
	struct timespec end;
	uint32_t before;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += FX_TIMEOUT_MS / 1000;
	pthread_mutex_lock(&f->lock);
	before = f->renewed;
	while (f->renewed == before || !done(&f->stats, arg)) {
		kick(f);
		ck_assert_msg(pthread_cond_timedwait(&f->cond, &f->lock, &end) == 0,
			"the agent did not reach this state in time");
	}
	s = f->stats;
	pthread_mutex_unlock(&f->lock);
	return s;
}

struct agentd_stats fx_stats(struct fx *f)
{
	return await_stats(f, always, 0);
}

void fx_await(struct fx *f, bool (*done)(const struct agentd_stats *s, uint64_t arg), uint64_t arg)
{
	await_stats(f, done, arg);
}

void fx_call(struct fx *f, void (*fn)(struct agentd *d, void *arg), void *arg)
{
	pthread_mutex_lock(&f->lock);
	f->call = fn;
	f->call_arg = arg;
	pthread_mutex_unlock(&f->lock);
	fx_stats(f);
}

struct forking {
	struct fx *f;
	void (*fn)(struct fx *f, int fd);
	int fd;
	pid_t pid;
};

static void fork_here(struct agentd *d, void *arg)
{
	struct forking *k = arg;

	(void)d;
	k->pid = fork();
	if (k->pid != 0)
		return;
	k->fn(k->f, k->fd);
	_exit(0);
}

pid_t fx_fork(struct fx *f, void (*fn)(struct fx *f, int fd), int fd)
{
	struct forking k = {.f = f, .fn = fn, .fd = fd};

	fx_call(f, fork_here, &k);
	ck_assert_int_gt(k.pid, 0);
	return k.pid;
}

unsigned fx_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- a process ---- */

static void bound(int fd)
{
	struct timeval tv = {.tv_sec = FX_TIMEOUT_MS / 1000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

void client_connect(struct fx *f, struct client *c)
{
	c->fd = cc_connect_unix(f->path, SOCK_SEQPACKET);
	c->last_req = 0;
	c->n_handed = 0;
	ck_assert_int_ge(c->fd, 0);
	bound(c->fd);
}

void client_open(struct fx *f, struct client *c)
{
	struct wl_request q = {.type = WL_HELLO,
		.version_min = WL_VERSION_MIN,
		.version_max = WL_VERSION_MAX,
		.name = "test"};
	struct wl_reply r;

	client_connect(f, c);
	client_call(c, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_uint_eq(r.version, WL_VERSION_MAX);
}

void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

void client_send(struct client *c, struct wl_request *q)
{
	uint8_t buf[WL_PACKET_MAX];
	int len;

	q->req_id = ++c->last_req;
	len = wire_local_put_request(q, buf);
	ck_assert_int_gt(len, 0);
	ck_assert_int_eq(send(c->fd, buf, (size_t)len, MSG_NOSIGNAL), len);
}

void client_send_fds(struct client *c, struct wl_request *q, const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 8)];
	} ctl;
	uint8_t buf[WL_PACKET_MAX];
	struct iovec iov = {.iov_base = buf};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &ctl,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	int len;

	ck_assert_uint_le(n, 8);
	q->req_id = ++c->last_req;
	len = wire_local_put_request(q, buf);
	ck_assert_int_gt(len, 0);
	iov.iov_len = (size_t)len;
	memset(&ctl, 0, sizeof ctl);
	ctl.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int) * n)};
	memcpy(CMSG_DATA(&ctl.align), fds, sizeof(int) * n);
	ck_assert_int_eq(sendmsg(c->fd, &m, MSG_NOSIGNAL), len);
}

static bool receive(
	struct client *c, struct wl_reply *r, int *fds, unsigned room, unsigned *ret_fds)
{
	uint8_t buf[WL_PACKET_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 8)];
	} ctl;
	struct iovec iov = {buf, sizeof buf};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &ctl,
		.msg_controllen = sizeof ctl};
	ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	const char *why;
	unsigned got = 0;

	ck_assert_msg(n >= 0 || errno == ECONNRESET, "no reply: %s", strerror(errno));
	if (n <= 0)
		return false;
	if (h) {
		got = (unsigned)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		ck_assert_uint_le(got, room);
		memcpy(fds, CMSG_DATA(h), got * sizeof(int));
	}
	ck_assert_int_eq(wire_local_get_reply(buf, (size_t)n, r, &why), 0);
	*ret_fds = got;
	return true;
}

static void take_candidate(struct client *c, const struct wl_reply *r, int fd)
{
	void *map;

	ck_assert_int_eq(cc_shm_map(fd, (size_t)r->size, &map), 0);
	cc_shm_unmap(map, (size_t)r->size);
	close(fd);
	c->handed[c->n_handed++ % HANDED_MAX] = *r;
}

bool client_receive(struct client *c, struct wl_reply *r, int *fds, unsigned want_fds)
{
	int got[WL_FDS_MAX];
	unsigned n;

	for (;;) {
		if (!receive(c, r, got, WL_FDS_MAX, &n))
			return false;
		if (!wire_local_is_handover(r))
			break;
		ck_assert_uint_eq(n, 1);
		take_candidate(c, r, got[0]);
	}
	ck_assert_uint_eq(n, r->code == WIRE_SUCCESS ? want_fds : 0);
	if (n > 0)
		memcpy(fds, got, n * sizeof(int));
	return true;
}

void client_call(
	struct client *c, struct wl_request *q, struct wl_reply *r, int *fds, unsigned want_fds)
{
	client_send(c, q);
	ck_assert_msg(client_receive(c, r, fds, want_fds), "the agent closed the session");
	ck_assert_uint_eq(r->req_id, q->req_id);
}

void client_await_end(struct client *c, char text[WL_TEXT_MAX])
{
	struct wl_reply r;

	text[0] = '\0';
	while (client_receive(c, &r, NULL, 0))
		if (r.req_id == 0)
			memcpy(text, r.text, WL_TEXT_MAX);
	client_close(c);
}

void fx_check_alive(struct fx *f)
{
	struct client c;

	client_open(f, &c);
	client_close(&c);
}

uint32_t client_alloc(struct client *c, uint64_t size, struct mem *ret)
{
	return client_alloc_use(c, size, WL_REGION_REGISTERED, ret);
}

uint32_t client_alloc_use(struct client *c, uint64_t size, enum wl_region_use use, struct mem *ret)
{
	struct wl_request q = {.type = WL_REGION_ALLOC, .size = size, .use = use};
	struct wl_reply r;
	void *map;
	int fd;

	client_call(c, &q, &r, &fd, 1);
	if (r.code != WIRE_SUCCESS) {
		ck_assert_str_ne(r.text, "");
		return r.code;
	}
	ck_assert_int_eq(cc_shm_map(fd, (size_t)r.size, &map), 0);
	close(fd);
	*ret = (struct mem){r.region, r.size, map};
	return WIRE_SUCCESS;
}

uint32_t client_free(struct client *c, uint64_t region)
{
	struct wl_request q = {.type = WL_REGION_FREE, .region = region};
	struct wl_reply r;

	client_call(c, &q, &r, NULL, 0);
	return r.code;
}

void client_comm(struct client *c, const struct cc_addr *master, uint32_t group, struct queue *ret)
{
	struct wl_request q = {.type = WL_COMM_CREATE, .master = *master, .group = group};
	struct wl_reply r;
	void *map;
	int fds[3];

	client_call(c, &q, &r, fds, 3);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_int_eq(cc_shm_map(fds[0], SHM_SIZE, &map), 0);
	close(fds[0]);
	*ret = (struct queue){.comm = r.comm, .sq_bell = fds[1], .data_bell = fds[2], .map = map};
	ck_assert_uint_eq(((struct shm_header *)map)->magic, SHM_MAGIC);
}

void queue_close(struct queue *q)
{
	close(q->sq_bell);
	close(q->data_bell);
	cc_shm_unmap(q->map, SHM_SIZE);
}

struct shm_slot *queue_slot(const struct queue *q, uint32_t slot)
{
	return (struct shm_slot *)(void *)(q->map + SHM_SLOT_OFF) + slot;
}

void queue_set_tail(struct queue *q, uint32_t tail)
{
	struct shm_sq *sq = (struct shm_sq *)(void *)(q->map + SHM_SQ_OFF);

	q->tail = tail;
	atomic_store(&sq->tail, tail);
	eventfd_write(q->sq_bell, 1);
}

void queue_push(struct queue *q, const struct shm_sqe *e)
{
	struct shm_sqe *ring = (struct shm_sqe *)(void *)(q->map + SHM_SQE_OFF);

	if (e->slot < SHM_SLOTS)
		atomic_store(&queue_slot(q, e->slot)->state, SHM_SLOT_PENDING);
	ring[q->tail % SHM_SLOTS] = *e;
	queue_set_tail(q, q->tail + 1);
}

struct shm_sqe queue_sum(uint32_t slot, uint64_t tag, uint64_t count, const struct mem *in)
{
	return (struct shm_sqe){.slot = slot,
		.flags = SHM_SQE_IN_REGISTERED,
		.tag = tag,
		.count = count,
		.dtype = KRN_F32,
		.op = KRN_SUM,
		.in_region = in->region};
}

uint32_t queue_await(const struct queue *q, uint32_t slot)
{
	struct shm_slot *s = queue_slot(q, slot);
	uint64_t end = cc_now_ns() + FX_TIMEOUT_MS * 1000000ull;

	while (atomic_load(&s->state) != SHM_SLOT_DONE) {
		struct timespec ts = {.tv_nsec = 200000};

		ck_assert_msg(cc_now_ns() < end, "no completion");
		nanosleep(&ts, NULL);
	}
	return s->code;
}

void queue_free_slot(const struct queue *q, uint32_t slot)
{
	atomic_store(&queue_slot(q, slot)->state, SHM_SLOT_FREE);
}

/* ---- TCP ---- */

int tcp_connect(uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	ck_assert_int_ge(fd, 0);
	bound(fd);
	/* With this option, sent bytes are at the other end as soon as the send call returns. */
	ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	return fd;
}

void tcp_send(int fd, const void *buf, size_t len)
{
	ck_assert_int_eq(send(fd, buf, len, MSG_NOSIGNAL), (ssize_t)len);
}

size_t tcp_receive(int fd, void *buf, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(fd, (char *)buf + have, len - have, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			break;
		ck_assert_msg(n > 0, "nothing came: %s", strerror(errno));
		have += (size_t)n;
	}
	return have;
}

/* ---- a master ---- */

void master_listen(struct master *m)
{
	memset(m, 0, sizeof *m);
	m->fd = -1;
	m->segment_max = 65536;
	m->addr = (struct cc_addr){.family = CC_INET4, .ip = {127, 0, 0, 1}};
	m->listener = cc_listen_tcp(&m->addr, 0);
	ck_assert_int_ge(m->listener, 0);
	cc_random_id(&m->run);
	cc_random_id(&m->key);
}

static void take_knock(struct master *m)
{
	struct wm_msg msg, ack = {.type = WM_KNOCK_ACK};

	master_expect(m, WM_KNOCK, &msg);
	cc_seal_free(m->seal);
	m->seal = cc_seal_new(true);
	ck_assert_int_eq(cc_seal_agree(m->seal, &msg.u.knock.share), 0);
	ack.u.knock_ack.share = *cc_seal_share(m->seal);
	master_send(m, &ack);
}

struct cc_key master_prove(const struct master *m, uint8_t buf[WLK_HELLO_SIZE])
{
	struct wlk_hello h;
	struct cc_key link_key;
	const char *why;

	ck_assert_int_eq(wlk_hello_get(buf, &h, &why), 0);
	cc_link_key(cc_seal_agent_key(m->seal), h.service, h.number, &h.from, &m->agent, &link_key);
	(void)hs_prove_hello(&link_key, buf);
	return link_key;
}

void master_take(struct master *m, uint64_t term, struct wm_msg *hello)
{
	struct pollfd p = {.fd = m->listener, .events = POLLIN};
	struct wm_msg msg = {.type = WM_HELLO_ACK,
		.u.hello_ack = {.version = WM_VERSION_MAX,
			.run = m->run,
			.heartbeat_ms = 1000,
			.timeout_ms = 60000,
			.segment_max = m->segment_max,
			.bounds = m->bounds,
			.term = term}};

	ck_assert_int_eq(poll(&p, 1, FX_TIMEOUT_MS), 1);
	m->fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(m->fd, 0);
	bound(m->fd);
	take_knock(m);
	master_expect(m, WM_HELLO, hello);
	m->agent = hello->u.hello.agent;
	m->term = term;
	msg.u.hello_ack.resume = cc_id_eq(&hello->u.hello.run, &m->run);
	master_send(m, &msg);
}

void master_accept(struct master *m)
{
	struct wm_msg hello;

	master_take(m, 1, &hello);
	wire_master_clear(&hello);
}

void master_hang_up(struct master *m)
{
	close(m->fd);
	m->fd = -1;
}

void master_close(struct master *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->listener >= 0)
		close(m->listener);
	m->fd = m->listener = -1;
	cc_seal_free(m->seal);
	m->seal = NULL;
}

void master_send(struct master *m, const struct wm_msg *msg)
{
	struct wm_msg round = *msg;
	uint8_t *buf;
	size_t len;

	if (msg->type == WM_ROUND)
		round.u.round.run_key = m->key;
	ck_assert_int_eq(cc_channel_encode(m->seal, &round, &buf, &len), 0);
	tcp_send(m->fd, buf, len);
	free(buf);
}

void master_next(struct master *m, struct wm_msg *ret)
{
	uint8_t hdr[WIRE_FRAME_HDR], *frame;
	const char *why = "";
	int len;

	for (;;) {
		ck_assert_uint_eq(tcp_receive(m->fd, hdr, sizeof hdr), sizeof hdr);
		len = cc_channel_peek(hdr, sizeof hdr);
		ck_assert_int_ge(len, 0);
		frame = malloc(sizeof hdr + (size_t)len);
		memcpy(frame, hdr, sizeof hdr);
		ck_assert_uint_eq(tcp_receive(m->fd, frame + sizeof hdr, (size_t)len), (size_t)len);
		ck_assert_msg(
			cc_channel_decode(m->seal, frame, sizeof hdr + (size_t)len, ret, &why) == 0,
			"%s", why);
		free(frame);
		if (ret->type != WM_HEARTBEAT)
			return;
		wire_master_clear(ret);
	}
}

void master_expect(struct master *m, enum wm_type type, struct wm_msg *ret)
{
	master_next(m, ret);
	ck_assert_msg(ret->type == type, "%s came instead of %s", wire_master_type_name(ret->type),
		wire_master_type_name(type));
}

void master_join_two(struct master *m, struct fx *f, struct client *a, struct queue *qa,
	struct client *b, struct queue *qb)
{
	struct wl_request q = {.type = WL_COMM_CONNECT, .token = {{1}}};
	struct cc_id members[2];
	struct wm_group_view own = {.group = 1, .world_size = 2};
	struct wm_ring ring = {
		.group = 1, .hosts = 1, .pool_size = 1, .n_members = 2, .members = members};
	struct wm_view view = {.global = 2, .groups = 1, .largest = 2, .n = 1, .own = &own};
	struct wl_reply r;
	struct wm_msg msg;

	client_open(f, a);
	client_open(f, b);
	client_comm(a, &m->addr, 1, qa);
	client_comm(b, &m->addr, 1, qb);
	q.comm = qa->comm;
	q.peer = (struct cc_id){{1}};
	client_send(a, &q);
	master_accept(m);
	master_expect(m, WM_JOIN, &msg);
	members[0] = msg.u.join.peer;
	q.comm = qb->comm;
	q.peer = (struct cc_id){{2}};
	client_send(b, &q);
	master_expect(m, WM_JOIN, &msg);
	members[1] = msg.u.join.peer;
	msg = (struct wm_msg){.type = WM_ROUND,
		.u.round = {.round = 1, .accept = true, .n_rings = 1, .rings = &ring}};
	master_send(m, &msg);
	master_expect(m, WM_ROUND_REPORT, &msg);
	ck_assert_uint_eq(msg.u.round_report.n_failures, 0);
	wire_master_clear(&msg);
	msg = (struct wm_msg){.type = WM_COMMIT,
		.u.commit = {.round = 1, .epoch = 1, .accept = true, .view = view}};
	master_send(m, &msg);
	ck_assert(client_receive(a, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert(client_receive(b, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
}

void master_part_two(struct master *m, struct fx *f, struct client *a, struct queue *qa,
	struct client *b, struct queue *qb)
{
	if (a->fd >= 0)
		client_close(a);
	if (b->fd >= 0)
		client_close(b);
	fx_stop(f);
	queue_close(qa);
	queue_close(qb);
	master_close(m);
}

uint64_t master_started(struct master *m, uint64_t tag)
{
	struct wm_msg msg = {.type = WM_OP_START,
		.u.op_start = {
			.group = 1, .tag = tag, .seq = ++m->seq, .epoch = 1, .route = m->route}};

	master_send(m, &msg);
	return m->seq;
}

uint64_t master_start_op(struct master *m, uint64_t tag)
{
	struct wm_msg msg;

	master_expect(m, WM_OP_VOTE, &msg);
	ck_assert_uint_eq(msg.u.op_vote.tag, tag);
	ck_assert_uint_eq(msg.u.op_vote.n_peers, 2);
	wire_master_clear(&msg);
	return master_started(m, tag);
}

void master_done(struct master *m, uint64_t seq)
{
	struct wm_msg msg = {.type = WM_OP_DONE, .u.op_done = {.seq = seq, .next = m->next}};

	msg.u.op_done.next_route = m->next ? m->route : CC_ALGO_RING;
	master_send(m, &msg);
}

void master_finish_op(struct master *m, uint64_t seq)
{
	struct wm_msg msg;

	master_expect(m, WM_OP_REPORT, &msg);
	ck_assert_uint_eq(msg.u.op_report.seq, seq);
	ck_assert(msg.u.op_report.ok);
	wire_master_clear(&msg);
	master_done(m, seq);
}
