/* SPDX-License-Identifier: MIT
 *
 * Everything that faces a process of this host: its connection, its communicators' queue pairs, the
 * memory that it shares with the agent, what it offers to synchronizations, and the regions that
 * results are written to. What processes write is hostile until it has been copied and checked. One
 * struct loc for the agent, loop thread alone.
 */
#ifndef LOCAL_H
#define LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hsh.h"
#include "pcclagentd/core/agt.h"
#include "proto/shm_queue.h"
#include "proto/shm_state.h"
#include "proto/wire_local.h"

struct base;
struct eng;
struct ste;
struct ste_member;

struct loc;
struct loc_comm;     /* a communicator's queue pair */
struct loc_region;   /* shared memory, mapped here */
struct loc_manifest; /* what a peer offers to a synchronization, checked */
struct loc_result;   /* a region for results, lent to one operation */

/* What the parts above are asked or told. */
struct loc_ops {
	/* The operand of loc_comm_await_operand may be there. */
	void (*doorbell)(void *arg);
	/* The communicator with this id is gone. */
	void (*comm_closed)(void *arg, uint32_t comm);
	/* Memory of another peer that this one may copy from, or NULL. */
	struct loc_region *(*shown)(void *arg, const struct loc_comm *c, uint64_t region);
};

/* NULL, with the reason logged. */
struct loc *loc_new(struct base *b);
/* Before the first process comes. */
void loc_set_ops(struct loc *loc, const struct loc_ops *ops, void *arg);
/* No process has a session any more, and no thread works for one. */
void loc_stop(struct loc *loc);
/* What others refer to must have been given back. NULL is fine. */
void loc_free(struct loc *loc);

struct loc_stats {
	uint32_t sessions, comms, regions, results;
	uint64_t mem_used; /* bytes */
};
void loc_get_stats(const struct loc *loc, struct loc_stats *ret);
/* For how long there was no session; 0: there is one. */
uint64_t loc_idle_ns(const struct loc *loc, uint64_t now);

/* ---- processes ---- */

/* Listens on cfg.session_fd, which is the listener's then. 0 or CC_ERR_*. */
int loc_session_listen(struct loc *loc);
void loc_session_stop_listening(struct loc *loc);
void loc_session_reply(
	struct loc *loc, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds);
/* Logs, says goodbye, closes. */
__attribute__((format(printf, 4, 5))) void loc_session_drop(
	struct loc *loc, uint32_t session, uint32_t code, const char *fmt, ...);
/* Closes those whose processes are gone. */
void loc_session_close_gone(struct loc *loc);
/* Their processes are to look for the next agent. */
void loc_session_goodbye_all(struct loc *loc, const char *why);
void loc_session_look(struct loc *loc); /* at all processes, whatever the time */
void loc_session_tick(struct loc *loc, uint64_t now);

struct loc_process {
	uint32_t pid;
	bool stopped;
	const char *name; /* the session's */
};
/* Of a communicator. False: it is gone. */
bool loc_process_of(const struct loc_comm *c, struct loc_process *ret);

/* ---- communicators ---- */

/* Makes the queue pair, publishes attrs in it and sends the reply with its descriptors. */
void loc_comm_open(struct loc *loc, uint32_t session, uint32_t id, const struct wl_reply *reply,
	const struct agt_attrs *attrs);
void loc_comm_close(struct loc *loc, uint32_t id);
void loc_comm_close_all(struct loc *loc);
struct loc_comm *loc_comm_find(struct loc *loc, uint32_t id); /* NULL: there is none */
uint32_t loc_comm_uid(const struct loc_comm *c);
struct loc_comm *loc_comm_ref(struct loc_comm *c);
void loc_comm_unref(struct loc_comm *c);
void loc_comm_publish(struct loc *loc, uint32_t id, const struct agt_attrs *a);
void loc_comm_complete(struct loc *loc, uint32_t id, uint32_t slot, const struct agt_done *done);
struct shm_slot *loc_comm_slot(const struct loc_comm *c, uint32_t slot);
/* Never half of it, whenever this process dies. */
void loc_comm_put_view(struct shm_slot *s, const struct wire_view *w);
/* loc_ops.doorbell is called once when the submission doorbell rings next. */
void loc_comm_await_operand(struct loc_comm *c);
/* The engine watches the communicator's data doorbell; it leaves the one that did before. */
int loc_comm_use_engine(struct loc_comm *c, struct eng *e);
int loc_comm_use_state(struct loc_comm *c, struct ste *e);
/* The engine ends: no communicator uses it any more. */
void loc_comms_leave_engine(struct loc *loc, const struct eng *e);
void loc_comms_leave_state(struct loc *loc, const struct ste *e);

/* ---- submissions under way ---- */

/* One slot that takes part in an operation. */
struct loc_reader {
	struct loc_comm *comm; /* referenced */
	uint32_t slot, gen;
};

struct loc_member {
	struct loc_reader h;
	struct loc_region *in;  /* its operand; referenced */
	struct loc_region *out; /* its registered output, referenced; or NULL */
};
/* False: its process is gone. */
bool loc_member_take(struct loc *loc, uint32_t comm, uint32_t slot, struct loc_member *ret);
void loc_member_release(struct loc *loc, struct loc_member *m);
/* Of a synchronization: one more user, and reference. NULL: its process is gone. */
struct loc_manifest *loc_manifest_take(struct loc_comm *c, uint32_t slot);

/* ---- shared memory ---- */

uint64_t loc_region_id(const struct loc_region *r);
uint8_t *loc_region_map(const struct loc_region *r);
/* A reference that does not keep the owner from freeing it; NULL is fine. */
struct loc_region *loc_region_lend(struct loc_region *r);
void loc_region_return(struct loc *loc, struct loc_region *r);

/* Memory of the agent's own that a user causes. Unlike shared memory, which may be accounted to the
 * cgroups of others, it is never more than the agent's cgroup can bear, whatever mem_total says.
 * WIRE_SUCCESS, or a code and a sentence in text[WL_TEXT_MAX]. */
uint32_t loc_account_charge(struct loc *loc, uint32_t uid, uint64_t bytes, char *text);
void loc_account_discharge(struct loc *loc, uint32_t uid, uint64_t bytes);

/* ---- results ---- */

/* For which operations regions may be shared: those of one group. */
struct loc_group {
	uint32_t run, group;
};
/* A region of at least `need` bytes for an operation of these members. WIRE_SUCCESS, or the code of
 * what is missing, with a sentence in text[WL_TEXT_MAX]. */
uint32_t loc_result_take(struct loc *loc, const struct loc_group *group, uint64_t need,
	const struct loc_member *members, uint32_t n, struct loc_result **ret, char *text);
/* The operation is over: the region is free again once its members' processes have read it. */
void loc_result_give_back(struct loc_result *res);
uint8_t *loc_result_map(const struct loc_result *res);
uint64_t loc_result_region(const struct loc_result *res);
bool loc_result_is_mapped(const struct loc_result *res, const struct loc_comm *c);
/* Hands the region over to those of the members that do not have it. What lies in the socket of a
 * process by now, it has: also if this agent dies before the process looks there. */
void loc_result_hand_over(
	struct loc *loc, struct loc_result *res, const struct loc_member *members, uint32_t n);
void loc_result_tick(struct loc *loc, uint64_t now);

/* ---- manifests ---- */

/* Their memory is there until loc_manifest_leave was called; what was copied out of it (state, uid)
 * until loc_manifest_unref. */
void loc_manifest_leave(struct loc_manifest *m);
void loc_manifest_unref(struct loc_manifest *m);
uint32_t loc_manifest_uid(const struct loc_manifest *m);
const struct shm_state *loc_manifest_state(const struct loc_manifest *m);
const uint8_t *loc_manifest_map(const struct loc_manifest *m);
/* The memory with this id, if tensors or the table lie in it; or NULL. */
struct loc_region *loc_manifest_region(const struct loc_manifest *m, uint64_t id);
/* What the engine is told of its memory: uid, map, region, state, regions. The regions are the
 * caller's, to be freed. */
void loc_manifest_fill(const struct loc_manifest *m, struct ste_member *ret);
/* Tells the process whether this agent is at work on it or waits for others, should it die. */
void loc_manifest_at_work(const struct loc_manifest *m, bool at_work);
/* NULL and a sentence in text[WL_TEXT_MAX]. */
hsh_leaf_fn *loc_manifest_leaf_fn(struct loc *loc, uint32_t hash_type, char *text);

#endif
