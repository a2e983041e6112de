/* SPDX-License-Identifier: MIT
 *
 * Engines of several hosts in one process, joined by loopback TCP streams in a ring, and one
 * transfer over all of them with its expected result.
 */
#ifndef NET_H
#define NET_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/engine.h"

#define HOSTS_MAX   4u
#define MEMBERS_MAX 3u
#define WAIT_MS     20000
#define OLD_BYTE    0xab /* what a direct output holds before */

struct host {
	struct eng *e;
	int event_fd;
	uint32_t n_members;
	int bell[MEMBERS_MAX];
	struct shm_slot slot[MEMBERS_MAX];
	uint8_t *in[MEMBERS_MAX];
	uint8_t *area, *direct;
	_Atomic uint8_t *flags;
};

struct net {
	uint32_t hosts, streams;
	uint64_t tx_link; /* every host's outbound link has this number + 1, inbound + 2 */
	struct host h[HOSTS_MAX];
};

struct op {
	uint64_t seq;
	enum krn_op op;
	uint64_t count;
	bool staged, direct, in_place;
	size_t segment_max;
};

/* Seeds rng(). */
extern uint64_t rng_state;

uint64_t rng(void);
void tcp_pair(int pair[2]);
void net_up(struct net *n, uint32_t hosts, uint32_t streams);
void net_down(struct net *n);
bool wait_event(struct host *h, struct eng_event *ev, int ms);
void start_one(struct net *n, const struct op *o, uint32_t pos, uint32_t world);
void feed(struct net *n, const struct op *o);
void prepare(struct net *n, const struct op *o);
void cleanup(struct net *n);
void run_op(struct net *n, const struct op *o);
bool all_bytes(const uint8_t *p, uint8_t value, uint64_t n);

#endif
