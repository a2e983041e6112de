/* SPDX-License-Identifier: MIT
 *
 * window.c: the windows of processes, and the commands for them.
 */
#ifndef STATE_WINDOW_H
#define STATE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"

#define STE_SLOT_LEAVES (SHM_STATE_SLOT / WIRE_LEAF)

struct ste_job;
struct ste_peer;

enum ste_use { STE_USE_FREE = 0, STE_USE_BLOCK, STE_USE_SERVE };

struct ste_window {
	uint32_t given, seen; /* commands given; acknowledgements read */
	uint32_t n[3];        /* slots by use */
	uint64_t since_ns;    /* time since which an acknowledgement has been awaited */
	struct {
		uint8_t use;    /* enum ste_use */
		bool commanded; /* a command for the slot has not been acknowledged */
		uint8_t op;     /* enum shm_state_op */
		bool foreign;   /* the process copies from another member's memory */
		void *owner;    /* struct ste_block or ste_conn; NULL: nobody waits for it */
	} slot[SHM_STATE_SLOTS];
};

/* Takes a free slot for this use. Returns its number, or -1. */
int ste_window_take(struct ste_peer *p, enum ste_use use);
uint8_t *ste_window_at(const struct ste_peer *p, int slot);
/* Gives the member's process a command. `owner`: the struct ste_block or ste_conn that waits for
 * the acknowledgement. */
void ste_window_command(struct ste_peer *p, const struct shm_state_command *c, void *owner);
/* Returns a slot that its owner no longer needs. */
void ste_window_put(struct ste_peer *p, int slot);
/* Handles the acknowledgements of the member's process. Returns true if there were any. */
bool ste_window_acks(struct ste_job *j, struct ste_peer *p);
/* Asks the process for a wake-up with the next acknowledgement, if the agent waits for any. Returns
 * true if an acknowledgement has come already. */
bool ste_window_sleep(struct ste_peer *p);
uint32_t ste_window_waiting(const struct ste_peer *p); /* commands not acknowledged */

#endif
