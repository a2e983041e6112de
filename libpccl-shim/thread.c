/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "common/cc_sys.h"

uint64_t pccl_thread_id(void)
{
	static _Atomic uint64_t last;
	static _Thread_local uint64_t id;

	if (id == 0)
		id = atomic_fetch_add(&last, 1) + 1;
	return id;
}

int pccl_thread_start(void *(*run)(void *))
{
	/* A fault whose signal is blocked kills the process, even if the signal has a handler. */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t mask, old;
	pthread_t thread;
	int err;

	sigfillset(&mask);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &old);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		pthread_detach(thread);
	return err;
}

void pccl_thread_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	uint64_t until = cc_now_ns() + (uint64_t)PCCL_LOOK_MS * 1000000;
	struct timespec t = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	(void)pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t);
}
