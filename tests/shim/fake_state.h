/* SPDX-License-Identifier: MIT
 *
 * Inside the fake agent: state shared by its thread and the functions that tests call. These
 * functions are called with the lock held, or after the thread has ended.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/fake_agent.h"

#define CONNS   16
#define COMMS   512
#define REGIONS 4096
#define QUEUED  256
#define HELD    16
#define TYPES   FAKE_VOTE(WIRE_BALLOTS)

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #x,          \
				strerror(errno));                                                  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct region {
	uint64_t size;
	uint8_t *map;
	int fd;
};

struct comm {
	int conn; /* -1: the communicator has ended */
	uint8_t *queue;
	int queue_fd, submit_bell, data_bell;
	uint32_t head;
	uint64_t result[SHM_SLOTS]; /* the result region for the next operation in each slot */
};

struct held {
	int conn;
	struct wl_request request;
};

struct fake {
	pthread_mutex_t lock; /* protects everything; not held during poll */
	pthread_cond_t changed;
	pthread_t thread;
	bool stopping;
	int listener, wake;
	int conns[CONNS]; /* -1: no connection */
	unsigned n_conns, accepted;
	struct comm comms[COMMS];
	uint32_t n_comms;
	struct region regions[REGIONS]; /* number 0 is not used */
	uint64_t n_regions;
	struct fake_op queue[QUEUED];
	unsigned taken, queued;
	unsigned seen[TYPES];
	struct wl_request last[TYPES];
	struct cc_addr master_addr; /* as published to communicators */
	uint32_t hash_type;
	int beat; /* the end that the next answer to a hello carries, or -1 */
	uint64_t generation, ballots[WIRE_BALLOTS], epoch;
	struct wire_view view;     /* the view in answers and completions */
	const char *not_optimized; /* votes on optimization fail with this text; NULL: they succeed
				    */
	uint64_t last_seq, outcomes[QUEUED];
	unsigned n_outcomes;
	bool stalled, asked; /* asked: result regions are handed over only on request */
	struct {
		enum fake_action action;
		uint32_t code;
		const char *text;
	} script[TYPES];
	struct held held[HELD];
	unsigned n_held;
};

/* Sends a reply over f->conns[conn]. */
void fake_reply(struct fake *f, int conn, const struct wl_reply *r, const int *fds, unsigned n);
/* Answers a request with success. */
void fake_answer(struct fake *f, int conn, const struct wl_request *q, enum fake_action action);
/* Closes the connection, unless it is closed already. */
void fake_close_conn(struct fake *f, int conn);
/* Makes memory of this size. Returns its number in f->regions. */
uint64_t fake_make_region(struct fake *f, uint64_t size);
struct shm_attr *fake_attr_of(const struct comm *c);
/* `text` may be NULL. */
void fake_write_attrs(struct shm_attr *a, enum shm_comm_state state, uint32_t hosts, uint32_t pos,
	uint32_t code, const char *text);
void fake_write_master_addr(struct shm_attr *a, const struct cc_addr *at);
/* Wakes the thread, which then looks at everything again. */
void fake_kick(struct fake *f);

#endif
