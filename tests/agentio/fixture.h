/* SPDX-License-Identifier: MIT
 *
 * An agent in a thread, processes that talk to it, and a master whose messages the test chooses. A
 * wait that takes longer than FX_TIMEOUT_MS fails the test.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cc_route.h"
#include "pcclagentd/agentd.h"
#include "proto/shm_queue.h"
#include "proto/wire_link.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"

#define FX_TIMEOUT_MS 10000

/* ---- the agent ---- */

struct fx {
	char dir[64], path[96], admin[96]; /* sockets for processes, and for pcclctl */
	pthread_t thread;
	struct agentd *agent;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct agentd_stats stats; /* renewed every few milliseconds */
	uint32_t renewed;          /* the number of renewals */
	bool stop, still;
	void (*call)(struct agentd *d, void *arg);
	void *call_arg;
};

void fx_start(struct fx *f, void (*tweak)(struct agentd_config *c));
/* Starts the agent as fx_start does. But the test wakes this agent only by calls of the functions
 * below. */
void fx_start_still(struct fx *f, void (*tweak)(struct agentd_config *c));
void fx_stop(struct fx *f);
/* fx_stats and fx_await use only figures that are newer than their call. */
struct agentd_stats fx_stats(struct fx *f);
void fx_await(struct fx *f, bool (*done)(const struct agentd_stats *s, uint64_t arg), uint64_t arg);
/* Calls `fn` in the agent's thread, and returns after it. */
void fx_call(struct fx *f, void (*fn)(struct agentd *d, void *arg), void *arg);
/* Starts a process that runs `fn` and then ends. The agent's thread forks while this thread waits,
 * so no other thread holds a lock that the child needs. (The sanitizers' allocators do not take
 * their locks before a fork.) */
pid_t fx_fork(struct fx *f, void (*fn)(struct fx *f, int fd), int fd);
/* Makes the folder and the names of the sockets, for a test that creates the sockets itself. */
void fx_make_place(struct fx *f);
void fx_remove_place(struct fx *f);
/* Returns the number of descriptors of this process. */
unsigned fx_count_fds(void);

/* ---- a process ---- */

#define HANDED_MAX 16

struct client {
	int fd;
	uint32_t last_req;
	/* the last result regions that the agent handed over */
	struct wl_reply handed[HANDED_MAX];
	unsigned n_handed;
};

void client_connect(struct fx *f, struct client *c); /* without hello */
void client_open(struct fx *f, struct client *c);    /* with hello */
void client_close(struct client *c);
void client_send(struct client *c, struct wl_request *q); /* sets req_id */
/* Sends a request with descriptors, which stay the caller's. */
void client_send_fds(struct client *c, struct wl_request *q, const int *fds, unsigned n);
/* Receives a reply. Returns false if the session is closed. Surplus descriptors fail the test. */
bool client_receive(struct client *c, struct wl_reply *r, int *fds, unsigned want_fds);
void client_call(
	struct client *c, struct wl_request *q, struct wl_reply *r, int *fds, unsigned want_fds);
/* Waits until the agent closes the session. `text`: the text of its goodbye, "" if there was
 * none. */
void client_await_end(struct client *c, char text[WL_TEXT_MAX]);
/* Checks that the agent still serves other processes. */
void fx_check_alive(struct fx *f);

struct mem {
	uint64_t region, size;
	uint8_t *map;
};
/* These return the result code. */
uint32_t client_alloc(struct client *c, uint64_t size, struct mem *ret);
uint32_t client_alloc_use(struct client *c, uint64_t size, enum wl_region_use use, struct mem *ret);
uint32_t client_free(struct client *c, uint64_t region);

struct queue {
	uint32_t comm, tail;
	int sq_bell, data_bell;
	uint8_t *map;
};
void client_comm(struct client *c, const struct cc_addr *master, uint32_t group, struct queue *ret);
void queue_close(struct queue *q);
struct shm_slot *queue_slot(const struct queue *q, uint32_t slot);
/* Submits the entry without any checks. */
void queue_push(struct queue *q, const struct shm_sqe *e);
void queue_set_tail(struct queue *q, uint32_t tail);
/* Returns a submission: a sum of `count` floats at the start of a registered region. */
struct shm_sqe queue_sum(uint32_t slot, uint64_t tag, uint64_t count, const struct mem *in);
/* Waits for the completion and returns its code. The slot stays DONE. */
uint32_t queue_await(const struct queue *q, uint32_t slot);
void queue_free_slot(const struct queue *q, uint32_t slot);

/* ---- a master ---- */

struct master {
	int listener, fd;
	struct cc_addr addr;
	struct cc_id run, key, agent;
	struct cc_seal *seal; /* the seal of the connection */
	uint64_t seq, term;
	uint64_t next;           /* the reserved seq in the messages that end operations */
	enum cc_algo route;      /* of the operations that it starts, and of the reserved seq */
	uint32_t segment_max;    /* in bytes; sent to the agent */
	struct cc_bounds bounds; /* sent to the agent; 0: the defaults */
};

void master_listen(struct master *m);
void master_accept(struct master *m); /* accepts the agent, up to HELLO_ACK */
/* Does the same as master_accept, as a master with this term. The caller clears *hello. */
void master_take(struct master *m, uint64_t term, struct wm_msg *hello);
/* Closes the agent's connection. */
void master_hang_up(struct master *m);
void master_close(struct master *m);
/* Puts the proof into a hello to the agent, as if the master had ordered the sender to connect.
 * Returns the link key. */
struct cc_key master_prove(const struct master *m, uint8_t buf[WLK_HELLO_SIZE]);
void master_send(struct master *m, const struct wm_msg *msg);
/* Receives the next message that is not a heartbeat. The caller clears it. */
void master_next(struct master *m, struct wm_msg *ret);
/* Does the same as master_next. The message must be of this type. */
void master_expect(struct master *m, enum wm_type type, struct wm_msg *ret);
/* Lets the communicators of both clients join group 1 of a run on this host alone. */
void master_join_two(struct master *m, struct fx *f, struct client *a, struct queue *qa,
	struct client *b, struct queue *qb);
/* Closes everything that is still open after master_join_two, and stops the agent. */
void master_part_two(struct master *m, struct fx *f, struct client *a, struct queue *qa,
	struct client *b, struct queue *qb);
/* Takes the vote for this tag and starts the operation. Returns its sequence number. */
uint64_t master_start_op(struct master *m, uint64_t tag);
/* Starts the operation without reading votes. Returns its sequence number. */
uint64_t master_started(struct master *m, uint64_t tag);
/* Ends the operation with success, without reading reports. */
void master_done(struct master *m, uint64_t seq);
void master_finish_op(struct master *m, uint64_t seq);

/* ---- TCP ---- */

int tcp_connect(uint16_t port);
void tcp_send(int fd, const void *buf, size_t len);
/* Reads until `len` bytes have come or the connection has ended. Returns the number of bytes. */
size_t tcp_receive(int fd, void *buf, size_t len);

#endif
