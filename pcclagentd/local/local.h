/* SPDX-License-Identifier: MIT
 *
 * Everything between the agent and a process of this host: the process's connection, its
 * communicators' queue pairs, the memory that it shares with the agent, its candidates for
 * synchronizations, and the regions to which results are written. Everything that processes write
 * is hostile until it has been copied and checked. The agent has one struct loc, used only in the
 * loop thread.
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
struct loc_region;   /* shared memory, mapped by the agent */
struct loc_manifest; /* a peer's candidate for a synchronization, checked */
struct loc_result;   /* a region for results, lent to one operation */

/* Calls to the parts of the agent that use this folder. */
struct loc_ops {
	/* The doorbell of a communicator has rung after loc_comm_await_operand. */
	void (*doorbell)(void *arg);
	/* The communicator with this id is gone. */
	void (*comm_closed)(void *arg, uint32_t comm);
	/* Returns memory of another peer from which c's peer may copy, or NULL. */
	struct loc_region *(*shown)(void *arg, const struct loc_comm *c, uint64_t region);
};

/* Returns NULL after a failure; the reason has been logged. */
struct loc *loc_new(struct base *b);
/* Sets the calls. To be done before the first process connects. */
void loc_set_ops(struct loc *loc, const struct loc_ops *ops, void *arg);
/* Closes all sessions, and waits for the threads that check manifests. */
void loc_stop(struct loc *loc);
/* Frees everything. All references must have been given back. NULL is fine. */
void loc_free(struct loc *loc);

struct loc_stats {
	uint32_t sessions, comms, regions, results;
	uint64_t mem_used; /* bytes */
};
void loc_get_stats(const struct loc *loc, struct loc_stats *ret);
/* Returns for how long there has been no session; 0: there is one. */
uint64_t loc_idle_ns(const struct loc *loc, uint64_t now);

/* ---- processes ---- */

/* Listens on cfg.session_fd, and takes it over. Returns 0 or CC_ERR_*. */
int loc_session_listen(struct loc *loc);
void loc_session_stop_listening(struct loc *loc);
void loc_session_reply(
	struct loc *loc, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds);
/* Logs the reason, sends it to the process as goodbye, and closes the session. */
__attribute__((format(printf, 4, 5))) void loc_session_drop(
	struct loc *loc, uint32_t session, uint32_t code, const char *fmt, ...);
/* Closes the sessions whose processes are gone. */
void loc_session_close_gone(struct loc *loc);
/* Closes all sessions with a goodbye, after which their processes wait for the next agent. */
void loc_session_goodbye_all(struct loc *loc, const char *why);
void loc_session_look(struct loc *loc); /* checks at once which processes are stopped */
void loc_session_tick(struct loc *loc, uint64_t now);

struct loc_process {
	uint32_t pid;
	bool stopped;
	const char *name; /* the name of its session */
};
/* Returns the process of a communicator in *ret. False: the process is gone. */
bool loc_process_of(const struct loc_comm *c, struct loc_process *ret);

/* ---- communicators ---- */

/* Makes the queue pair, publishes attrs in it and sends the reply with its descriptors. */
void loc_comm_open(struct loc *loc, uint32_t session, uint32_t id, const struct wl_reply *reply,
	const struct agt_attrs *attrs);
void loc_comm_close(struct loc *loc, uint32_t id);
void loc_comm_close_all(struct loc *loc);
struct loc_comm *loc_comm_find(struct loc *loc, uint32_t id); /* NULL: no such communicator */
uint32_t loc_comm_uid(const struct loc_comm *c);
struct loc_comm *loc_comm_ref(struct loc_comm *c);
void loc_comm_unref(struct loc_comm *c);
void loc_comm_publish(struct loc *loc, uint32_t id, const struct agt_attrs *a);
void loc_comm_complete(struct loc *loc, uint32_t id, uint32_t slot, const struct agt_done *done);
struct shm_slot *loc_comm_slot(const struct loc_comm *c, uint32_t slot);
/* Writes the view. The shim never reads a half-written view, even if this process dies
 * meanwhile. */
void loc_comm_put_view(struct shm_slot *s, const struct wire_view *w);
/* Asks for one call of loc_ops.doorbell when the submission doorbell rings next. */
void loc_comm_await_operand(struct loc_comm *c);
/* Lets the engine watch the communicator's data doorbell, instead of the engine that watched it
 * before. */
int loc_comm_use_engine(struct loc_comm *c, struct eng *e);
int loc_comm_use_state(struct loc_comm *c, struct ste *e);
/* Ends the use of the engine by all communicators, because the engine ends. */
void loc_comms_leave_engine(struct loc *loc, const struct eng *e);
void loc_comms_leave_state(struct loc *loc, const struct ste *e);

/* ---- submissions in progress ---- */

/* A slot that takes part in an operation. */
struct loc_reader {
	struct loc_comm *comm; /* referenced */
	uint32_t slot, gen;
};

struct loc_member {
	struct loc_reader h;
	struct loc_region *in;  /* its operand; referenced */
	struct loc_region *out; /* its registered output, referenced; or NULL */
};
/* Takes references to a slot's communicator and regions. False: its process is gone. */
bool loc_member_take(struct loc *loc, uint32_t comm, uint32_t slot, struct loc_member *ret);
void loc_member_release(struct loc *loc, struct loc_member *m);
/* Returns the slot's manifest with one more user and reference. NULL: its process is gone. */
struct loc_manifest *loc_manifest_take(struct loc_comm *c, uint32_t slot);

/* ---- shared memory ---- */

uint64_t loc_region_id(const struct loc_region *r);
uint8_t *loc_region_map(const struct loc_region *r);
/* Takes a reference that does not keep the owner from freeing the region. NULL is fine. */
struct loc_region *loc_region_lend(struct loc_region *r);
void loc_region_return(struct loc *loc, struct loc_region *r);

/* Books memory that the agent itself needs for a user. Shared memory may be charged to cgroups of
 * other processes; the agent's own memory is always charged to its own cgroup. So the sum of the
 * agent's own memory never exceeds mem_own, even if mem_total is higher. Returns WIRE_SUCCESS, or a
 * code and a sentence in text[WL_TEXT_MAX]. */
uint32_t loc_account_charge(struct loc *loc, uint32_t uid, uint64_t bytes, char *text);
void loc_account_discharge(struct loc *loc, uint32_t uid, uint64_t bytes);

/* ---- results ---- */

/* The group of an operation. A region is reused only for operations of the same group. */
struct loc_group {
	uint32_t run, group;
};
/* Takes a region of at least `need` bytes for an operation of these members. Returns WIRE_SUCCESS
 * and *ret, or the code of the shortage with a sentence in text[WL_TEXT_MAX]. */
uint32_t loc_result_take(struct loc *loc, const struct loc_group *group, uint64_t need,
	const struct loc_member *members, uint32_t n, struct loc_result **ret, char *text);
/* Ends the operation's use of the region. The region is free again when the processes of the
 * operation's members have read it. */
void loc_result_give_back(struct loc_result *res);
uint8_t *loc_result_map(const struct loc_result *res);
uint64_t loc_result_region(const struct loc_result *res);
bool loc_result_is_mapped(const struct loc_result *res, const struct loc_comm *c);
/* Sends the region's descriptor to the members that do not have it. A descriptor in the socket of a
 * process belongs to the process, even if this agent dies before the process reads it. */
void loc_result_hand_over(
	struct loc *loc, struct loc_result *res, const struct loc_member *members, uint32_t n);
void loc_result_tick(struct loc *loc, uint64_t now);

/* ---- manifests ---- */

/* A manifest's memory stays until loc_manifest_leave; the data that was copied out of it (state,
 * uid) stays until loc_manifest_unref. */
void loc_manifest_leave(struct loc_manifest *m);
void loc_manifest_unref(struct loc_manifest *m);
uint32_t loc_manifest_uid(const struct loc_manifest *m);
const struct shm_state *loc_manifest_state(const struct loc_manifest *m);
const uint8_t *loc_manifest_map(const struct loc_manifest *m);
/* Returns the region with this id if tensors or the table lie in it, or NULL. */
struct loc_region *loc_manifest_region(const struct loc_manifest *m, uint64_t id);
/* Fills in the fields of *ret for the manifest's memory: uid, map, region, state, regions. The
 * caller frees `regions`. */
void loc_manifest_fill(const struct loc_manifest *m, struct ste_member *ret);
/* Records in shared memory whether this agent is working on the manifest or waits for others. The
 * process reads the record if the agent dies. */
void loc_manifest_at_work(const struct loc_manifest *m, bool at_work);
/* Returns the function that hashes a leaf, or NULL with a sentence in text[WL_TEXT_MAX]. */
hsh_leaf_fn *loc_manifest_leaf_fn(struct loc *loc, uint32_t hash_type, char *text);

#endif
