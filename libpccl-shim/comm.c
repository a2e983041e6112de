/* SPDX-License-Identifier: MIT
 *
 * A communicator as an object: references, the rule about threads, and the values that were
 * reported to the application.
 */
#include "libpccl-shim/comm.h"

#include <stdlib.h>

#include "libpccl-shim/lib.h"
#include "libpccl-shim/state.h"

pcclResult_t pccl_comm_check(const pcclComm_t *c)
{
	pcclResult_t r = pccl_lib_check();

	if (r != pcclSuccess)
		return r;
	if (!c)
		return pccl_fail(pcclInvalidArgument, "the communicator must not be NULL");
	if (c->magic != PCCL_COMM_MAGIC)
		return pccl_fail(pcclInvalidArgument,
			"the pointer is not a communicator, or the communicator was destroyed");
	if (c->fork_count != pccl_fork_generation())
		return pccl_fail(pcclInvalidUsage,
			"the communicator belongs to the process that this one was forked from");
	return pcclSuccess;
}

pcclResult_t pccl_comm_check_main(const pcclComm_t *c, const char *function)
{
	if (atomic_load(&c->main_thread) == pccl_thread_id())
		return pcclSuccess;
	return pccl_fail(pcclInvalidUsage,
		"%s must be called by the communicator's main thread, which connected it",
		function);
}

pcclResult_t pccl_comm_begin_any(pcclComm_t *c, const char *function, pcclResult_t busy)
{
	const char *other;
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n_ops + c->backlog.n;
	other = c->main_call;
	if (n == 0 && !other)
		c->main_call = function;
	pthread_mutex_unlock(&c->lock);
	if (other)
		return pccl_fail(pcclInvalidUsage,
			"%s is in progress in another thread: call %s after it has returned", other,
			function);
	if (n > 0)
		return pccl_fail(
			busy, "%u operations are in flight: await them before %s", n, function);
	return pcclSuccess;
}

pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy)
{
	pcclResult_t r = pccl_comm_check_main(c, function);

	return r == pcclSuccess ? pccl_comm_begin_any(c, function, busy) : r;
}

pcclResult_t pccl_comm_check_optimized(pcclComm_t *c)
{
	bool must;

	pthread_mutex_lock(&c->lock);
	/* A peer that is alone need not optimize. Newcomers that it admits later do not know of the
	 * failure. */
	if (c->view.global < 2)
		c->must_optimize = false;
	must = c->must_optimize && !c->told_gone;
	pthread_mutex_unlock(&c->lock);
	return must ? pccl_fail(pcclInvalidUsage,
			      "the last pcclOptimizeTopology failed: repeat it before any other "
			      "call")
		    : pcclSuccess;
}

void pccl_comm_end(pcclComm_t *c)
{
	pthread_mutex_lock(&c->lock);
	c->main_call = NULL;
	pthread_mutex_unlock(&c->lock);
}

void pccl_comm_knows(pcclComm_t *c, uint64_t generation)
{
	uint64_t known = atomic_load(&c->known_generation);

	while (known < generation &&
		!atomic_compare_exchange_weak(&c->known_generation, &known, generation))
		;
}

void pccl_comm_set_view(pcclComm_t *c, const struct wire_view *view)
{
	pthread_mutex_lock(&c->lock);
	if (view->view_id > c->view.view_id)
		c->view = *view;
	pthread_mutex_unlock(&c->lock);
}

struct wire_view pccl_comm_view(pcclComm_t *c)
{
	struct wire_view view;

	pthread_mutex_lock(&c->lock);
	view = c->view;
	pthread_mutex_unlock(&c->lock);
	return view;
}

void pccl_comm_ref(pcclComm_t *c)
{
	atomic_fetch_add(&c->refs, 1);
}

void pccl_comm_unref(pcclComm_t *c)
{
	if (atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	pccl_attachment_unref(c->att);
	pccl_state_free(c->state);
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		free(c->ops[i].copied);
	free(c->feedback.tags);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

struct pccl_backlog_op **pccl_comm_find_waiting(pcclComm_t *c, uint64_t tag)
{
	struct pccl_backlog_op **at = &c->backlog.first;

	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	return at;
}
