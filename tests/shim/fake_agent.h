/* SPDX-License-Identifier: MIT
 *
 * An agent for the tests of the shim, as a thread of the test: it speaks the local protocol, makes
 * queue pairs and regions, and does with an operation what the test says, step by step, including
 * what a real agent never would. It answers every request with success unless told otherwise.
 *
 * Its "reduction": every byte of the operand exclusive-or FAKE_XOR.
 */
#ifndef FAKE_AGENT_H
#define FAKE_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_plan.h"
#include "proto/shm_queue.h"
#include "proto/shm_state.h"
#include "proto/wire_local.h"

#define FAKE_XOR 0xa5u

struct fake;

enum fake_action {
	FAKE_ANSWER = 0,
	FAKE_REFUSE,       /* with code and text */
	FAKE_HANG_UP,      /* close the connection instead */
	FAKE_HANG_UP_ONCE, /* the same, and then FAKE_ANSWER */
	FAKE_GOODBYE,      /* say code and text, then close it */
	FAKE_GARBAGE,      /* answer with bytes that are no message */
	FAKE_STRANGER,     /* answer a request that nobody made */
	FAKE_NO_FDS,       /* success, without the descriptors */
	FAKE_MORE_FDS,     /* success, with one descriptor too many */
	FAKE_BAD_QUEUE,    /* COMM_CREATE: a queue pair of another version */
	FAKE_UNSEALED,     /* REGION_ALLOC: memory that can be cut */
	FAKE_HOLD,         /* answer when fake_release is called */
};

/* Listens at path, or on a descriptor that listens already. */
struct fake *fake_start(const char *path);
struct fake *fake_start_fd(int listener);
void fake_stop(struct fake *f);

/* What to do with requests of this type from now on. text may be NULL. */
void fake_script(struct fake *f, enum wl_type type, enum fake_action action, uint32_t code,
	const char *text);
/* Answers what is held. */
void fake_release(struct fake *f);
/* This attempt has succeeded: what a later agent learns from the others. */
void fake_outcome(struct fake *f, uint64_t seq);
/* Neither reads nor accepts anything from now on, as if it were stopped; or does so again. */
void fake_stall(struct fake *f, bool stalled);
/* Closes all connections, as when the process dies; the next ones find another one at once. */
void fake_hang_up(struct fake *f);
/* Says code and text to all unasked, then closes their connections. */
void fake_goodbye(struct fake *f, uint32_t code, const char *text);
/* Requests of this type seen so far. */
unsigned fake_seen(struct fake *f, enum wl_type type);
void fake_await_seen(struct fake *f, enum wl_type type, unsigned n);
/* The last one of this type. */
struct wl_request fake_last(struct fake *f, enum wl_type type);
/* The group's generation, as answers and completions tell it from now on. */
void fake_generation(struct fake *f, uint64_t generation);
/* Told to sessions from now on. */
void fake_hash_type(struct fake *f, uint32_t hash_type);
/* The next hello's answer brings the other end, on which asks are answered; this one is the
 * caller's. */
int fake_beat(struct fake *f);
uint64_t fake_generation_now(struct fake *f);
/* Open connections. */
void fake_await_connections(struct fake *f, unsigned n);
unsigned fake_accepted(struct fake *f); /* connections so far */

/* The view, as answers and completions tell it from now on. */
void fake_view(struct fake *f, struct wire_view view);
struct wire_view fake_view_now(struct fake *f);
/* Writes the ring position of the comm that was created last, which is connected. */
void fake_attrs(struct fake *f, uint32_t hosts, uint32_t pos);
/* Where it says the master is, to all comms that there are, and in the attributes of later ones. */
void fake_master_addr(struct fake *f, const struct cc_addr *at);
/* It is a peer no more. */
void fake_lose(struct fake *f, uint32_t code, const char *text);
/* Leaves them as if the agent had died in the middle of writing. */
void fake_break_attrs(struct fake *f);

/* An operation. */
struct fake_op {
	struct fake *f;
	struct shm_sqe sqe;
	struct shm_slot *slot;
	int data_bell;
	uint8_t *in;  /* the operand, or its window */
	uint8_t *out; /* NULL: not registered */
	uint64_t bytes;
	uint64_t seq; /* of the attempt */
	uint32_t esize;
	uint32_t mode;
	struct cc_plan plan;
	uint8_t *manifest; /* a synchronization: its region, `bytes` of it; else NULL */
	uint32_t commands; /* given so far */
	uint64_t region;   /* the result region */
	uint8_t *area;
	_Atomic uint8_t *flags;
};

/* Waits for the next submission. */
struct fake_op fake_take(struct fake *f);
/* Submissions that have not been taken. */
unsigned fake_waiting(struct fake *f);
/* Result regions are not handed over unasked from now on. */
void fake_asked(struct fake *f);
/* A result region of at least this size for it, mapped at op->area: that of the last operation in
 * the slot, if it is large enough. */
uint64_t fake_result_region(struct fake_op *op, uint64_t size);
/* Makes a result region and announces it. */
void fake_begin(
	struct fake_op *op, enum shm_result_mode mode, uint32_t hosts, uint32_t segment_max);
/* Waits until whoever awaits it sleeps, having looked at all that there was. */
void fake_await_asleep(struct fake_op *op, enum shm_wait how);
/* Waits until this many bytes have been copied in. */
void fake_await_input(struct fake_op *op, uint64_t bytes);
/* The result of one segment, flagged. Its operand must be there, if it comes through a window. */
void fake_segment(struct fake_op *op, uint32_t seg);
/* The completion. */
void fake_end(struct fake_op *op, uint32_t code, const char *text);
/* All of it, with success. */
void fake_serve(struct fake_op *op, enum shm_result_mode mode);

/* A synchronization of shared state. */

/* The manifest, as an agent reads it; the test fails unless all of it is as it must be, digests
 * included. To be cleared. */
struct shm_state fake_manifest(const struct fake_op *op);
/* Name and leaves of tensor i. */
const char *fake_tensor_name(const struct fake_op *op, const struct shm_state_tensor *t);
uint8_t *fake_window(const struct fake_op *op, uint32_t slot);
/* Whether it reads the manifest or moves something, and does not wait for others. */
void fake_work(struct fake_op *op, bool at_work);
/* Announces the attempt, before the first command. It is at work from here on. */
void fake_sync_begin(struct fake_op *op);
/* Gives a command, without waiting for it. */
void fake_give(struct fake_op *op, const struct shm_state_command *command);
void fake_command(struct fake_op *op, enum shm_state_op what, uint32_t slot, uint32_t tensor,
	uint64_t off, uint32_t len);
/* Memory of another peer, that commands may name. */
uint64_t fake_show(struct fake_op *op, uint64_t size, uint8_t **ret);
/* Waits, by the data doorbell, until all are acknowledged. The last one's slot. */
uint32_t fake_await_acks(struct fake_op *op);
/* It writes into tensors without commands. */
void fake_touch(struct fake_op *op);
/* This peer has everything. */
void fake_complete(struct fake_op *op, uint64_t revision);
void fake_sync_end(struct fake_op *op, uint32_t code, const char *text, uint64_t revision,
	uint64_t tx_bytes, uint64_t rx_bytes);
/* Bytes of a registered region, and where it is; 0: there is none. */
uint64_t fake_region(struct fake *f, uint64_t region, uint8_t **ret);

#endif
