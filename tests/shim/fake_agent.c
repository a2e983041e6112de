/* SPDX-License-Identifier: MIT
 *
 * The fake agent's thread: connections, requests and their answers, submissions.
 */
#include "tests/shim/fake_state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "proto/wire_codes.h"

static uint32_t element_size(uint32_t dtype)
{
	static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

	MUST(dtype < sizeof sizes);
	return sizes[dtype];
}

static void send_packet(int fd, const void *buf, size_t len, const int *fds, unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 4)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	(void)!sendmsg(fd, &mh, MSG_NOSIGNAL);
}

void fake_reply(struct fake *f, int conn, const struct wl_reply *r, const int *fds, unsigned n)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = wire_local_put_reply(r, buf);

	MUST(len > 0);
	send_packet(f->conns[conn], buf, (size_t)len, fds, n);
}

/* Returns true if the communicator of the operation has ended. */
static bool is_orphan(const struct fake *f, const struct fake_op *op)
{
	for (uint32_t i = 0; i < f->n_comms; i++)
		if ((uint8_t *)op->slot >= f->comms[i].queue &&
			(uint8_t *)op->slot < f->comms[i].queue + SHM_SIZE)
			return f->comms[i].conn < 0;
	return true;
}

/* Forgets everything that came over this connection. */
static void forget(struct fake *f, int conn)
{
	unsigned n = 0, queued = f->taken;

	for (uint32_t i = 0; i < f->n_comms; i++)
		if (f->comms[i].conn == conn)
			f->comms[i].conn = -1;
	for (unsigned i = 0; i < f->n_held; i++)
		if (f->held[i].conn != conn)
			f->held[n++] = f->held[i];
	f->n_held = n;
	for (unsigned i = f->taken; i != f->queued; i++)
		if (!is_orphan(f, &f->queue[i % QUEUED]))
			f->queue[queued++ % QUEUED] = f->queue[i % QUEUED];
	f->queued = queued;
}

void fake_close_conn(struct fake *f, int conn)
{
	if (f->conns[conn] < 0)
		return;
	forget(f, conn);
	/* If the thread is polling the connection, the poll keeps it open for a moment. */
	shutdown(f->conns[conn], SHUT_RDWR);
	close(f->conns[conn]);
	f->conns[conn] = -1;
	f->n_conns--;
	pthread_cond_broadcast(&f->changed);
}

uint64_t fake_make_region(struct fake *f, uint64_t size)
{
	uint64_t id = ++f->n_regions;
	struct region *r = &f->regions[id];
	void *map;

	MUST(id < REGIONS);
	MUST(cc_shm_create("region", size, &r->fd, &map) == 0);
	r->map = map;
	r->size = size;
	return id;
}

/* Maps the memory of a process. Takes the descriptor. */
static uint64_t adopt_region(struct fake *f, uint64_t size, int fd)
{
	uint64_t id = ++f->n_regions;
	struct region *r = &f->regions[id];
	void *map;

	MUST(id < REGIONS && fd >= 0);
	MUST(cc_shm_map(fd, size, &map) == 0);
	*r = (struct region){.size = size, .map = map, .fd = fd};
	return id;
}

static void drop_region(struct region *r)
{
	if (!r->map)
		return;
	cc_shm_unmap(r->map, r->size);
	close(r->fd);
	r->map = NULL;
}

static uint32_t make_comm(struct fake *f, int conn, int *fds, bool bad)
{
	struct comm *c = &f->comms[f->n_comms];
	struct shm_header *h;
	void *map;

	MUST(f->n_comms < COMMS);
	MUST(cc_shm_create("queue", SHM_SIZE, &c->queue_fd, &map) == 0);
	c->queue = map;
	c->conn = conn;
	c->submit_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->data_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	MUST(c->submit_bell >= 0 && c->data_bell >= 0);
	h = map;
	h->magic = SHM_MAGIC;
	h->version = bad ? SHM_VERSION + 6 : SHM_VERSION;
	h->slots = SHM_SLOTS;
	h->size = SHM_SIZE;
	fds[0] = c->queue_fd;
	fds[1] = c->submit_bell;
	fds[2] = c->data_bell;
	return f->n_comms++;
}

struct shm_attr *fake_attr_of(const struct comm *c)
{
	return (struct shm_attr *)(void *)(c->queue + SHM_ATTR_OFF);
}

void fake_write_attrs(struct shm_attr *a, enum shm_comm_state state, uint32_t hosts, uint32_t pos,
	uint32_t code, const char *text)
{
	atomic_fetch_add(&a->version, 1);
	atomic_store(&a->state, state);
	atomic_store(&a->hosts, hosts);
	atomic_store(&a->pos, pos);
	atomic_store(&a->code, code);
	snprintf(a->text, sizeof a->text, "%s", text ? text : "");
	atomic_fetch_add(&a->version, 1);
}

void fake_write_master_addr(struct shm_attr *a, const struct cc_addr *at)
{
	atomic_fetch_add(&a->version, 1);
	atomic_store(&a->at_family, at->family);
	atomic_store(&a->at_port, at->port);
	for (size_t i = 0; i < 4; i++)
		atomic_store(&a->at_ip[i], (uint32_t)at->ip[4 * i] |
						   (uint32_t)at->ip[4 * i + 1] << 8 |
						   (uint32_t)at->ip[4 * i + 2] << 16 |
						   (uint32_t)at->ip[4 * i + 3] << 24);
	atomic_fetch_add(&a->version, 1);
}

static uint64_t known_outcomes(const struct fake *f, const struct wl_request *q)
{
	uint64_t done = 0;

	for (uint32_t i = 0; i < q->n_seqs; i++)
		for (unsigned k = 0; k < f->n_outcomes; k++)
			if (f->outcomes[k] == q->seqs[i])
				done |= (uint64_t)1 << i;
	return done;
}

/* Makes the communicator one of two peers. The answer contains the state of the group. */
static void connected(struct fake *f, uint32_t comm, struct wl_reply *r)
{
	fake_write_attrs(fake_attr_of(&f->comms[comm]), SHM_COMM_CONNECTED, 1, 0, 0, NULL);
	fake_write_master_addr(fake_attr_of(&f->comms[comm]), &f->master_addr);
	f->epoch++;
	atomic_store(&fake_attr_of(&f->comms[comm])->view_id, 30 + f->epoch);
	atomic_store(&fake_attr_of(&f->comms[comm])->global, (uint32_t)(60 + f->epoch));
	r->generation = f->generation;
	memcpy(r->ballots, f->ballots, sizeof r->ballots);
}

void fake_answer(struct fake *f, int conn, const struct wl_request *q, enum fake_action action)
{
	struct wl_reply r = {.req_id = q->req_id};
	unsigned n_fds = 0;
	int fds[4] = {0};

	switch (q->type) {
	case WL_HELLO:
		r.version = WL_VERSION_MAX;
		r.hash_type = f->hash_type;
		if (f->beat >= 0 && (q->features & WL_BEAT)) {
			r.features = WL_BEAT;
			fds[n_fds++] = f->beat;
		}
		break;
	case WL_COMM_CREATE:
		r.comm = make_comm(f, conn, fds, action == FAKE_BAD_QUEUE);
		n_fds = 3;
		break;
	case WL_COMM_CONNECT:
		connected(f, q->comm, &r);
		r.view = f->view;
		r.run.b[0] = 1;
		break;
	case WL_COMM_ATTACH:
		r.comm = make_comm(f, conn, fds, action == FAKE_BAD_QUEUE);
		n_fds = 3;
		connected(f, r.comm, &r);
		r.run = q->run;
		r.done = known_outcomes(f, q);
		break;
	case WL_VOTE:
		r.flag = q->ballot == WIRE_PENDING ||
			 (q->ballot == WIRE_OPTIMIZE && !f->not_optimized);
		if (q->ballot == WIRE_OPTIMIZE && f->not_optimized)
			strcpy(r.text, f->not_optimized);
		if (wire_ballot_kinds[q->ballot].is_exclusive)
			r.generation = f->generation;
		f->ballots[q->ballot] = wire_ballot_next(f->ballots[q->ballot], r.flag);
		memcpy(r.ballots, f->ballots, sizeof r.ballots);
		r.view = f->view;
		break;
	case WL_REGION_ALLOC:
		r.region = fake_make_region(f, q->size);
		r.size = q->size;
		fds[0] = f->regions[r.region].fd;
		n_fds = 1;
		break;
	case WL_REGION_ADOPT:
		r.region = f->n_regions;
		break;
	case WL_REGION_FREE:
		drop_region(&f->regions[q->region]);
		break;
	case WL_REGION_MAP:
		r.region = q->region;
		r.size = f->regions[q->region].size;
		fds[0] = f->regions[q->region].fd;
		n_fds = 1;
		break;
	default:
		break;
	}
	if (action == FAKE_UNSEALED) {
		fds[0] = memfd_create("unsealed", MFD_CLOEXEC);
		MUST(ftruncate(fds[0], (off_t)q->size) == 0);
	}
	if (action == FAKE_NO_FDS)
		n_fds = 0;
	if (action == FAKE_MORE_FDS)
		fds[n_fds++] = f->wake;
	fake_reply(f, conn, &r, fds, n_fds);
	if (action == FAKE_UNSEALED)
		close(fds[0]);
	if (r.features & WL_BEAT) {
		close(f->beat);
		f->beat = -1;
	}
}

/* Ends the held requests of the communicator, as a real agent does before it answers the request to
 * destroy the communicator. */
static void refuse_held(struct fake *f, int conn, uint32_t comm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n_held; i++) {
		struct held h = f->held[i];
		struct wl_reply r = {.req_id = h.request.req_id,
			.code = WIRE_INVALID_USAGE,
			.text = "the communicator was destroyed"};

		if (h.conn == conn && h.request.comm == comm)
			fake_reply(f, conn, &r, NULL, 0);
		else
			f->held[n++] = h;
	}
	f->n_held = n;
}

static void handle(struct fake *f, int conn, const struct wl_request *q, int fd)
{
	unsigned type = q->type == WL_VOTE ? FAKE_VOTE(q->ballot) : q->type;
	enum fake_action action = f->script[type].action;
	struct wl_reply r = {.req_id = q->req_id,
		.code = f->script[type].code,
		.version_min = WL_VERSION_MAX + 3,
		.version_max = WL_VERSION_MAX + 5};

	f->seen[type]++;
	f->last[type] = *q;
	if (fd >= 0 && action == FAKE_ANSWER)
		adopt_region(f, q->size, fd);
	else if (fd >= 0)
		close(fd);
	pthread_cond_broadcast(&f->changed);
	if (q->type == WL_COMM_DESTROY)
		refuse_held(f, conn, q->comm);
	if (f->script[type].text)
		snprintf(r.text, sizeof r.text, "%s", f->script[type].text);
	switch (action) {
	case FAKE_REFUSE:
		fake_reply(f, conn, &r, NULL, 0);
		break;
	case FAKE_GOODBYE:
		r.req_id = 0;
		fake_reply(f, conn, &r, NULL, 0);
		fake_close_conn(f, conn);
		break;
	case FAKE_HANG_UP_ONCE:
		f->script[type].action = FAKE_ANSWER;
		/* fall through */
	case FAKE_HANG_UP:
		fake_close_conn(f, conn);
		break;
	case FAKE_GARBAGE:
		send_packet(f->conns[conn], "\xff\xff\xff", 3, NULL, 0);
		break;
	case FAKE_STRANGER:
		r = (struct wl_reply){.req_id = q->req_id + 1000};
		fake_reply(f, conn, &r, NULL, 0);
		break;
	case FAKE_HOLD:
		MUST(f->n_held < HELD);
		f->held[f->n_held++] = (struct held){conn, *q};
		break;
	default:
		fake_answer(f, conn, q, action);
		break;
	}
}

static void receive(struct fake *f, int conn)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t buf[WL_PACKET_MAX];
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof buf};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof control.buf};
	struct wl_request q;
	const char *why;
	int fd = -1;
	ssize_t n = recvmsg(f->conns[conn], &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fake_close_conn(f, conn);
		return;
	}
	if (mh.msg_controllen > 0 && CMSG_FIRSTHDR(&mh))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof fd);
	MUST(wire_local_get_request(buf, (size_t)n, &q, &why) == 0);
	handle(f, conn, &q, fd);
}

static void accept_one(struct fake *f)
{
	int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);

	for (int i = 0; fd >= 0 && i < CONNS; i++) {
		if (f->conns[i] >= 0)
			continue;
		f->conns[i] = fd;
		f->n_conns++;
		f->accepted++;
		pthread_cond_broadcast(&f->changed);
		return;
	}
	MUST(fd < 0);
}

/* Copies new entries out of the ring. */
static void collect(struct fake *f, struct comm *c)
{
	struct shm_sq *sq = (struct shm_sq *)(void *)(c->queue + SHM_SQ_OFF);
	const struct shm_sqe *ring = (const struct shm_sqe *)(const void *)(c->queue + SHM_SQE_OFF);
	uint64_t rung;
	uint32_t tail;

	/* Read the doorbell before the entries: if it rings in between, it is read again. */
	(void)!read(c->submit_bell, &rung, sizeof rung);
	if (c->conn < 0)
		return;
	tail = atomic_load_explicit(&sq->tail, memory_order_acquire);
	for (; c->head != tail; c->head++) {
		struct fake_op *op = &f->queue[f->queued++ % QUEUED];
		const struct region *r;
		uint64_t size;

		memset(op, 0, sizeof *op);
		op->f = f;
		op->sqe = ring[c->head % SHM_SLOTS];
		op->seq = ++f->last_seq;
		op->slot = (struct shm_slot *)(void *)(c->queue + SHM_SLOT_OFF) + op->sqe.slot;
		op->data_bell = c->data_bell;
		/* no other peer takes part in a refused operation */
		if (op->sqe.flags & SHM_SQE_REFUSED) {
			struct fake_op refused = *op;
			char why[SHM_TEXT];

			memcpy(why, op->slot->text, sizeof why);
			f->queued--;
			pthread_mutex_unlock(&f->lock);
			fake_end(&refused, refused.sqe.refused, why);
			pthread_mutex_lock(&f->lock);
			continue;
		}
		if (op->sqe.flags & SHM_SQE_SYNC) {
			r = &f->regions[op->sqe.sync.region];
			MUST(r->map);
			op->manifest = r->map;
			op->bytes = r->size;
			pthread_cond_broadcast(&f->changed);
			continue;
		}
		op->esize = element_size(op->sqe.dtype);
		op->bytes = op->sqe.count * op->esize;
		r = &f->regions[op->sqe.in_region];
		size = op->sqe.window > 0 ? shm_window_size(op->sqe.window) : op->bytes;
		MUST(r->map && op->sqe.in_off + size <= r->size);
		op->in = r->map + op->sqe.in_off;
		if (op->sqe.flags & SHM_SQE_OUT_REGISTERED) {
			r = &f->regions[op->sqe.out_region];
			MUST(r->map && op->sqe.out_off + op->bytes <= r->size);
			op->out = r->map + op->sqe.out_off;
		}
		pthread_cond_broadcast(&f->changed);
	}
	atomic_store_explicit(&sq->head, c->head, memory_order_release);
}

static void *run(void *arg)
{
	struct fake *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		struct pollfd p[2 + CONNS + COMMS];
		unsigned n = 0, comms = f->n_comms;
		uint64_t woken;

		p[n++] = (struct pollfd){.fd = f->wake, .events = POLLIN};
		p[n++] = (struct pollfd){.fd = f->listener, .events = POLLIN};
		for (unsigned i = 0; i < CONNS; i++)
			p[n++] = (struct pollfd){.fd = f->conns[i], .events = POLLIN};
		for (unsigned i = 0; i < comms; i++)
			p[n++] = (struct pollfd){
				.fd = f->comms[i].conn < 0 ? -1 : f->comms[i].submit_bell,
				.events = POLLIN};
		if (f->stalled)
			n = 1;
		pthread_mutex_unlock(&f->lock);
		poll(p, n, -1);
		pthread_mutex_lock(&f->lock);
		if (p[0].revents)
			(void)!read(f->wake, &woken, sizeof woken);
		if (f->stalled || n == 1)
			continue;
		if (p[1].revents)
			accept_one(f);
		for (int i = 0; i < CONNS; i++)
			if (p[2 + i].revents && f->conns[i] >= 0 && f->conns[i] == p[2 + i].fd)
				receive(f, i);
		for (unsigned i = 0; i < comms; i++)
			if (p[2 + CONNS + i].revents)
				collect(f, &f->comms[i]);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void fake_kick(struct fake *f)
{
	uint64_t one = 1;

	(void)!write(f->wake, &one, sizeof one);
}

struct fake *fake_start_fd(int listener)
{
	struct fake *f = calloc(1, sizeof *f);

	MUST(f && listener >= 0);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->listener = listener;
	f->view = (struct wire_view){.view_id = 1, 2, 2, 1, 2};
	f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned i = 0; i < CONNS; i++)
		f->conns[i] = -1;
	f->beat = -1;
	MUST(pthread_create(&f->thread, NULL, run, f) == 0);
	return f;
}

struct fake *fake_start(const char *path)
{
	return fake_start_fd(cc_listen_unix(path, SOCK_SEQPACKET, 0600));
}

void fake_stop(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	fake_kick(f);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	for (int i = 0; i < CONNS; i++)
		fake_close_conn(f, i);
	for (uint32_t i = 0; i < f->n_comms; i++) {
		cc_shm_unmap(f->comms[i].queue, SHM_SIZE);
		close(f->comms[i].queue_fd);
		close(f->comms[i].submit_bell);
		close(f->comms[i].data_bell);
	}
	for (uint64_t i = 1; i <= f->n_regions; i++)
		drop_region(&f->regions[i]);
	close(f->listener);
	close(f->wake);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
