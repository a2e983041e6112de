/* SPDX-License-Identifier: MIT
 *
 * A communicator inside the library.
 *
 * Its link with the agent is, one after the other:
 *
 *   NONE      never connected, or the last pcclConnect failed. There may be an attachment (the
 *             agent knows the communicator, which is not a peer).
 *   UP        connected; `att` is the attachment in use. Its session may have ended, and the
 *             reconnector has not looked into it yet.
 *   RESUMING  the session has ended and the reconnector (reconnector.h) is at work: it makes a new
 *             session and attaches the communicator there as the same peer. `att` is the old
 *             attachment.
 *   GONE      the reconnector gave up, or the run wants this peer no more; gone_code and gone_text
 *             say why, until the next pcclConnect.
 *
 * UP -> RESUMING -> UP or GONE are the reconnector's steps (resume.c), UP or RESUMING -> GONE also
 * that of a thread that finds a result to be lost; everything else is pcclConnect's. Whoever needs
 * an attachment takes a reference to it with pccl_comm_use, which waits while the link is about to
 * be made again; the reconnector's work is bounded, and so is that wait.
 *
 * An operation belongs to the attachment that it was launched on and is never moved to another.
 * Between the choice of the attachment and op->att the lock is held and the link looked at again
 * (slot.c), so the reconnector, which passes an end status on every operation of an attachment that
 * has died, can miss none:
 *
 *   NONE      no end status; what the slot says counts, as long as the session lives. A slot that
 *             is DONE counts in any case.
 *   DOUBT     the whole result seems to be there, or to have been: the new agent is being asked
 *             whether the attempt has succeeded everywhere
 *   FAILED    it has not: buffers are restored, pcclRankConnectionLost
 *   DONE      it has
 *   GONE      nobody will ever know; buffers are restored, the link's reason is returned
 *
 * A synchronization of shared state is an operation too, the only one in flight then. Its tensors
 * are not restored; it is in doubt if they are what was elected, also while it goes on for others.
 *
 * pcclInterrupt may be called in a signal handler, where no lock can be taken: it sets a flag, and
 * every wait for others looks at it each PCCL_LOOK_MS. The thread that takes the flag back makes
 * the peer leave the run (UP or RESUMING -> GONE), which ends whatever waits. An agent that stands
 * still takes the peer out when it goes on, before anything that it is asked later: until then it
 * is waited for only where it may still read or write the caller's memory itself.
 *
 * Locks are taken in this order: the reconnector's, a communicator's, an attachment's, a session's;
 * each is held for moments only. What c->lock guards is said below; `changed` is broadcast when
 * link or an end status has changed. A communicator is freed with its last reference: the
 * reconnector holds one while it works on it, the owner until pcclDestroyCommunicator.
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
	PCCL_OP_AWAITED, /* one thread waits for it or takes its result */
};

enum pccl_end_status {
	PCCL_END_NONE = 0,
	PCCL_END_DOUBT,
	PCCL_END_FAILED,
	PCCL_END_DONE,
	PCCL_END_GONE,
};

/* What the library remembers of the operation in the slot of the same number. state, thread, tag,
 * att, end_status and seq are guarded by the communicator's lock (att does not change while the
 * state is not FREE); the rest is its thread's, and is not written between submission and release.
 * staging is written by the job, if there is one (copier.h). */
struct pccl_op {
	enum pccl_op_state state;
	uint64_t thread; /* that launched it (pccl_thread_id) */
	uint64_t number; /* in the order of taking slots */
	uint64_t tag;
	struct pccl_attachment *att; /* a reference */
	enum pccl_end_status end_status;
	uint64_t seq; /* of the attempt, once there was doubt */
	struct pccl_buf send, recv;
	uint64_t count, bytes;
	bool waited; /* the agent knows that its caller waits for it and does nothing else */
	uint32_t esize;
	struct pccl_staging *staging;     /* NULL: send is registered */
	uint32_t window;                  /* places in it, see shm_window_off; 0: for all of send */
	struct pccl_registered *in, *out; /* NULL: not registered */
	const uint8_t *manifest;          /* of a synchronization of shared state, mapped; NULL: an
					   * all-reduce, whose what follows and precedes is */
	struct pccl_job job;              /* copies the operand and submits; comm NULL: the call
					   * that launched it has done so */
	uint8_t *copied; /* segments that are in recv already; kept from operation to operation */
	size_t cap_copied;
};

/* What an operation was called with. */
struct pccl_call_args {
	const void *send;
	void *recv;
	pcclReduceDescriptor_t d;
	struct pccl_attachment *att; /* that was in use */
	uint64_t generation;         /* that the application knew of */
	pcclResult_t refused;        /* the call is wrong for this reason; else pcclSuccess */
	const char *why;             /* its sentence */
};

/* How an operation has ended, before the application is told. */
struct pccl_outcome {
	pcclResult_t result;
	char text[PCCL_TEXT_MAX];
	pcclReduceInfo_t info;
	struct pccl_attachment *att;     /* that it was launched on */
	enum pccl_end_status end_status; /* NONE: the agent has said the rest */
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
		struct pccl_call_args args; /* it waits for a slot */
		struct pccl_outcome end;    /* it is over; a reference to its attachment */
	};
};

enum pccl_link { PCCL_LINK_NONE = 0, PCCL_LINK_UP, PCCL_LINK_RESUMING, PCCL_LINK_GONE };

struct pcclComm_t {
	uint32_t magic;
	uint32_t fork_count; /* of the process that made it */
	_Atomic uint32_t refs;
	struct cc_addr master; /* as the application names it */
	uint32_t group, pool_size;
	/* Called without a lock when the peer leaves the run by itself: what brings its link back
	 * forgets it. */
	void (*on_leave)(struct pcclComm_t *c);
	_Atomic uint64_t main_thread;      /* that connected it last, or made it (pccl_thread_id) */
	_Atomic uint64_t known_generation; /* of the group, that the application has been told of */
	/* votes of the run that this peer has seen the end of */
	_Atomic uint64_t topo_ballot, pending_ballot;
	_Atomic uint64_t wait_ns;   /* how long operations were awaited lately */
	_Atomic uint32_t n_waits;   /* for operations */
	_Atomic bool disposable;    /* pcclOutputDisposable */
	_Atomic bool interrupted;   /* by pcclInterrupt, and no call has ended for it yet */
	_Atomic uint32_t departing; /* threads that are about to tell the agent so */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	const char *main_call; /* under way in the main thread, and no operation may be started
				* meanwhile; NULL: none */
	enum pccl_link link;
	bool asks;                   /* the main thread is in pcclArePeersPending */
	bool closing;                /* by pcclDestroyCommunicator */
	struct pccl_attachment *att; /* the latest; NULL: none */
	struct cc_id peer, token, run;
	struct cc_addr at; /* where the last agent that said so had found the master, or none */
	struct pccl_known known;   /* likewise */
	uint64_t group_generation; /* as of the latest attachment's beginning */
	bool told_lost;            /* the application got to know that the last one has died */
	uint32_t gone_code;
	char gone_text[PCCL_TEXT_MAX];
	bool told_gone;           /* the application got to know that it is a peer no more */
	bool told_removed;        /* and that by the code of a topology call */
	struct wire_view view;    /* as of the last call that told of it: pcclGetAttribute */
	struct pccl_state *state; /* the main thread's, not guarded (state.h); NULL: no
				   * synchronization yet */
	uint32_t n_ops;
	struct pccl_op ops[SHM_SLOTS];
	uint64_t n_taken; /* slots so far */
	struct {
		struct pccl_backlog_op *first; /* in the order of the calls, those that are over
						* anywhere */
		uint32_t n, n_waiting;
		uint64_t thread; /* whose operations they are */
		bool driving;    /* it is at work on them */
	} backlog;
	struct pccl_fatal {
		uint64_t tag, bytes;
		bool is_sync;
		uint32_t deaths; /* of agents, one after the other, while it ran */
	} fatal[SHM_SLOTS];      /* operations that have ended so, latest last by n_fatal */
	_Atomic uint32_t n_fatal;
	uint64_t succeeded[WL_SEQS_MAX]; /* attempts that the application was told of, a ring */
	uint32_t n_succeeded;            /* of them so far */

	/* the reconnector's: its list of communicators, and its request for this one */
	struct pcclComm_t *next, *next_job;
	bool listed;
	struct pccl_call attach_call;
	uint32_t n_doubts, doubts[SHM_SLOTS]; /* slots, in the order of that request's seqs */
};

/* Is it a communicator of this process, and the library ready? Any thread. */
pcclResult_t pccl_comm_check(const pcclComm_t *c);
/*
 * The rule of threads: a communicator is used by the thread that connected it, its main thread,
 * until then by the one that made it; any thread may connect and destroy it. Another one may launch
 * operations and await them, while the main thread makes no call but those that ask something; all
 * operations in flight are one thread's.
 *
 * Is this the main thread? function is named in the sentence.
 */
pcclResult_t pccl_comm_check_main(const pcclComm_t *c, const char *function);
/* Begins a call that bears no operations, neither in flight (`busy` is returned) nor started before
 * pccl_comm_end, and no other call of its kind. Any thread. */
pcclResult_t pccl_comm_begin_any(pcclComm_t *c, const char *function, pcclResult_t busy);
/* The same for the main thread. */
pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy);
void pccl_comm_end(pcclComm_t *c);
/* The application gets to know the group's generation, as of an answer. */
void pccl_comm_knows(pcclComm_t *c, uint64_t generation);
/* The same with the view. Operations may be awaited in another order than they ended in: what is
 * older than what it knows is passed over. */
void pccl_comm_set_view(pcclComm_t *c, const struct wire_view *view);
/* What it knows. */
struct wire_view pccl_comm_view(pcclComm_t *c);
/* Communicators are const in the signatures that were released, for the caller's view of them. */
static inline pcclComm_t *pccl_comm_own(const pcclComm_t *c)
{
	return (pcclComm_t *)(uintptr_t)c;
}

/* With the lock held: the pointer in the backlog to the operation with this tag, or to its end. */
struct pccl_backlog_op **pccl_comm_find_waiting(pcclComm_t *c, uint64_t tag);
void pccl_comm_ref(pcclComm_t *c);
void pccl_comm_unref(pcclComm_t *c);

/* ---- the link (link.c); any thread */

/* With the lock held: the reconnector is at work, or has not noticed yet that it should be. */
bool pccl_comm_is_resuming(const pcclComm_t *c);
/* A reference to the attachment, as soon as there is one whose agent is there, and its state.
 * waiting: as with pccl_comm_fail_lost. */
pcclResult_t pccl_comm_use(
	pcclComm_t *c, bool waiting, struct pccl_attachment **ret, struct pccl_attrs *ret_attrs);
/* Is it connected, as the last agent said? Does not wait. */
pcclResult_t pccl_comm_connected(const pcclComm_t *c);
/* Is it a peer of the run still, as far as is known? The application is told nothing. */
bool pccl_comm_stays(pcclComm_t *c);
/*
 * With the lock held: this is no peer any more, for this reason. The first call is told the reason
 * itself, as is each one that is under way (waiting); later ones that calling again is of no use.
 */
pcclResult_t pccl_comm_fail_lost(pcclComm_t *c, uint32_t code, const char *text, bool waiting);
/* The same when the link is GONE. */
pcclResult_t pccl_comm_fail_gone(pcclComm_t *c, bool waiting);
/* The agent has ended a call with this code, which may have been that reason. */
void pccl_comm_lost_code(pcclComm_t *c, const struct pccl_attachment *a, uint32_t code);
/* UP or RESUMING -> GONE. */
void pccl_comm_give_up(pcclComm_t *c, pcclResult_t code, const char *text);
/* By itself, and tells the agent: operations end. text is for the callers of this process, why for
 * the other peers. Returns what the call under way is to return. */
pcclResult_t pccl_comm_leave(pcclComm_t *c, pcclResult_t code, const char *text, const char *why);
/* The operation has ended because this peer is gone: until the agent touches the caller's memory no
 * more. */
void pccl_comm_await_closed(pcclComm_t *c, const struct pccl_op *op);
/* Has pcclInterrupt been called? Then this call ends for it: the peer has left the run, for the
 * reason that pccl_comm_fail_gone says. Of a communicator that is not connected only the flag is
 * taken back. */
bool pccl_comm_interrupted(pcclComm_t *c);
/* The code of a call of a connected peer that was interrupted and has no other answer. */
pcclResult_t pccl_comm_fail_interrupted(pcclComm_t *c);
/* The call had to wait and has failed with r. If it was interrupted at the same time, it has ended
 * for that: the interrupt must not end the next call. */
pcclResult_t pccl_comm_spent(pcclComm_t *c, pcclResult_t r);
/* From now on pcclInterrupt ends what this thread asks the agent; to be undone by
 * pccl_session_endable with the answer. */
struct pccl_ender pccl_comm_enter(pcclComm_t *c);

/* ---- the death of an agent: the reconnector, and the threads that wait for operations (resume.c)
 */

/* With the lock held: where its master is, as far as is known here; for another agent to try. Keeps
 * what the attachment says besides for that one. */
struct cc_addr pccl_comm_master_addr(pcclComm_t *c);
/* UP or RESUMING -> RESUMING, with an end status on every operation. */
void pccl_comm_detach(pcclComm_t *c);
/* Fills the request that attaches it to another agent. False: it is not to be attached, being
 * destroyed, or gone, which it is now also if the run had no use for this peer before. */
bool pccl_comm_ask(pcclComm_t *c, struct wl_request *request);
/* RESUMING -> UP on this attachment, whose reference it takes; the agent said this. False: the
 * communicator is not wanted any more, and the reference is the caller's still. */
bool pccl_comm_resume(pcclComm_t *c, struct pccl_attachment *a, const struct wl_reply *reply);
/* Waits for an end status on the operation, whose agent is gone; DONE, FAILED, or GONE. */
enum pccl_end_status pccl_comm_end_status(pcclComm_t *c, uint32_t slot);
/* The application is told that this attempt has succeeded. */
void pccl_comm_note_success(pcclComm_t *c, uint64_t seq);
/* The application is told that an operation failed because its agent died. */
void pccl_comm_knows_death(pcclComm_t *c, const struct pccl_attachment *of);
/* The agent is gone before the operation ended. It counts if the agent was at work on it, unless it
 * ended in order. */
void pccl_comm_note_death(pcclComm_t *c, uint32_t slot);
/* op has ended in another way: deaths before do not count. */
void pccl_comm_note_survived(pcclComm_t *c, const struct pccl_op *op);
/* Have agents died of it, as it seems, twice in a row? Then it may be tried once more, and the next
 * death is enough. */
bool pccl_comm_is_fatal(pcclComm_t *c, const struct pccl_op *op);
/* Sets the sentence of such an operation. */
pcclResult_t pccl_comm_fail_fatal(const struct pccl_op *op);

#endif
