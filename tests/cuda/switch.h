/* SPDX-License-Identifier: MIT
 *
 * Coroutines: functions with stacks of their own in one thread of the process. Sanitizers are told
 * of each change of stacks.
 */
#ifndef TESTS_CUDA_SWITCH_H
#define TESTS_CUDA_SWITCH_H

#include <stddef.h>

/* Where a coroutine goes on. */
struct switch_point {
	void *sp;
	void (*run)(void);
	unsigned char *stack;
	size_t size;
	void *fake;  /* of AddressSanitizer: the memory for variables in stead of this stack */
	void *fiber; /* of ThreadSanitizer */
};

/* Describes the stack that the caller runs on. */
void switch_begin(struct switch_point *here);
/* Lets a coroutine start with `run`, which must end with switch_end, on this stack. */
void switch_prepare(struct switch_point *p, unsigned char *stack, size_t size, void (*run)(void));
/* Goes on at `to`, until another coroutine goes on at `from`. */
void switch_to(struct switch_point *from, struct switch_point *to);
/* As switch_to, but nothing ever goes on at `from`. */
_Noreturn void switch_end(struct switch_point *from, struct switch_point *to);
/* Frees what belongs to a coroutine that does not run, whether it has ended or not. */
void switch_discard(struct switch_point *p);

#endif
