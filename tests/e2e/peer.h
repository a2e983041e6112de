/* SPDX-License-Identifier: MIT
 *
 * The parts of a peer: peer.c reads commands and executes those about membership, operation.c
 * executes those that reduce, and tensors.c executes those about shared state. Errors of the test
 * itself end the process.
 */
#ifndef TESTS_E2E_PEER_H
#define TESTS_E2E_PEER_H

#include <stdint.h>

#include "pccl.h"

struct peer {
	uint32_t id;
	pcclComm_t *comm;
	const char *command; /* the first word of the line */
};
extern struct peer peer;

_Noreturn void die(const char *what, const char *detail);
/* Returns CLOCK_MONOTONIC in ns. */
uint64_t now(void);

/* Returns the value of key=value in the current line. otherwise: the default, or NULL if the key is
 * required. */
const char *word(const char *key, const char *otherwise);
uint64_t number(const char *key, const char *otherwise);

/* Prints the end of an answer to a call. */
void say_outcome(pcclResult_t r, uint64_t begin, uint64_t end);

/* Makes the process stop itself at an access to the second half of `data` that `prot` (as for
 * mprotect) does not allow. Only one buffer can be frozen at a time. */
void freeze(void *data, size_t bytes, int prot);

void do_submit(void);
void do_await(void);
void do_reduce(void);
void do_mean(void);
void do_storm(void);
void do_many(void);
void do_several(void);
void do_bench(void);
void do_threads(void);
void do_beside(void);
void operations_given_up(void);

/* tensors.c */
void do_state(void);
void do_tensors(void);
void do_spoil(void);
void do_digest(void);
void do_sync(void);
void do_memcpy(void);

#endif
