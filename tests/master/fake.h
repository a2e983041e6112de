/* SPDX-License-Identifier: MIT
 *
 * A master core and simulated agents in one process with virtual time. ccm_check follows every
 * step. Each message of the master goes to the inbox of its host.
 */
#ifndef FAKE_H
#define FAKE_H

#include <string.h>

#include "ccoip-masterd/core/ccm.h"
#include "proto/wire_codes.h"

#define FK_HOSTS_MAX 512

struct fk_host {
	struct fk *fk;
	uint32_t conn;
	char name[WM_NAME_MAX];
	struct cc_id id;
	bool open;
	bool mute;        /* sends no heartbeats */
	uint32_t path_ms; /* see ccm_event */
	bool auto_report; /* answers each ROUND with success (default) */
	/* Answers each PROBE with success and keeps it out of the inbox (default). */
	bool auto_probed;
	bool auto_measured;      /* answers each MEASURE by fk.rate (default) */
	struct wm_measure order; /* the WM_MEASURE that the host has not answered, owned; or zero */
	uint64_t probes[1024];   /* numbers of the PROBEs that the host has not answered */
	uint32_t n_probes;
	struct wm_msg *inbox;
	size_t n, cap;
	struct wm_msg last;    /* the message that fk_take returned, owned */
	struct wm_round round; /* the last ROUND, owned */
	uint64_t epoch;
	struct fk_generation { /* the generations of its groups, as the master sent them */
		uint32_t group;
		uint64_t generation, revision;
	} generations[16];
	uint32_t n_generations;
	uint64_t ballots[WIRE_BALLOTS]; /* as the master sent them last */
	/* The ballots and the view in each JOIN: the state that the peers know after their
	 * agent was replaced. */
	struct wm_join peers;
	char closed[WM_TEXT_MAX]; /* the reason why the master closed the connection */
};

struct fk_peer {
	struct fk_host *host;
	struct cc_id id, token;
	uint32_t group;
};

#define FK_EPOCH 2u /* of attempts that fk_vote_seq reports as started */

#define FK_BUSY UINT64_MAX /* see fk.rate */

struct fk {
	struct ccm *m;
	struct ccm_actions out;
	uint64_t now;
	uint32_t last_conn, last_id;
	uint64_t sent; /* number of messages that the master has sent */
	bool owed;     /* since fk_settle, a host has got a message that it answers by itself */
	uint32_t lines, strangers; /* logged lines; those about agents without members */
	uint32_t n_hosts;
	struct fk_host *hosts[FK_HOSTS_MAX];
	struct cc_id run, run_key;
	uint64_t features; /* put into each HELLO from now on */
	bool left;         /* put into each HELLO from now on */
	uint16_t port_p2p; /* likewise; 0: another one for each connection */
	bool local;        /* new connections come from the master's own host */
	bool quiet;        /* no ccm_check after each step, because the test calls it */
	/* enum wm_wait_for_kind; put into the votes for operations from now on. */
	uint32_t waits_for;
	bool drop;        /* messages are not kept in inboxes */
	uint8_t *journal; /* records of a master with cfg.journal */
	size_t journal_len;
	char log[WM_TEXT_MAX]; /* the last log line of level warning or worse */
	/* The rate that hosts report for a link, in bit/s; 0: it cannot be opened; FK_BUSY: one of
	 * the hosts is busy. In a measurement with several targets they share this rate. NULL:
	 * hosts do not answer WM_MEASURE. */
	uint64_t (*rate)(const struct fk_host *from, const struct fk_host *to);
	uint32_t confidence;          /* of these rates, in percent */
	struct ccm_problem *problems; /* those of CCM_ACT_SOLVE, owned; the oldest first */
	size_t n_problems;
	/* Called for each message before it reaches an inbox. May be NULL. */
	void (*watch)(void *arg, struct fk_host *h, const struct wm_msg *msg);
	void *watch_arg;
};

void fk_init(struct fk *f, const struct ccm_config *cfg); /* uses defaults if `cfg` is NULL */
void fk_free(struct fk *f);
void fk_step(struct fk *f, const struct ccm_event *ev);
void fk_tick(struct fk *f, uint32_t ms); /* every 100 ms; connected hosts send heartbeats */
void fk_tick_silent(struct fk *f, uint32_t ms, const struct fk_host *silent);
struct cc_id fk_id(struct fk *f);
struct ccm_status fk_status(struct fk *f);
const char *fk_waiting(const struct fk *f); /* until the next call */

/* Opens a connection without HELLO. addr: "10.0.0.1:5". */
struct fk_host *fk_connect(struct fk *f, const char *name, const char *addr);
struct wm_msg fk_hello(const struct fk_host *h);
/* Opens a connection and exchanges HELLO and HELLO_ACK. */
struct fk_host *fk_host(struct fk *f, const char *name, const char *addr);
/* Closes the connection. The master counts the agent as gone. */
void fk_close(struct fk_host *h, const char *why);
/* Breaks the connection. The agent may come back. */
void fk_cut(struct fk_host *h, const char *why);
void fk_send(struct fk_host *h, const struct wm_msg *msg);

struct fk_peer fk_join(struct fk_host *h, uint32_t group);
/* Lets the peer `old` join again on the connection of h. */
struct fk_peer fk_join_again(
	const struct fk_peer *old, struct fk_host *h, enum wm_join_phase phase);
/* Sends an empty RESUME, which ends the snapshot of h's agent. The master must not have taken over
 * the run yet. */
void fk_resumed(struct fk_host *h);
/* Opens a new connection of h's agent, which has state of the run. Sends HELLO, which the master
 * answers with HELLO_ACK. */
struct fk_host *fk_reconnect(struct fk_host *h);
/* Does the same with a HELLO of this term. With `stateless`, the connection belongs to a new agent
 * that knows only the run's id. */
struct fk_host *fk_reconnect_as(struct fk_host *h, uint64_t term, bool stateless);
/* Replaces the master by a new one and closes all connections. */
void fk_new_master(struct fk *f, const struct ccm_config *cfg);
/* Does the same, and the new master restores the first len bytes of the journal. */
void fk_restart(struct fk *f, const struct ccm_config *cfg, size_t len);
/* Lets a new peer join and makes all `others` vote so that it is accepted. */
struct fk_peer fk_admit(struct fk_host *h, uint32_t group, const struct fk_peer *others, size_t n);
/* Connects n hosts "a", "b", ... at 10.0.0.1 and up. Each gets one accepted peer in group 0. */
void fk_run_of(struct fk *f, struct fk_host **h, struct fk_peer *p, size_t n);
void fk_leave(const struct fk_peer *p, enum wm_leave_kind kind);
void fk_leave_because(const struct fk_peer *p, enum wm_leave_kind kind, const char *why);
void fk_ballot(const struct fk_peer *p, enum wire_ballot kind);
void fk_topo(const struct fk_peer *p);
void fk_pending(const struct fk_peer *p);
void fk_vote(const struct fk_peer *p, uint64_t tag);
/* Sends p's refusal: its call has failed locally with this code. */
void fk_refuse(const struct fk_peer *p, uint64_t tag, uint32_t code, const char *text);
void fk_vote_params(const struct fk_peer *p, uint64_t tag, struct wm_op_params params);
void fk_vote_many(const struct fk_peer *p, size_t n, uint64_t tag);
/* Returns the usual candidate of the tests: two tensors of 100 bytes together, with this content
 * and the strategy enforce-popular. */
struct wm_sync_vote fk_candidate(uint64_t revision, uint64_t content);
void fk_sync(const struct fk_peer *p, struct wm_sync_vote candidate);
/* Sends one vote for n peers of one host. */
void fk_sync_many(const struct fk_peer *p, size_t n, struct wm_sync_vote candidate);
/* Sends a vote to a new master again, for attempt seq. The election of this attempt had chosen this
 * revision and content. */
void fk_sync_again(const struct fk_peer *p, struct wm_sync_vote candidate, uint64_t seq,
	uint64_t revision, uint64_t content);
/* Reports that p has failed with code 4. With `ok`, the rest of the host's part is finished. */
void fk_report_failed(const struct fk_peer *p, uint64_t seq, bool ok);
/* Returns the revision of the group that the master sent to h last. */
uint64_t fk_revision(struct fk_host *h, uint32_t group);
uint64_t fk_generation(struct fk_host *h, uint32_t group); /* the same for the generation */
void fk_know_generation(struct fk_host *h, uint32_t group, uint64_t generation);
/* Sends a vote for group 0 from a peer that knows generation 0. seq: the number of the attempt that
 * has started, or 0. */
void fk_vote_seq(const struct fk_peer *p, uint64_t tag, uint64_t seq);
/* Asks how these attempts have ended. p has joined again through a new agent and has the complete
 * result of each attempt. It knows that the last `succeeded` of them were successful. */
void fk_query(const struct fk_peer *p, uint32_t n, const uint64_t *seqs, uint32_t succeeded);
void fk_report(struct fk_host *h, uint64_t seq, bool ok);
void fk_report_code(struct fk_host *h, uint64_t seq, uint32_t code, const char *text);
/* Reports on the last ROUND: a failed link to `to`, or success if `to` is NULL. */
void fk_round_report(struct fk_host *h, const struct fk_host *to, const char *text);
/* Does the same, and `limit` says that the link failed because a limit was reached. */
void fk_round_short(struct fk_host *h, const struct fk_host *to, bool limit, const char *text);
/* Answers the oldest PROBE of h, whose target must be `to`. With text NULL the answer is
 * success. */
void fk_probed(struct fk_host *h, const struct fk_host *to, const char *text);
/* Answers the pending WM_MEASURE of h by f->rate. */
void fk_measured(struct fk_host *h);
/* Returns the last problem of the group. Fails the test if there is none. */
const struct ccm_problem *fk_problem(struct fk *f, uint32_t group);
void fk_forget_problems(struct fk *f);
void fk_solved(struct fk *f, const struct ccm_solution *x);
void fk_manual(struct fk *f); /* from now on no host reports by itself */
/* Answers pending ROUNDs, PROBEs and MEASUREs of the hosts that answer by themselves, until none is
 * left. */
void fk_settle(struct fk *f);

/* Takes the oldest message of this type out of the inbox. Fails the test if there is none. */
const struct wm_msg *fk_take(struct fk_host *h, enum wm_type type);
size_t fk_count(const struct fk_host *h, enum wm_type type);
void fk_forget(struct fk *f);                          /* empties all inboxes */
struct ccm_peer_info fk_info(const struct fk_peer *p); /* the peer must be present */
bool fk_present(const struct fk_peer *p);
extern const struct wm_op_params fk_params;

#define assert_contains(text, part)                                                                \
	ck_assert_msg(strstr(text, part) != NULL, "'%s' does not contain '%s'", text, part)

#endif
