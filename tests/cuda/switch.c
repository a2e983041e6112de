/* SPDX-License-Identifier: MIT */
#include "tests/cuda/switch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ASAN
#endif
#if __has_feature(thread_sanitizer)
#define TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define TSAN
#endif

#ifdef ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Saves the registers that a function must keep on the stack, and the stack pointer in *from. Then
 * takes the stack pointer `to`, and the registers from there. */
void switch_stacks(void **from, void *to);

#if defined(__x86_64__)

__asm__(".text\n"
	".globl switch_stacks\n"
	".hidden switch_stacks\n"
	".type switch_stacks, @function\n"
	"switch_stacks:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size switch_stacks, . - switch_stacks\n");

#define SAVED      8 /* words on the stack: registers, the address of `run`, and one to align */
#define SAVED_CODE 6 /* where the address is */

#elif defined(__aarch64__)

__asm__(".text\n"
	".globl switch_stacks\n"
	".hidden switch_stacks\n"
	".type switch_stacks, %function\n"
	"switch_stacks:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size switch_stacks, . - switch_stacks\n");

#define SAVED      20
#define SAVED_CODE 11 /* x30 */

#endif

/* The change of stacks that is under way in this thread of the process. */
static _Thread_local struct switch_point *left, *entered;

/* Before a change of stacks. `last`: nothing goes on at `from`. */
static void leave(struct switch_point *from, struct switch_point *to, int last)
{
	left = from;
	entered = to;
	(void)last;
#ifdef ASAN
	__sanitizer_start_switch_fiber(last ? NULL : &from->fake, to->stack, to->size);
#endif
#ifdef TSAN
	__tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* After a change of stacks. */
static void arrive(void)
{
#ifdef ASAN
	const void *stack;
	size_t size;

	__sanitizer_finish_switch_fiber(entered->fake, &stack, &size);
	/* Only now AddressSanitizer tells where the first stack is. */
	left->stack = (void *)(uintptr_t)stack;
	left->size = size;
#endif
}

/* The first function on a new stack. */
static void enter(void)
{
	struct switch_point *p = entered;

	arrive();
	p->run();
	abort();
}

void switch_begin(struct switch_point *here)
{
	memset(here, 0, sizeof(*here));
#ifdef TSAN
	here->fiber = __tsan_get_current_fiber();
#endif
}

void switch_prepare(struct switch_point *p, unsigned char *stack, size_t size, void (*run)(void))
{
	void *top[SAVED] = {0};

	memset(p, 0, sizeof(*p));
	p->run = run;
	p->stack = stack;
	p->size = size;
	p->sp = stack + size - sizeof(top);
	top[SAVED_CODE] = (void *)(uintptr_t)enter;
	memcpy(p->sp, top, sizeof(top));
#ifdef TSAN
	p->fiber = __tsan_create_fiber(0);
#endif
}

void switch_to(struct switch_point *from, struct switch_point *to)
{
	leave(from, to, 0);
	switch_stacks(&from->sp, to->sp);
	arrive();
}

void switch_end(struct switch_point *from, struct switch_point *to)
{
	leave(from, to, 1);
	switch_stacks(&from->sp, to->sp);
	abort();
}

void switch_discard(struct switch_point *p)
{
	(void)p;
#ifdef ASAN
	/* Functions that have not returned leave the stack poisoned. */
	__asan_unpoison_memory_region(p->stack, p->size);
#endif
#ifdef TSAN
	__tsan_destroy_fiber(p->fiber);
#endif
}
