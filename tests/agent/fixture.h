/* SPDX-License-Identifier: MIT
 *
 * An agent core under a microscope: events go in one at a time, the actions of the last step lie
 * open, the invariants are checked after each. The master is played by the test.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"
#include "tests/agent/suites.h"

#define MS UINT64_C(1000000)

struct fx {
	struct agt *a;
	struct agt_actions acts; /* of the last step */
	uint64_t now;
	uint32_t req_id;                   /* of the last request */
	uint64_t generation;               /* that applications know of */
	uint64_t topo_ballot, epoch;       /* of the last commit */
	uint64_t view_id;                  /* of the view */
	uint32_t heartbeat_ms, timeout_ms; /* of the next master; 1000, 3000 */
};

struct fx *fx_new(void);
struct fx *fx_new_addr(uint32_t master_addr_timeout_ms);
void fx_free(struct fx *f);
void fx_step(struct fx *f, const struct agt_event *ev);

/* How many actions of that type the last step had, and the n-th of them. */
uint32_t fx_count(const struct fx *f, enum agt_action_type type);
const struct agt_action *fx_get(const struct fx *f, enum agt_action_type type, uint32_t n);
/* The same for messages to the master. */
uint32_t fx_sent(const struct fx *f, enum wm_type type);
const struct wm_msg *fx_msg(const struct fx *f, enum wm_type type, uint32_t n);
/* Place of the n-th action of that type among all of the step. */
size_t fx_index(const struct fx *f, enum agt_action_type type, uint32_t n);
/* The one reply (completion) of the last step has this code and this in its text. */
void fx_expect_reply(const struct fx *f, uint32_t code, const char *text);
void fx_expect_done(const struct fx *f, uint32_t n, uint32_t comm, uint32_t code, const char *text);

struct cc_id fx_id(unsigned n);
struct cc_id fx_token(unsigned peer);
static inline bool fx_is(const struct cc_id *x, struct cc_id id)
{
	return cc_id_eq(x, &id);
}
struct cc_addr fx_addr(unsigned n); /* 10.0.0.n:48148 */

void fx_session(struct fx *f, uint32_t session, uint32_t uid); /* pid: 1000 + session */
void fx_session_closed(struct fx *f, uint32_t session);
void fx_request(struct fx *f, uint32_t session, uint32_t comm, enum wl_type type);
/* As the library leaves by itself; fx_request does as pcclDestroyCommunicator. */
void fx_destroy(struct fx *f, uint32_t session, uint32_t comm, const char *why);
/* pcclCreateCommunicator of a master at fx_addr(master). Returns the communicator. */
uint32_t fx_create(struct fx *f, uint32_t session, uint32_t group, unsigned master);
/* pcclConnect; the peer's id is fx_id(peer), its token fx_token(peer). */
void fx_connect(struct fx *f, uint32_t session, uint32_t comm, unsigned peer);

void fx_event(struct fx *f, enum agt_event_type type, uint32_t run, const char *text);
void fx_from_master(struct fx *f, uint32_t run, const struct wm_msg *m);
/* MASTER_UP and HELLO_ACK; heartbeat 1 s, timeout 3 s, run id fx_id(200 + run). */
void fx_master_up(struct fx *f, uint32_t run);

/* The master knows that the peer has left. */
void fx_left(struct fx *f, uint32_t run, unsigned peer);

/* One group's ring: `hosts` hosts, this one at position 0; next is agent fx_id(100), prev
 * fx_id(101), or fx_id(100) too with two hosts. */
struct fx_ring {
	uint32_t group, hosts, world_size;
	uint64_t generation;
	const char *loss; /* the last one; NULL: the master does not know */
	unsigned n;
	unsigned members[8];
	bool reopen; /* both links */
};
void fx_round(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n);
void fx_commit(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n);
void fx_view(struct fx *f, uint32_t run, const struct fx_ring *v, unsigned n);
void fx_link(struct fx *f, enum agt_event_type type, uint32_t run, unsigned peer, bool inbound);
/* ROUND, LINK_UP where a link was opened, COMMIT. */
void fx_accept(struct fx *f, uint32_t run, uint64_t round, const struct fx_ring *v, unsigned n);

void fx_submit(struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint64_t count);
/* The call has failed where it was made. */
void fx_refuse(
	struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint32_t code, const char *text);
/* Eight elements by each of n communicators, in the slot that goes with the tag. */
void fx_submit_all(struct fx *f, const uint32_t *comms, unsigned n, uint64_t tag);
void fx_op_start(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq);
void fx_op_abort(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq);
void fx_op_done(struct fx *f, uint32_t run, uint64_t seq);
void fx_xfer(struct fx *f, enum agt_event_type type, uint32_t run, uint64_t seq, uint32_t code);

/* Session s (1..n), each with a communicator in group 7 of master 1, all accepted: peers fx_id(s),
 * ring of `hosts` hosts. comms[s - 1] gets the communicators. The run is 1. */
void fx_group(struct fx *f, unsigned n, uint32_t hosts, uint32_t *comms);

/* This much later, a tick. */
void fx_tick(struct fx *f, uint64_t ms);

/* The master of run 1 dies: nobody hears of it, and another is sought. */
void fx_orphan(struct fx *f);
struct wm_msg fx_ack(uint64_t term); /* HELLO_ACK of a master that takes run 1 over */
void fx_greet(struct fx *f);         /* MASTER_UP, answered by HELLO with the run's id and key */
void fx_resume(struct fx *f);        /* a master of term 2 takes run 1 over from one of term 1 */

#endif
