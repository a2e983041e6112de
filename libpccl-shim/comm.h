/* SPDX-License-Identifier: MIT
 *
 * A communicator inside the library.
 *
 * The link of a communicator with its agent has four states:
 *
 *   NONE      never connected, or the last pcclConnect failed. There may be an attachment: the
 *             agent knows the communicator, which is not a peer.
 *   UP        connected; `att` is the attachment in use. Its session may have ended without the
 *             reconnector having noticed yet.
 *   RESUMING  the session has ended and the reconnector (reconnector.h) is at work: it makes a new
 *             session and attaches the communicator there as the same peer. `att` is the old
 *             attachment.
 *   GONE      the reconnector has given up, or this peer is no longer part of the run. gone_code
 *             and gone_text give the reason until the next pcclConnect.
 *
 * The reconnector makes the steps UP -> RESUMING -> UP or GONE (resume.c). A thread that finds out
 * that a result is lost also makes the step UP or RESUMING -> GONE. pcclConnect makes all other
 * steps. A thread that needs an attachment takes a reference to it with pccl_comm_use. This
 * function waits while the reconnector is at work, which takes a bounded time.
 *
 * An operation belongs to the attachment on which it was launched and never moves to another one.
 * When the agent dies, the reconnector gives an end status to every operation of the attachment. It
 * cannot miss an operation: a thread that chooses the attachment checks the link again under the
 * lock when it sets op->att (slot.c).
 *
 *   NONE      no end status. As long as the session lives, the slot tells how the operation ended.
 *             If the slot is DONE, the slot decides, whatever the end status is.
 *   DOUBT     the whole result is or was in this process, as far as is known: the library asks the
 *             new agent whether the attempt has succeeded everywhere.
 *   FAILED    the attempt has failed: buffers are restored, pcclRankConnectionLost.
 *   DONE      the attempt has succeeded everywhere.
 *   GONE      the outcome stays unknown; buffers are restored, and the call returns the reason for
 *             which the link is GONE.
 *
 * A synchronization of shared state is an operation, too, and no other operation is in flight at
 * the same time. Its tensors are not restored. A synchronization is in doubt if the tensors have
 * the elected contents, even while it continues for other peers.
 *
 * A signal handler may call pcclInterrupt, and can take no lock. So pcclInterrupt only sets a flag,
 * and every wait for other peers checks the flag every PCCL_LOOK_MS milliseconds. The thread that
 * clears the flag makes the peer leave the run (UP or RESUMING -> GONE), which ends all waits. An
 * agent that is stopped removes the peer when it runs again, before it handles later requests.
 * Until then, a call waits for the agent only if the agent may still read or write the memory of
 * this call.
 *
 * Locks are taken in this order: the reconnector's, a communicator's, an attachment's, a session's.
 * Each lock is held for moments only. The comments below say what c->lock guards. `changed` is
 * broadcast when the link or an end status has changed. A communicator is freed with its last
 * reference: the reconnector holds one while it works on the communicator, the owner holds one
 * until pcclDestroyCommunicator.
 */
#ifndef PCCL_SHIM_COMM_H
#define PCCL_SHIM_COMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "libpccl-shim/attach.h"
#include "libpccl-shim/buf.h"
#include "libpccl-shim/copier.h"
#include "libpccl-shim/session.h"

#define PCCL_COMM_MAGIC 0x4d4f4350u /* "PCOM" */

enum pccl_op_state {
	PCCL_OP_FREE = 0,
	PCCL_OP_LAUNCHING, /* the slot is taken, nothing submitted */
	PCCL_OP_IN_FLIGHT,
	PCCL_OP_AWAITED, /* one thread waits for the end or takes the result */
};

enum pccl_end_status {
	PCCL_END_NONE = 0,
	PCCL_END_DOUBT,
	PCCL_END_FAILED,
	PCCL_END_DONE,
	PCCL_END_GONE,
};

/* The library's record of the operation in the slot of the same number. The communicator's lock
 * guards state, thread, tag, att, end_status and seq (att does not change while the state is not
 * FREE). The thread of the operation owns the other fields and does not write them between
 * submission and release. If the operation has a job (copier.h), the job writes staging. */
struct pccl_op {
	enum pccl_op_state state;
	uint64_t thread; /* the thread that launched the operation (pccl_thread_id) */
	uint64_t number; /* grows with each slot that is taken */
	uint64_t tag;
	struct pccl_attachment *att; /* a reference */
	enum pccl_end_status end_status;
	uint64_t seq; /* the seq of the attempt; set when the operation is in doubt */
	struct pccl_buf send, recv;
	struct pccl_buf_call bufs; /* that of send and recv */
	uint64_t count, bytes;
	bool waited; /* the agent knows that the caller only waits for this operation */
	uint32_t esize;
	struct pccl_staging *staging;     /* NULL if send is registered */
	uint32_t window;                  /* segments that staging holds, see shm_window_off; 0 if
					   * it holds all of send */
	struct pccl_registered *in, *out; /* NULL if not registered */
	/* The mapped manifest of a synchronization of shared state. NULL for an all-reduce, to
	 * which most other fields belong. */
	const uint8_t *manifest;
	/* Copies the operand and submits it. comm is NULL if the call that launched the operation
	 * does this itself. */
	struct pccl_job job;
	/* This peer has left the run, because it cannot copy the rest of the operand. If the
	 * operation has a job, the job writes this. */
	bool unfed;
	uint8_t *copied; /* one flag per segment: recv has it already; the memory is kept for later
			  * operations */
	size_t cap_copied;
};

/* The arguments of a call that starts an operation. */
struct pccl_call_args {
	const void *send;
	void *recv;
	pcclReduceDescriptor_t d;
	void *stream;                /* the stream of pcclSetStream at the call */
	struct pccl_attachment *att; /* the attachment in use at the call */
	uint64_t generation;         /* the generation that the application knew at the call */
	bool feedback;               /* quantized, and the tag had error feedback at the call */
	pcclResult_t refused;        /* the reason if the call is wrong, else pcclSuccess */
	const char *why;             /* the sentence for `refused` */
};

/* The end of an operation, kept until the call that awaits the operation returns. */
struct pccl_outcome {
	pcclResult_t result;
	char text[PCCL_TEXT_MAX];
	pcclReduceInfo_t info;
	struct pccl_attachment *att;     /* the attachment on which it was launched */
	enum pccl_end_status end_status; /* NONE: the agent has reported the fields below */
	uint32_t code;
	uint64_t generation;
	struct wire_view view;
};

/* An operation without a slot (backlog.h). */
struct pccl_backlog_op {
	struct pccl_backlog_op *next;
	uint64_t tag;
	bool over;
	union {
		struct pccl_call_args args; /* while the operation waits for a slot */
		struct pccl_outcome end;    /* when it is over; has a reference to its attachment */
	};
};

enum pccl_link { PCCL_LINK_NONE = 0, PCCL_LINK_UP, PCCL_LINK_RESUMING, PCCL_LINK_GONE };

struct pcclComm_t {
	uint32_t magic;
	uint32_t fork_count; /* pccl_fork_generation() of the process that created it */
	_Atomic uint32_t refs;
	struct cc_addr master; /* the address that the application gave */
	uint32_t group, pool_size;
	/* Called without a lock when this peer ends its membership by itself: removes the
	 * communicator from the reconnector. */
	void (*on_leave)(struct pcclComm_t *c);
	/* The thread that connected the communicator last, or else created it (pccl_thread_id). */
	_Atomic uint64_t main_thread;
	/* The latest generation of the group that a call has reported to the application. */
	_Atomic uint64_t known_generation;
	/* the last ballots that have ended, as far as this peer has seen; with lock */
	uint64_t ballots[WIRE_BALLOTS];
	_Atomic uint64_t wait_ns; /* average duration of the waits for recent operations */
	_Atomic uint32_t n_waits; /* number of waits for operations so far */
	_Atomic bool disposable;  /* pcclOutputDisposable */
	void *_Atomic stream;     /* pcclSetStream */
	_Atomic bool
		interrupted; /* set by pcclInterrupt, cleared by the call that the interrupt ends */
	_Atomic uint32_t departing; /* threads that are about to close the attachment */

	pthread_mutex_t lock; /* guards the fields from here to n_succeeded */
	pthread_cond_t changed;
	struct pccl_feedback {
		uint64_t *tags; /* ascending */
		size_t n, cap;
	} feedback; /* feedback.h */
	/* The call in progress that allows no new operations, usually of the main thread, or
	 * NULL. */
	const char *main_call;
	enum pccl_link link;
	bool asks;                   /* the main thread is in pcclArePeersPending */
	bool closing;                /* set by pcclDestroyCommunicator */
	struct pccl_attachment *att; /* the latest one, or NULL */
	struct cc_id peer, token, run;
	struct cc_addr at; /* the address at which the last agent found the master; family 0 if no
			    * agent has reported one */
	struct pccl_known known;   /* as the last agent reported it */
	uint64_t group_generation; /* generation of the group when the latest attachment began */
	bool told_lost;            /* a call has reported the death of the last agent */
	uint32_t gone_code;
	char gone_text[PCCL_TEXT_MAX];
	bool told_gone;        /* a call has reported that this is no longer a peer */
	bool told_removed;     /* a topology call has reported this, with a code of its own */
	bool must_optimize;    /* the last optimization failed: only its repetition is allowed */
	struct wire_view view; /* the values of pcclGetAttribute, as of the last call */
	/* Used only by the main thread, so not guarded (state.h). NULL before the first
	 * synchronization. */
	struct pccl_state *state;
	uint32_t n_ops;
	struct pccl_op ops[SHM_SLOTS];
	uint64_t n_taken; /* slots taken so far */
	struct {
		/* Operations that wait, in the order of the calls. Between them, at any place, are
		 * operations that are over. */
		struct pccl_backlog_op *first;
		uint32_t n, n_waiting;
		uint64_t thread; /* the thread that started these operations */
		bool driving;    /* that thread is at work on the list */
	} backlog;
	struct pccl_fatal {
		uint64_t tag, bytes;
		bool is_sync;
		uint32_t deaths; /* agents that died in a row during the operation */
	} fatal[SHM_SLOTS];      /* a ring of operations during which an agent died; n_fatal counts
				  * them */
	_Atomic uint32_t n_fatal;
	/* A ring: attempts whose success a call has reported to the application. */
	uint64_t succeeded[WL_SEQS_MAX];
	uint32_t n_succeeded; /* entries written so far */

	/* Owned by the reconnector: the pointers of its list, and its request to attach this
	 * communicator. */
	struct pcclComm_t *next, *next_job;
	bool listed;
	struct pccl_call attach_call;
	uint32_t n_doubts, doubts[SHM_SLOTS]; /* slots of the attempts in doubt, in the order of the
					       * seqs in the request to attach */
};

/* Checks that `c` is a communicator of this process and that the library is ready. Any thread. */
pcclResult_t pccl_comm_check(const pcclComm_t *c);
/*
 * The rule about threads. A communicator is used by its main thread: the thread that connected it,
 * or before that, the thread that created it. Any thread may connect and destroy it. A second
 * thread may launch and await operations while the main thread makes only query calls. All
 * operations in flight belong to one thread.
 *
 * Checks that the calling thread is the main thread. The sentence of an error names `function`.
 */
pcclResult_t pccl_comm_check_main(const pcclComm_t *c, const char *function);
/* Begins a call during which no operation may be in flight or be started, and no second call of
 * this kind may begin. The call lasts until pccl_comm_end. Returns `busy` if operations are in
 * flight. Any thread. */
pcclResult_t pccl_comm_begin_any(pcclComm_t *c, const char *function, pcclResult_t busy);
/* As pccl_comm_begin_any, but only for the main thread. */
pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy);
void pccl_comm_end(pcclComm_t *c);
/* Checks whether a call other than pcclOptimizeTopology is allowed: not after an optimization that
 * failed, as long as the peer is in a run with others. */
pcclResult_t pccl_comm_check_optimized(pcclComm_t *c);
/* Records that a call reports this generation of the group to the application. */
void pccl_comm_knows(pcclComm_t *c, uint64_t generation);
/* Records that a call reports this view to the application. Ignores a view that is older than the
 * last one: operations may be awaited in another order than the order in which they ended. */
void pccl_comm_set_view(pcclComm_t *c, const struct wire_view *view);
/* Returns the last view that was reported to the application. */
struct wire_view pccl_comm_view(pcclComm_t *c);
/* Removes the const that some released signatures put on communicators. */
static inline pcclComm_t *pccl_comm_own(const pcclComm_t *c)
{
	return (pcclComm_t *)(uintptr_t)c;
}

/* With the lock held: returns the pointer in the backlog that leads to the operation with this tag,
 * or the pointer at the end of the list. */
struct pccl_backlog_op **pccl_comm_find_waiting(pcclComm_t *c, uint64_t tag);
void pccl_comm_ref(pcclComm_t *c);
void pccl_comm_unref(pcclComm_t *c);

/* ---- the link (link.c); any thread */

/* With the lock held: is the reconnector at work, or about to notice that the session has ended? */
bool pccl_comm_is_resuming(const pcclComm_t *c);
/* Waits until there is an attachment with a living agent. Returns a reference to the attachment,
 * and the attachment's state. waiting: as with pccl_comm_fail_lost. */
pcclResult_t pccl_comm_use(
	pcclComm_t *c, bool waiting, struct pccl_attachment **ret, struct pccl_attrs *ret_attrs);
/* Checks that the communicator is connected, according to the last report of its agent. Does not
 * wait. */
pcclResult_t pccl_comm_connected(const pcclComm_t *c);
/* Is this still a peer of the run, as far as is known? Does not count as a report to the
 * application. */
bool pccl_comm_stays(pcclComm_t *c);
/*
 * With the lock held: sets the sentence and returns the code of a call of a communicator that is no
 * longer a peer. The first call, and each call that has waited (`waiting`), returns the reason
 * `code`. Later calls return pcclInvalidUsage, so that programs stop repeating them, unless the
 * reason is a code that programs do not repeat.
 */
pcclResult_t pccl_comm_fail_lost(pcclComm_t *c, uint32_t code, const char *text, bool waiting);
/* As pccl_comm_fail_lost, with the reason for which the link is GONE. */
pcclResult_t pccl_comm_fail_gone(pcclComm_t *c, bool waiting);
/* Notes that the agent has ended a call with this code. If this code is the reason for which this
 * is no longer a peer, the application knows the reason from now on. */
void pccl_comm_lost_code(pcclComm_t *c, const struct pccl_attachment *a, uint32_t code);
/* UP or RESUMING -> GONE. All operations without an outcome get the end status GONE. */
void pccl_comm_give_up(pcclComm_t *c, pcclResult_t code, const char *text);
/* Ends the membership of this peer and closes its attachment, so operations end. `text` is for the
 * callers of this process, `why` for the other peers. Returns the code for the call in progress. */
pcclResult_t pccl_comm_leave(pcclComm_t *c, pcclResult_t code, const char *text, const char *why);
/* Waits until the agent no longer uses the caller's memory. To be called for an operation that has
 * ended because this peer is gone. */
void pccl_comm_await_closed(pcclComm_t *c, const struct pccl_op *op);
/* Has pcclInterrupt been called? Clears the flag. If the communicator is connected, the peer leaves
 * the run, and pccl_comm_fail_gone gives the reason. The caller then ends its call. */
bool pccl_comm_interrupted(pcclComm_t *c);
/* Returns the code for a call of a connected peer that was interrupted, if there is no other answer
 * to the call. */
pcclResult_t pccl_comm_fail_interrupted(pcclComm_t *c);
/* Ends a call that had to wait and has failed with `r`. If pcclInterrupt was called for this call
 * at the same time, the interrupt counts as the reason, so that it does not end the next call, too.
 */
pcclResult_t pccl_comm_spent(pcclComm_t *c, pcclResult_t r);
/* From now on pcclInterrupt ends the requests of this thread to the agent. Returns the previous
 * ender, which the caller restores with pccl_session_endable. */
struct pccl_ender pccl_comm_enter(pcclComm_t *c);

/* ---- the death of an agent (resume.c); for the reconnector and for threads that wait */

/* With the lock held: returns the last known address of the master, for the next agent to try. Also
 * saves the other values of the attachment for that agent. */
struct cc_addr pccl_comm_master_addr(pcclComm_t *c);
/* UP or RESUMING -> RESUMING. Gives an end status to every operation whose slot is not DONE. */
void pccl_comm_detach(pcclComm_t *c);
/* Fills the request that attaches the communicator to another agent. Returns false if it must not
 * be attached, because it is being destroyed or GONE. It becomes GONE here if the old agent has
 * reported that this peer was lost. */
bool pccl_comm_ask(pcclComm_t *c, struct wl_request *request);
/* RESUMING -> UP on the attachment `a`, whose reference it takes. `reply` is the agent's answer.
 * Returns false if the communicator is no longer to be attached; then the caller keeps the
 * reference. */
bool pccl_comm_resume(pcclComm_t *c, struct pccl_attachment *a, const struct wl_reply *reply);
/* Waits for the end status of an operation whose agent is gone. Returns DONE, FAILED or GONE, or
 * NONE if the slot is DONE after all. */
enum pccl_end_status pccl_comm_end_status(pcclComm_t *c, uint32_t slot);
/* Records that a call reports the success of this attempt to the application. */
void pccl_comm_note_success(pcclComm_t *c, uint64_t seq);
/* Records that a call tells the application the following: an operation failed because the agent of
 * an attachment (`of`) died. */
void pccl_comm_knows_death(pcclComm_t *c, const struct pccl_attachment *of);
/* Counts a death of the agent for the operation in this slot, which has not ended. Does not count
 * the death if the agent was not at work on the operation, or has ended in order. */
void pccl_comm_note_death(pcclComm_t *c, uint32_t slot);
/* Forgets the deaths of agents during `op`, which has succeeded. */
void pccl_comm_note_survived(pcclComm_t *c, const struct pccl_op *op);
/* Have agents died twice in a row during this operation? If so, the caller refuses the operation.
 * After this refusal the operation may be tried again, but after one more death the caller refuses
 * it again. */
bool pccl_comm_is_fatal(pcclComm_t *c, const struct pccl_op *op);
/* Sets the sentence for an operation that pccl_comm_is_fatal refuses, and returns the code. */
pcclResult_t pccl_comm_fail_fatal(const struct pccl_op *op);

#endif
