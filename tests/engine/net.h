/* SPDX-License-Identifier: MIT
 *
 * Engines of several hosts in one process, connected by loopback TCP streams in a ring or a mesh,
 * and one transfer over all hosts with its expected result.
 */
#ifndef NET_H
#define NET_H

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/engine/engine.h"

/* Some tests repeat steps so that events meet at different moments. Under ThreadSanitizer they
 * repeat the steps less often, and with fewer elements, because each takes ten times as long, and
 * because ThreadSanitizer detects a race even if the race does not happen. */
#ifdef __SANITIZE_THREAD__
#define TIMES(n) ((n) / 5)
#define MANY(n)  ((n) / 4)
#else
#define TIMES(n) (n)
#define MANY(n)  (n)
#endif

#define HOSTS_MAX   9u
#define RING_MAX    4u /* hosts in tests that try all shapes on the ring */
#define MEMBERS_MAX 3u
#define WAIT_MS     20000
#define OLD_BYTE    0xab /* every byte of a direct output before the transfer */

struct host {
	struct eng *e;
	int event_fd;
	uint32_t n_members;
	int bell[MEMBERS_MAX];
	struct shm_slot slot[MEMBERS_MAX];
	uint8_t *in[MEMBERS_MAX];
	uint8_t *area, *direct, *scratch, *out[MEMBERS_MAX], *window[MEMBERS_MAX];
	_Atomic uint8_t *flags;
};

struct net {
	uint32_t hosts, streams;
	/* In a ring, outbound links have number 1, inbound links 2. In a mesh, the outbound link to
	 * position p has number 1 + p, the inbound link from there 101 + p. */
	bool mesh;
	struct host h[HOSTS_MAX];
};

struct op {
	uint64_t seq;
	enum krn_op op;
	uint64_t count;
	bool staged, direct, in_place;
	bool replaces; /* the area is the only member's operand, and readers overwrite it */
	bool outs; /* the area is the first member's output; the other members have outputs, too */
	bool floats; /* the elements are KRN_F32, not KRN_U32 */
	size_t segment_max;
	enum cc_algo route;           /* a route other than the ring needs a mesh */
	const struct cc_rings *rings; /* of CC_ALGO_RINGS; else NULL */
	uint32_t window[MEMBERS_MAX]; /* segments of the window; 0: no window */
};

/* Takes the segments of all hosts as soon as their flags are set, like shims. */
struct reader {
	const struct net *n;
	const struct op *o;
	struct cc_plan plan;
	pthread_t thread;
	atomic_bool stop;
	uint8_t *got[HOSTS_MAX];
	bool *taken[HOSTS_MAX];
};

extern uint64_t rng_state; /* the seed of rng() */

uint64_t rng(void);
void tcp_pair(int pair[2]);
void net_up(struct net *n, uint32_t hosts, uint32_t streams);
/* Connects each host to each other host. */
void net_up_mesh(struct net *n, uint32_t hosts, uint32_t streams);
void net_down(struct net *n);
bool wait_event(struct host *h, struct eng_event *ev, int ms);
/* Makes two to four rings of the hosts, in random orders and with random shares. */
struct cc_rings random_rings(uint32_t hosts);
/* Plans a transfer over so many hosts. */
struct cc_plan plan_op(const struct op *o, uint32_t hosts);
/* Fills in the agents and links of all hosts, as the host at `pos` sees them. */
void fill_peers(const struct net *n, uint32_t pos, struct eng_peer *ret);
void start_one(struct net *n, const struct op *o, uint32_t pos, uint32_t world_size);
void feed(struct net *n, const struct op *o);
void prepare(struct net *n, const struct op *o);
void cleanup(struct net *n);
/* Returns the expected result. The caller frees it. */
uint8_t *results(const struct net *n, const struct op *o);
void reader_start(struct reader *r, const struct net *n, const struct op *o);
void reader_stop(struct reader *r);
/* Checks that all segments that the reader took were right, and that the engine wrote nothing to
 * them after their flags. `whole`: the reader must have all segments. */
void reader_check(const struct reader *r, const uint8_t *want, bool whole);
void run_op(struct net *n, const struct op *o);
/* Starts a transfer of one real host at position 0 of 2, with one member. The test plays the other
 * host. */
void start_alone(struct net *n, const struct op *o, struct cc_plan *plan);
void cancel_alone(struct net *n, uint64_t seq);
/* Makes a partial sum in which every byte is `fill`. Returns its bytes, with the header. */
size_t make_segment(
	uint8_t *buf, const struct cc_plan *plan, uint64_t seq, uint32_t seg, uint8_t fill);
void send_segment(int fd, const struct cc_plan *plan, uint64_t seq, uint32_t seg, uint8_t fill);
/* Receives `len` bytes from a stream of an engine. Each part must come within WAIT_MS. */
void receive_all(int fd, uint8_t *buf, size_t len);
bool all_bytes(const uint8_t *p, uint8_t value, uint64_t n);

#endif
