/* SPDX-License-Identifier: MIT
 *
 * The master's state machine: membership, votes, connection rounds, collective operations. Pure and
 * deterministic: events in, actions out, the time passed in; no descriptor, clock, thread or random
 * source. One thread.
 *
 * Vocabulary. An *agent* is one connection; it speaks for any number of *peers* (communicators),
 * each in one *group*. A peer is PEER_REGISTERED after WM_JOIN and PEER_ACCEPTED after the commit
 * of an accepting round. The *ring* of a group is the order of the agents that have accepted peers
 * in it. A *round* prepares rings: the agents concerned open their links and report; when all
 * reports are good the round is committed, the *epoch* grows. An *operation* is one attempt at a
 * collective of (group, tag); its name is `seq`.
 *
 * Rules kept here:
 * - First peer: with no accepted peer, all registered peers are accepted at once, by a round.
 * - Topology vote: when every accepted peer of the run has voted (WM_TOPO_VOTE), an accepting round
 *   over accepted + registered peers starts; with nothing to change it is committed at once.
 * - Newcomers of a run that has members are probed first (WM_PROBE): whoever would be next to them
 *   in the ring opens a connection to them and they to whoever is next, beside everything else. A
 *   round admits those alone whose links have been proven, and pending votes answer for no others.
 *   Where a link fails another order of the ring is looked for; a newcomer that none is found for,
 *   or that has failed three times, is kicked with the reason. Its host is not tried again before
 *   0.5 s, twice as long after each failure, up to 8 s; 4 s to 60 s where a round has failed, for
 *   which members had to wait. A host is known by name, address, p2p port and what it advertises;
 *   having been admitted for a minute clears it, and a host that is put out for its connections
 *   before has failed in a round. With no accepted peer nobody waits, and nothing is probed.
 * - A newcomer can spoil the round that it is in, under another name and address each time: it does
 *   not report, it says that it cannot open its link, or it leaves. After the first such round the
 *   reports of newcomers are awaited for 2 s only. After the second one all newcomers wait for 4 s,
 *   twice as long after each further one, up to 30 s, and are then let in one at a time. One
 *   spoilt round is forgiven each minute.
 * - Absence (connection closed): the agent's accepted peers have agent_grace_ms to come back.
 *   Their votes do not count any more; where they had voted for an operation, all of their group
 *   are aborted with pcclRankConnectionLost and counted in the group's losses, though nobody is
 *   removed (but see shared state). Nothing that needs their votes goes on meanwhile, so the end
 *   of the grace fails nothing again: one death costs one error. An agent that is silent, kicked
 *   or has said goodbye has no grace.
 * - A WM_JOIN of a peer that is known, by another connection and with its token, moves an accepted
 *   peer there (a connection that is not closed yet is cut first: it is half open); a rewiring
 *   round puts rings in force that contain it, and its WM_COMMIT is the answer. A wrong token:
 *   WM_KICK, nothing else changes. Who says that it has been accepted and is not known: WM_KICK.
 *   Peers that come during a round come with the next one. No round begins while an agent that
 *   presents the run's key is still telling what it knows (HELLO_ACK.resume .. RESUME, at most
 *   round_timeout): it would lack those of its peers that are still to come.
 * - The last WM_OUTCOMES_MAX ended attempts of each group are remembered: more cannot be in doubt,
 *   for no peer has more operations in flight. What nobody remembers has failed. WM_OP_QUERY asks
 *   for them; so does WM_OP_VOTE with a seq from an agent whose connection broke.
 * - Loss (end of the grace, WM_LEAVE, kick, silence): every operation of the peer's group that has
 *   a vote is aborted with pcclRankConnectionLost; the new world is announced before the abort; a
 *   rewiring round starts unless an accepting one was running, which is restarted without the peer.
 *   Votes are counted again: the leaver may have been the last one missing.
 *   A vote whose agent had not been told of the loss is answered like the aborted ones: no attempt
 *   spans a loss, so that all who call several operations at once see the same ones fail.
 * - Round failure: judged after verdict_ms, for who cannot be reached may just have died, which is
 *   about to be heard. Failed pairs name the agents that cannot reach each other. Newcomers among
 *   them are kicked with the reason; between old members another ring order that avoids the pairs
 *   is tried, and when there is none, or it would take more than 5 s in all, the agent with the
 *   most failures (at a tie: the unreachable one) is kicked. Agents that do not report in time
 *   (round_timeout) are kicked. Where an agent that could not be reached has told other addresses
 *   since the round began, it is repeated with these.
 * - Silence between members: an agent whose link within an operation fell silent says so, and names
 *   the other end. From then on rings avoid links between the two, in either direction, until one
 *   works or the members change. Where no ring can avoid them, one new link has three fifths of
 * CC_BOUND_NEW_LINK; then they count as a failed pair, and one of them goes. What its peers had
 * voted for since they were told of the silence is taken back: the others see no second error.
 * - Lost link: whoever finds the link to or from a neighbour in a ring broken says so
 *   (WM_LINK_LOST), for the other end may never hear of it. Operations of the group that have
 *   started are aborted, as after a failure that is reported, and a round has the link made anew,
 *   by the order of the master (wm_ring.renew) where its owner may think that it is up.
 * - Operation: starts when every accepted peer of the group has voted for the tag with equal
 *   parameters and no round is in progress; is done when every agent in it has reported success; is
 *   aborted for all otherwise. A failure that is reported interrupts the group like an absence: all
 *   its operations fail, or programs that await several would wait for those that try one again.
 *   Unequal parameters abort it with pcclInvalidArgument naming the field and both values; nobody
 *   is kicked. Votes with unequal parameters are collected like others: all callers get the same
 *   answer.
 * - Shared state: a synchronization is an operation without a tag, one of a group at a time, also
 *   of a group of one. It and other operations of the group do not run at the same time: what is
 *   complete later waits. A loss before the start takes the lost peer's vote away, no more; so
 *   does the absence of an agent, which votes again. Votes need not agree; with the last one the
 * election (ccm_elect.h) is held, once. Who is out is kicked with its sentence (pcclInvalidUsage),
 * the world is told, the others start; if nobody stands all are kicked, and nothing starts.
 *   WM_OP_START names to each agent its own peers' parts; to those with receivers also the agents
 *   with holders, each time from another one on, and those with receivers alone, from the next one
 *   on.
 *   Peers that a report names as failed are kicked, the others go on. So it is with any loss after
 *   the start: votes of who is lost go, and the part of an agent with its last peer. It is aborted
 *   when nobody is left who has what was elected and gives it to others, neither a holder nor a
 *   peer of an agent that has reported success; by a report of failure that names nobody; and by
 *   the absence of an agent that has not reported success. Without one that has it goes on: its
 *   peers have it all. When they are back, WM_OP_QUERY for it is answered at its end; an agent
 *   that says itself that it is in it (WM_OP_VOTE with its seq) has its part again.
 *   When it is done, the group expects the next revision. The journal has that first, then its
 *   agents are told the world, then the end. It is remembered when the group has no members,
 *   unless the run of the group is over: the last member left by itself, and since the last
 *   synchronization nobody was lost. Then any revision will do, as at first. So it is for all
 *   groups after a reset, which kicks all peers; a stale master is not reset.
 *   To a next master agents tell what was elected: that is not asked again. A peer that has not
 *   heard gets its start or its kick by it. An attempt with less than the expected revision was
 *   done. If nobody of a group came by an agent that has lived on, and attempts are in doubt, it is
 *   not known what the group expects: any revision will do. What an agent without members was told
 *   last counts no more.
 * - Waits: whom an operation, a topology vote or a pending vote has waited for longer than two
 *   seconds is logged once and told to the agents that have voted (WM_WAITS), again when that
 *   changes. Peers that have voted are never named.
 * - Calls that can never meet (ccm_stuck.c): a vote comes to an end when every accepted peer
 *   concerned has given it or may still give it; a peer may if it waits for nothing, or for
 *   something (or for any of several operations of which one) that comes to an end, or is
 *   stopped. Topology and pending votes that come to no end
 *   by that rule are answered to those who gave them (WM_UNMET), and no turn ends. Where there are
 *   none, and all peers of a group wait for what comes to no end, its operations that have not
 *   started are aborted for their voters with pcclInvalidUsage. A newcomer whose thread holds a
 *   peer that would have to vote is kicked with that code first. During a round, a takeover or an
 *   absence nothing is decided. Who is answered four times without having done anything else is
 *   answered with the next tick, and when there are none but such voters, each a hundred times, the
 *   operations are aborted that wait for them.
 * - Taking over: a master to which nothing has happened yet adopts the run of the first agent
 *   that knows one; one that was restored from its journal has it. For a minute so does one that
 *   has founded a run with newcomers meanwhile, unless several of them have done an operation:
 *   they are to connect again, and of that run nothing is left. Then it is recovering: agents say
 * what they know (JOIN .. RESUME), nothing is decided, newcomers wait. It ends when all accepted
 * peers that are known of have come back, or after recovery_ms. If only half of them have by then,
 * or less, the others may have another master: who came is sent away once, to look for it, and
 * recovery_ms begins again when one of them is back. What follows: the highest epoch, round, turn
 * and count of losses are in force; a round that one agent knows to be committed is, but newcomers
 * that were lost since, as others know, are newcomers still; an attempt
 * whose end one agent knows has ended so for all; one for which all its peers have voted goes on,
 * and a synchronization also if those who have not came by new agents and ask for it; one whose
 * result all hosts have (also those of peers that came by a new agent and ask for it) is done;
 * every other one has failed, with all that its group does. A host that has not come, or has left
 * again, may lack it, unless a peer that came by a new agent was told of success: then only the
 * others count. Who has not come back is lost. Nobody is told of an error when nobody but the
 * master died.
 * - A master that takes over leaves numbers out that the last one may have used unheard.
 * - Term: grows with each master of a run. Who presents the run's key and a higher term makes this
 *   master stale: it refuses everybody from then on. While it is recovering it takes a higher term
 *   itself instead, and leaves a journal aside that does not know that much.
 * - A turn says which vote is meant: one that was answered is answered again.
 * - Journal: the members at every commit, losses, the term, before anything that depends on them is
 *   sent. Agents know what is missing in it.
 * - A master that was suspended for longer than the least bound of an agent's patience, less the
 *   beat that was due, cannot know what its agents have made of it. It closes all connections and
 *   takes its run over anew, like one that died and was restored from a journal that lacks nothing,
 *   but in the same term: if an agent has seen a higher one, another master has taken over, and
 *   this one is stale.
 * - A message that the peer's state does not allow is a protocol violation: the peer (or, where no
 *   peer is named, the connection) is kicked with a sentence that says which. Messages that were on
 *   their way when the master changed its mind are not: reports of old rounds and operations, and
 *   peers that are unknown (kicked a moment ago), are passed over.
 * - An agent joins by one connection. When another one of the same agent joins, the older one has
 *   ended, and is cut.
 * - Any message is a sign of life. An agent that has been silent for longer than its bound, which
 *   follows from its habits (common/cc_detect.h; timeout_ms at most), is gone. Silence is measured
 *   between ticks: when the ticks themselves stopped for longer than half of the least bound (the
 *   master was suspended), all bounds start again. So do those of other hosts when not one of them
 *   was heard of for so long, and one is again.
 * - All other hosts fall silent at once when it is the cable of this one that is out. Then nobody
 *   is put out: as after a suspension the run is taken over anew, from whoever comes. Newcomers
 *   on this host do not begin recovery_ms; they wait for a minute. Where only one other host is
 *   left nobody can tell whose cable it is: it goes if this host has members, who would wait for
 *   it.
 */
#ifndef CCM_H
#define CCM_H

#include "proto/wire_journal.h"
#include "proto/wire_master.h"

enum ccm_connection_phase { CCM_PEER_REGISTERED = 0, CCM_PEER_ACCEPTED = 1 };

/* The states of the protocol by their traditional names; ccm_state_name() spells them. */
enum ccm_connection_state {
	CCM_IDLE = 0,
	CCM_VOTE_ACCEPT_NEW_PEERS,
	CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS,
	CCM_CONNECTING_TO_PEERS,
	CCM_COLLECTIVE_COMMUNICATIONS_RUNNING,
};

enum ccm_collective_state {
	CCM_VOTE_INITIATE_COLLECTIVE_COMMS = 0,
	CCM_PERFORM_COLLECTIVE_COMMS,
	CCM_VOTE_COMPLETE_COLLECTIVE_COMMS,
};

struct ccm_config {
	struct cc_id run, run_key; /* random bytes from the caller */
	uint32_t timeout_ms;       /* default 2800: the longest silence of an agent */
	uint32_t heartbeat_ms;     /* default 5/28 of timeout_ms */
	struct cc_bounds bounds; /* 0: the usual ones; CC_BOUND_ROUND also from HELLO_ACK to RESUME,
				  * and for trying orders of a ring before somebody has to go */
	uint32_t verdict_ms;     /* from the failure of a round to its verdict; default 0 */
	uint32_t recovery_ms;    /* default 3000: for the agents of a run that is taken over */
	uint32_t adopt_ms; /* default 0: this long, at first, hellos of agents that know no run
			    * wait for those that know one */
	uint32_t agent_grace_ms; /* default 5000: for the peers of an agent that is gone */
	uint32_t segment_max;    /* bytes */
	uint32_t max_peers;      /* joins beyond are refused; default 65536 */
	uint64_t first_number;   /* losses and attempts of a run that nobody remembers are counted
				  * from here, terms from a 4096th of it: more than any earlier master
				  * has counted (the wall clock, say); below 2^52 */
	bool journal;            /* make JOURNAL actions */
	uint32_t log_level;      /* LOG actions above it are not made; 0: CCM_LOG_INFO */
};

enum ccm_event_type {
	CCM_EV_OPEN = 1, /* a connection was accepted */
	CCM_EV_CLOSED,   /* it is gone; text says why */
	CCM_EV_MSG,      /* a decoded message; stays owned by the caller */
	CCM_EV_TICK,     /* time has passed; at least every ccm_tick_ms() */
	CCM_EV_RESET,    /* an operator: the run is over, the next one begins anew; text says why */
	CCM_EV_END, /* the run is over, the master ends; text says why. While members are absent,
		       further steps tell them */
};

struct ccm_event {
	enum ccm_event_type type;
	uint32_t conn;       /* chosen by the caller, never 0, unique among open connections */
	struct cc_addr addr; /* OPEN: where the connection comes from */
	bool local;          /* OPEN: from this host; no cable can fail */
	const struct wm_msg *msg;
	uint32_t way_ms; /* OPEN, and MSG, a heartbeat: see cc_detect_way */
	const char *text;
	bool refused; /* CLOSED: by the caller, who has told the agent that it is out */
};

/* After CLOSE the core has forgotten the connection: events of it are ignored. */
enum ccm_action_type {
	CCM_ACT_SEND = 1,
	CCM_ACT_CLOSE,
	CCM_ACT_LOG,
	CCM_ACT_JOURNAL, /* to be on the disk before what follows is carried out */
};
enum ccm_log_level {
	CCM_LOG_ERR = 3,
	CCM_LOG_WARNING = 4,
	CCM_LOG_NOTICE = 5,
	CCM_LOG_INFO = 6,
	CCM_LOG_DEBUG = 7
};

struct ccm_action {
	enum ccm_action_type type;
	uint32_t conn;  /* CLOSE (after what was sent has gone out) */
	uint32_t level; /* LOG: enum ccm_log_level */
	/* SEND: to ccm_actions.conns[first_conn], and so on, in this order; n_conns may be 0. */
	uint32_t n_conns;
	size_t first_conn;
	union {
		struct wm_msg msg;       /* SEND: the same for all; the type's member only */
		struct wj_record record; /* JOURNAL */
		char text[WM_TEXT_MAX];  /* CLOSE, LOG */
	};
};

/* Growing arrays, reused between steps: ccm_actions_clear keeps the memory. */
struct ccm_actions {
	struct ccm_action *v;
	size_t n, cap;
	uint32_t *conns;
	size_t n_conns, cap_conns;
};

void ccm_actions_clear(struct ccm_actions *a); /* frees what the messages own */
void ccm_actions_free(struct ccm_actions *a);

struct ccm;

/* NULL when memory is exhausted. */
struct ccm *ccm_new(const struct ccm_config *cfg);
void ccm_free(struct ccm *m);
/* Half a heartbeat: ticks should come so often. */
uint32_t ccm_tick_ms(const struct ccm *m);
/* Before the first step: a record of the journal of an earlier master, in their order. The run of
 * the last one goes on. 0 or CC_ERR_NOMEM. */
int ccm_restore(struct ccm *m, const struct wj_record *r);
/* Appends to *out. 0, or CC_ERR_NOMEM after which the process should end. */
int ccm_step(struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out);
/* Checks every invariant of the state; NULL or a static text naming the broken one (tests,
 * simulator). */
const char *ccm_check(const struct ccm *m);

const char *ccm_phase_name(enum ccm_connection_phase p);
const char *ccm_state_name(enum ccm_connection_state s);
const char *ccm_collective_name(enum ccm_collective_state s);

/* Looking inside, for the admin socket and tests. */
struct ccm_status {
	struct cc_id run;
	uint64_t term, epoch, round, last_seq;
	bool recovering; /* taking the run over from another master */
	uint64_t stale;  /* the term of a master that has taken over the run, or 0 */
	bool round_active, round_accepts;
	uint32_t agents, registered, accepted, groups;
	uint32_t absent;    /* of the accepted: their agents are gone */
	uint32_t revisions; /* groups that expect one, also those without members */
	/* Accepted peers that left cleanly; those that are gone otherwise, the kicked ones too. */
	uint64_t leaves, losses;
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	char waiting[WM_TEXT_MAX]; /* what the run waits for, "" when nothing */
};
void ccm_get_status(const struct ccm *m, uint64_t now_ns, struct ccm_status *ret);

struct ccm_peer_info {
	struct cc_id peer, agent;
	char name[WM_NAME_MAX], host[WM_NAME_MAX];
	struct cc_addr addr;
	uint32_t group, pid, ops;
	int rank;    /* in its group's ring order; -1: in no ring (registered, or to come back) */
	bool absent; /* its agent is gone */
	uint64_t absent_ns; /* since when */
	enum ccm_connection_phase phase;
	enum ccm_connection_state state;
	uint64_t state_ns; /* time in this state */
};
/* Calls fn for each peer, by group and rank. */
void ccm_each_peer(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_peer_info *p), void *arg);

struct ccm_op_info {
	uint32_t group;
	bool is_sync; /* of shared state; tag is 0 */
	uint64_t tag, seq, age_ns, bytes;
	uint64_t stalled_ns; /* since the last vote, start or report */
	enum ccm_collective_state state;
	struct wm_op_params params;
	uint32_t votes, world;
	char awaited[WM_TEXT_MAX]; /* names of (some of) those who are awaited, and why */
};
/* While recovering: what agents have told so far. */
void ccm_each_op(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg);

/* Shared state: the last election of a group (by this master), and what came of it. */
enum ccm_sync_end {
	CCM_SYNC_NONE = 0, /* there was none */
	CCM_SYNC_RUNNING,
	CCM_SYNC_DONE,
	CCM_SYNC_FAILED,
	CCM_SYNC_NOBODY, /* stood: all were kicked */
};
const char *ccm_sync_end_name(enum ccm_sync_end e);

struct ccm_state_info {
	uint32_t group, peers;       /* peers: accepted */
	uint64_t expected;           /* revision; 0: nothing was synchronized, any will do */
	enum ccm_sync_end end;       /* NONE: all below is zero */
	uint64_t seq, age_ns;        /* age: since the election */
	struct wm_sync_vote elected; /* RUNNING, DONE, FAILED: what, and the group's revision */
	uint32_t holders, receivers, out;
	char text[WM_TEXT_MAX]; /* FAILED: why */
};
void ccm_each_state(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_state_info *s), void *arg);

enum ccm_stand {
	CCM_STAND_HOLDER = 0,
	CCM_STAND_OUTDATED, /* a holder at another revision */
	CCM_STAND_RECEIVER,
	CCM_STAND_OUT, /* kicked; or lost before the end */
};
const char *ccm_stand_name(enum ccm_stand s);

/* A peer at the last election of its group; it need not be there any more. */
struct ccm_stand_info {
	uint32_t group, pid;
	struct cc_id peer;
	const char *name, *host;
	struct wm_sync_vote offer;
	enum ccm_stand stand;
	char text[WM_TEXT_MAX]; /* in what it deviated, or why it was put out; or "" */
};
/* By group, in ring order. */
void ccm_each_stand(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_stand_info *s), void *arg);

#endif
