/* SPDX-License-Identifier: MIT
 *
 * An agent for the tests of the shim. It is a thread of the test. It speaks the local protocol and
 * makes queue pairs and regions. The test controls it step by step, and can let it do things that a
 * real agent never does. Unless a test demands otherwise, it answers every request with success.
 *
 * Its "reduction" of an operand is the exclusive-or of each byte with FAKE_XOR.
 */
#ifndef FAKE_AGENT_H
#define FAKE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
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
	FAKE_HANG_UP,      /* close the connection instead of answering */
	FAKE_HANG_UP_ONCE, /* close the connection once, then FAKE_ANSWER */
	FAKE_GOODBYE,      /* send code and text without a request id, then close the connection */
	FAKE_GARBAGE,      /* answer with bytes that are not a message */
	FAKE_STRANGER,     /* answer a request that was not made */
	FAKE_NO_FDS,       /* success without the descriptors */
	FAKE_MORE_FDS,     /* success with one descriptor too many */
	FAKE_BAD_QUEUE,    /* COMM_CREATE: a queue pair of another version */
	FAKE_UNSEALED,     /* REGION_ALLOC: memory that can be cut */
	FAKE_HOLD,         /* answer only when fake_release is called */
};

/* Starts an agent that listens at `path`, or on a descriptor that already listens. */
struct fake *fake_start(const char *path);
struct fake *fake_start_fd(int listener);
void fake_stop(struct fake *f);

/* A vote of this kind, as a type of request in the functions below. */
#define FAKE_VOTE(kind) (16u + (kind))

/* Sets how the agent treats requests of this type from now on. `text` may be NULL. */
void fake_script(
	struct fake *f, unsigned type, enum fake_action action, uint32_t code, const char *text);
/* Answers the requests that FAKE_HOLD has kept. */
void fake_release(struct fake *f);
/* Notes that this attempt has succeeded, as if a new agent had learned this from other agents. */
void fake_outcome(struct fake *f, uint64_t seq);
/* stalled: from now on the agent neither reads nor accepts anything, as if it were stopped.
 * Otherwise it works again. */
void fake_stall(struct fake *f, bool stalled);
/* Closes all connections, as if the agent's process had died. Later connections find a new agent at
 * once. */
void fake_hang_up(struct fake *f);
/* Sends code and text to all processes, then closes their connections. */
void fake_goodbye(struct fake *f, uint32_t code, const char *text);
/* Returns the number of requests of this type so far. */
unsigned fake_seen(struct fake *f, unsigned type);
void fake_await_seen(struct fake *f, unsigned type, unsigned n);
/* Returns the last request of this type. */
struct wl_request fake_last(struct fake *f, unsigned type);
/* Sets the group's generation in answers and completions from now on. */
void fake_generation(struct fake *f, uint64_t generation);
/* Sets the hash type in answers to hellos from now on. */
void fake_hash_type(struct fake *f, uint32_t hash_type);
/* Makes a channel for beats: the answer to the next hello carries one end, on which the shim
 * answers. Returns the other end, which the caller owns. */
int fake_beat(struct fake *f);
uint64_t fake_generation_now(struct fake *f);
/* Waits until exactly `n` connections are open. */
void fake_await_connections(struct fake *f, unsigned n);
unsigned fake_accepted(struct fake *f); /* Returns the number of connections so far. */

/* Sets the view in answers and completions from now on. */
void fake_view(struct fake *f, struct wire_view view);
struct wire_view fake_view_now(struct fake *f);
/* Votes on optimization fail from now on, with this text (a literal); or succeed, with NULL. */
void fake_not_optimized(struct fake *f, const char *text);
/* Writes the ring position of the communicator that was created last. It becomes connected. */
void fake_attrs(struct fake *f, uint32_t hosts, uint32_t pos);
/* Publishes the master's address to all present communicators, and to later ones in their
 * attributes. */
void fake_master_addr(struct fake *f, const struct cc_addr *at);
/* Ends the membership of the communicator that was created last. */
void fake_lose(struct fake *f, uint32_t code, const char *text);
/* Leaves the attributes as if the agent had died in the middle of writing them. */
void fake_break_attrs(struct fake *f);

/* The agent's record of an operation. */
struct fake_op {
	struct fake *f;
	struct shm_sqe sqe;
	struct shm_slot *slot;
	int data_bell;
	uint8_t *in;  /* the operand, or its window */
	uint8_t *out; /* the registered output; NULL: not registered */
	uint64_t bytes;
	uint64_t seq; /* the number of the attempt */
	uint32_t esize;
	uint32_t mode;
	struct cc_shares shares; /* arguments of the plan; a test may set them */
	struct cc_plan plan;
	uint8_t *manifest; /* only for a synchronization: its region of `bytes` bytes; else NULL */
	uint32_t commands; /* the number of commands so far */
	uint64_t region;   /* the result region */
	uint8_t *area;
	_Atomic uint8_t *flags;
};

/* Waits for the next submission and takes it. */
struct fake_op fake_take(struct fake *f);
/* As fake_take, but gives up and returns false if *over is set when fake_nudge is called. */
bool fake_take_unless(struct fake *f, const _Atomic bool *over, struct fake_op *ret);
void fake_nudge(struct fake *f);
/* Returns the number of submissions that have not been taken. */
unsigned fake_waiting(struct fake *f);
/* From now on, result regions are handed over only on request. */
void fake_asked(struct fake *f);
/* Returns a result region of at least this size for the operation, and maps it at op->area. It is
 * the region of the last operation in the slot, if that is large enough. */
uint64_t fake_result_region(struct fake_op *op, uint64_t size);
/* Makes a result region and announces it. */
void fake_begin(
	struct fake_op *op, enum shm_result_mode mode, uint32_t hosts, uint32_t segment_max);
/* Waits until the thread in the await call of this operation is asleep. The thread has then seen
 * all progress so far. */
void fake_await_asleep(struct fake_op *op, enum shm_wait how);
/* Waits until this many bytes of the operand have been copied in. */
void fake_await_input(struct fake_op *op, uint64_t bytes);
/* Writes the "reduction" of n bytes. */
void fake_reduce(uint8_t *to, const uint8_t *from, size_t n);
/* Makes the result of one segment and sets its flag. If the operand comes through a window, the
 * segment's part of it must have arrived. */
void fake_segment(struct fake_op *op, uint32_t seg);
/* Completes the operation. */
void fake_end(struct fake_op *op, uint32_t code, const char *text);
/* Carries out the whole operation with success. */
void fake_serve(struct fake_op *op, enum shm_result_mode mode);

/* ---- synchronization of shared state ---- */

/* Returns the manifest as an agent reads it. The caller clears it. Ends the test if anything in it
 * is wrong, digests included. */
struct shm_state fake_manifest(const struct fake_op *op);
/* Returns the name of a tensor. */
const char *fake_tensor_name(const struct fake_op *op, const struct shm_state_tensor *t);
uint8_t *fake_window(const struct fake_op *op, uint32_t slot);
/* Sets whether the agent's job is at work. A job at work reads the manifest or moves data. It does
 * not wait for other hosts. */
void fake_work(struct fake_op *op, bool at_work);
/* Announces the attempt, before the first command. From here on the job is at work. */
void fake_sync_begin(struct fake_op *op);
/* Gives a command and does not wait for it. */
void fake_give(struct fake_op *op, const struct shm_state_command *command);
void fake_command(struct fake_op *op, enum shm_state_op what, uint32_t slot, uint32_t tensor,
	uint64_t off, uint32_t len);
/* Creates a region that stands for another peer's memory, and returns its number. Commands may name
 * it. */
uint64_t fake_show(struct fake_op *op, uint64_t size, uint8_t **ret);
/* Waits by the data doorbell until all commands are acknowledged. Returns the slot of the last
 * one. */
uint32_t fake_await_acks(struct fake_op *op);
/* Notes that the agent writes into tensors without commands. */
void fake_touch(struct fake_op *op);
/* Notes that this peer has all elected contents. */
void fake_complete(struct fake_op *op, uint64_t revision);
void fake_sync_end(struct fake_op *op, uint32_t code, const char *text, uint64_t revision,
	uint64_t tx_bytes, uint64_t rx_bytes);
/* Returns the size of a region and sets *ret to its address. Returns 0 if there is no such
 * region. */
uint64_t fake_region(struct fake *f, uint64_t region, uint8_t **ret);

#endif
