/* SPDX-License-Identifier: MIT
 *
 * The trainer's two halves: its steps, and its shared state.
 */
#ifndef SOAK_TRAINER_H
#define SOAK_TRAINER_H

#include <stdint.h>

#include "pccl.h"

extern pcclComm_t *comm;
extern uint64_t step;

uint64_t now(void);
uint64_t mix(uint64_t x);
/* To be called before and after each call of the library. */
void enter(const char *call);
pcclResult_t leave(pcclResult_t r);
__attribute__((format(printf, 1, 2))) _Noreturn void wrong(const char *fmt, ...);

/* ---- state.c: the shared state */

#define STATE_BIASES  1000u
#define STATE_WEIGHTS 100003u /* 13 leaves, the last of which is not full */
/* Creates the state. serial: the trainer's serial number. The caller provides memory for the
 * elements. */
void state_make(uint64_t serial, uint64_t *room_of_biases, uint64_t *room_of_weights);
/* The trainer has joined a run. Other members may have gone on, or have newer contents. */
void state_joined(void);
/* The communicator ends, and with it the library's knowledge of torn state. */
void state_communicator_ends(void);
/* Synchronizes, repeats this while peers are lost, and checks the outcome. */
pcclResult_t state_synchronize(void);

#endif
