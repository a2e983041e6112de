/* SPDX-License-Identifier: MIT
 *
 * A master core and agents made of test code, in one process with virtual time. Every step is
 * followed by ccm_check; messages of the master land in the inbox of their host.
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
	bool mute;             /* sends no heartbeats */
	uint32_t path_ms;      /* see ccm_event */
	bool auto_report;      /* answers each ROUND with success (default) */
	bool auto_probed;      /* likewise each PROBE, which is not in the inbox then (default) */
	uint64_t probes[1024]; /* numbers of those that it has not answered */
	uint32_t n_probes;
	struct wm_msg *inbox;
	size_t n, cap;
	struct wm_msg last;    /* what fk_take returned, owned */
	struct wm_round round; /* the last ROUND, owned */
	uint64_t epoch;
	struct fk_generation { /* what it was told about its groups */
		uint32_t group;
		uint64_t generation, revision;
	} generations[16];
	uint32_t n_generations;
	uint64_t topo_ballot, pending_ballot; /* as told last */
	struct wm_join peers;     /* what its peers know when they come by another agent: numbers */
	char closed[WM_TEXT_MAX]; /* why the master closed it */
};

struct fk_peer {
	struct fk_host *host;
	struct cc_id id, token;
	uint32_t group;
};

struct fk {
	struct ccm *m;
	struct ccm_actions out;
	uint64_t now;
	uint32_t last_conn, last_id;
	uint64_t sent; /* messages of the master so far */
	uint32_t n_hosts;
	struct fk_host *hosts[FK_HOSTS_MAX];
	struct cc_id run, run_key;
	uint64_t features;  /* of the hellos from now on */
	bool left;          /* likewise */
	bool local;         /* hosts that connect are on the master's */
	bool quiet;         /* no ccm_check after each step: the test does it */
	uint32_t waits_for; /* enum wm_wait_for_kind: of the votes for operations, from now on */
	bool drop;          /* inboxes are not filled */
	uint8_t *journal;   /* what a master with cfg.journal has written */
	size_t journal_len;
	char log[WM_TEXT_MAX]; /* the last line of level warning or worse */
	/* Called for each message before it reaches an inbox; NULL: nothing. */
	void (*watch)(void *arg, struct fk_host *h, const struct wm_msg *msg);
	void *watch_arg;
};

void fk_init(struct fk *f, const struct ccm_config *cfg); /* cfg NULL: defaults */
void fk_free(struct fk *f);
void fk_step(struct fk *f, const struct ccm_event *ev);
void fk_tick(struct fk *f, uint32_t ms); /* ticks every 100 ms; open hosts send heartbeats */
void fk_tick_silent(struct fk *f, uint32_t ms, const struct fk_host *silent);
struct cc_id fk_id(struct fk *f);
struct ccm_status fk_status(struct fk *f);

/* A connection only; addr "10.0.0.1:5". */
struct fk_host *fk_connect(struct fk *f, const char *name, const char *addr);
struct wm_msg fk_hello(const struct fk_host *h);
/* Connected and greeted. */
struct fk_host *fk_host(struct fk *f, const char *name, const char *addr);
void fk_close(struct fk_host *h, const char *why); /* and the agent is out */
void fk_cut(struct fk_host *h, const char *why);   /* it may come back */
void fk_send(struct fk_host *h, const struct wm_msg *msg);

struct fk_peer fk_join(struct fk_host *h, uint32_t group);
/* The old one comes (back) by h. */
struct fk_peer fk_join_again(
	const struct fk_peer *old, struct fk_host *h, enum wm_join_phase phase);
/* Ends what the agent has to say of the run, to a master that has not taken it over. */
void fk_resumed(struct fk_host *h);
/* A new connection of h's agent, which has state of the run; answered by HELLO_ACK. */
struct fk_host *fk_reconnect(struct fk_host *h);
/* The same, with this term; stateless: by a new agent that knows the run's id only. */
struct fk_host *fk_reconnect_as(struct fk_host *h, uint64_t term, bool stateless);
/* The master is gone, another one is there; all connections are closed. */
void fk_new_master(struct fk *f, const struct ccm_config *cfg);
/* The same, with the first len bytes of the journal. */
void fk_restart(struct fk *f, const struct ccm_config *cfg, size_t len);
/* Joins and makes all `others` vote so that it is accepted. */
struct fk_peer fk_admit(struct fk_host *h, uint32_t group, const struct fk_peer *others, size_t n);
/* n hosts "a", "b", ... at 10.0.0.1 and up, with one accepted peer each, in group 0. */
void fk_run_of(struct fk *f, struct fk_host **h, struct fk_peer *p, size_t n);
void fk_leave(const struct fk_peer *p, enum wm_leave_kind kind);
void fk_leave_because(const struct fk_peer *p, enum wm_leave_kind kind, const char *why);
void fk_topo(const struct fk_peer *p);
void fk_pending(const struct fk_peer *p);
void fk_vote(const struct fk_peer *p, uint64_t tag);
/* The call has failed at p, with this code. */
void fk_refuse(const struct fk_peer *p, uint64_t tag, uint32_t code, const char *text);
void fk_vote_params(const struct fk_peer *p, uint64_t tag, struct wm_op_params params);
void fk_vote_many(const struct fk_peer *p, size_t n, uint64_t tag);
/* What the tests' peers have: two tensors of 100 bytes, of these contents; enforce-popular. */
struct wm_sync_vote fk_candidate(uint64_t revision, uint64_t content);
void fk_sync(const struct fk_peer *p, struct wm_sync_vote candidate);
/* n peers of one host */
void fk_sync_many(const struct fk_peer *p, size_t n, struct wm_sync_vote candidate);
/* To a new master: of attempt seq, which was to make this revision and content of all. */
void fk_sync_again(const struct fk_peer *p, struct wm_sync_vote candidate, uint64_t seq,
	uint64_t revision, uint64_t content);
/* p's part has failed, with code 4; ok: and the host's is done. */
void fk_report_failed(const struct fk_peer *p, uint64_t seq, bool ok);
/* The revision that h was told last that group expects. */
uint64_t fk_revision(struct fk_host *h, uint32_t group);
uint64_t fk_generation(struct fk_host *h, uint32_t group); /* likewise */
void fk_know_generation(struct fk_host *h, uint32_t group, uint64_t generation);
/* Of group 0, by who knows generation 0; seq: what the attempt was started as, or 0. */
void fk_vote_seq(const struct fk_peer *p, uint64_t tag, uint64_t seq);
/* How have these attempts ended? p, who comes by a new agent, has the whole result of each. */
/* succeeded: so many of them, the last ones, have, as the peer knows */
void fk_query(const struct fk_peer *p, uint32_t n, const uint64_t *seqs, uint32_t succeeded);
void fk_report(struct fk_host *h, uint64_t seq, bool ok);
void fk_report_code(struct fk_host *h, uint64_t seq, uint32_t code, const char *text);
/* Reports on the last ROUND; to NULL: success. */
void fk_round_report(struct fk_host *h, const struct fk_host *to, const char *text);
/* The same, where text may name a limit that is reached. */
void fk_round_short(struct fk_host *h, const struct fk_host *to, bool limit, const char *text);
/* Answers the oldest PROBE of h, which must lead to `to`; text NULL: it can be reached. */
void fk_probed(struct fk_host *h, const struct fk_host *to, const char *text);
void fk_manual(struct fk *f); /* no host reports by itself from now on */
/* Answers pending ROUNDs of hosts that report by themselves, until there are none. */
void fk_settle(struct fk *f);

/* The oldest message of this type, taken out of the inbox; fails the test when there is none. */
const struct wm_msg *fk_take(struct fk_host *h, enum wm_type type);
size_t fk_count(const struct fk_host *h, enum wm_type type);
void fk_forget(struct fk *f);                          /* empties all inboxes */
struct ccm_peer_info fk_info(const struct fk_peer *p); /* it must be present */
bool fk_present(const struct fk_peer *p);
extern const struct wm_op_params fk_params;

#define assert_contains(text, part)                                                                \
	ck_assert_msg(strstr(text, part) != NULL, "'%s' does not contain '%s'", text, part)

#endif
