/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/reconnector.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "libpccl-shim/registered.h"
#include "libpccl-shim/session.h"

#define FIRST_PAUSE_MS 20u
#define LAST_PAUSE_MS  500u
#define MS_NS          ((uint64_t)1000000)

/* the longest time until the library notices that the program has closed the descriptor */
#define IDLE_LOOK_MS 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct pccl_session *current; /* a reference */
static bool opening;                 /* a thread is opening a session */
static bool started;                 /* the reconnector's thread was started */
static bool resuming;                /* the reconnector is opening the next session */
static pcclComm_t *comms; /* the list of communicators; while `resuming` is not set, their session
			   * is `current` */
static struct {
	unsigned n; /* failed attempts to open a session so far */
	pcclResult_t code;
	char text[PCCL_TEXT_MAX]; /* the sentence of the last failure */
} failure;

static _Atomic uint32_t lease_ms = PCCL_LEASE_MS;

/* The time spent on waiting for agents since the last success. */
struct patience {
	uint64_t spent_ns;
	uint32_t pause_ms;
};

/* used only by the reconnector's thread */
static struct patience patience;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER; /* a request was answered */

void pccl_reconnector_after_fork(void)
{
	/* Another thread of the parent may have held the lock or waited for a condition, so the
	 * copies are initialized again. */
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	pthread_cond_init(&answered, NULL);
	current = NULL;
	opening = false;
	started = false;
	resuming = false;
	comms = NULL;
	patience = (struct patience){0};
}

pcclResult_t pccl_reconnector_lease_read(void)
{
	const char *name = "PCCL_AGENT_LEASE_MS", *text = secure_getenv(name);
	unsigned long ms = PCCL_LEASE_MS;
	char *end;

	if (!text) {
		name = "PCCL_AGENT_GRACE_MS"; /* the old name */
		text = secure_getenv(name);
	}
	if (text && *text) {
		errno = 0;
		ms = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || *end || errno || ms > INT32_MAX)
			return pccl_fail(pcclInvalidUsage,
				"the environment variable %s is \"%.64s\", it must be a number of "
				"milliseconds from 0 to %d",
				name, text, INT32_MAX);
	}
	atomic_store(&lease_ms, (uint32_t)ms);
	return pcclSuccess;
}

uint32_t pccl_reconnector_lease_ms(void)
{
	return atomic_load(&lease_ms);
}

/* Returns how long an agent may be silent. This is never 0: even without a lease, the library waits
 * for a living agent. */
static uint32_t silence_ms(void)
{
	uint32_t ms = pccl_reconnector_lease_ms();

	return ms > 0 ? ms : PCCL_LEASE_MS;
}

/* ---- the session */

static void nap(uint32_t ms)
{
	poll(NULL, 0, (int)ms);
}

static bool is_stopped(const _Atomic bool *stop)
{
	return stop && atomic_load(stop);
}

static pcclResult_t fail_stopped(void)
{
	return pccl_fail(pcclInterrupted, "pcclInterrupt was called");
}

/* Sleeps, but returns early if `stop` is set. */
static void nap_or(uint32_t ms, const _Atomic bool *stop)
{
	while (stop && ms > PCCL_LOOK_MS && !is_stopped(stop)) {
		nap(PCCL_LOOK_MS);
		ms -= PCCL_LOOK_MS;
	}
	nap(is_stopped(stop) ? 0 : ms);
}

/* Connects to the socket of the old session, whose agent has died. */
static pcclResult_t reconnect(const struct pccl_session *old, struct patience *p,
	const _Atomic bool *stop, struct pccl_session **ret)
{
	uint64_t lease_ns = pccl_reconnector_lease_ms() * MS_NS, begin = cc_now_ns(),
		 before = p->spent_ns;
	char text[PCCL_TEXT_MAX];
	uint32_t left_ms;
	pcclResult_t r;

	if (before >= lease_ns)
		return pccl_fail(pcclAgentUnavailable,
			"the agent on this host keeps restarting (unstable for %u ms); see its log",
			pccl_reconnector_lease_ms());
	for (;;) {
		/* The pause counts as waiting, so an agent that dies again and again uses up the
		 * lease, even if it starts at once. */
		nap_or(p->pause_ms, stop);
		if (is_stopped(stop))
			return fail_stopped();
		r = pccl_session_open(old, silence_ms(), ret);
		p->pause_ms = p->pause_ms == 0                  ? FIRST_PAUSE_MS
			      : 2 * p->pause_ms < LAST_PAUSE_MS ? 2 * p->pause_ms
								: LAST_PAUSE_MS;
		p->spent_ns = before + cc_now_ns() - begin;
		if (r == pcclSuccess || r == pcclVersionMismatch || r == pcclPermissionDenied ||
			r == pcclInterrupted)
			return r;
		if (p->spent_ns >= lease_ns)
			break;
		/* The last attempt is at the end of the lease. */
		left_ms = (uint32_t)((lease_ns - p->spent_ns) / MS_NS) + 1;
		if (p->pause_ms > left_ms)
			p->pause_ms = left_ms;
	}
	pccl_fail_text(text);
	return pccl_fail(r == pcclOutOfMemory ? r : pcclAgentUnavailable,
		"the agent went away and did not come back within %u ms: %s",
		pccl_reconnector_lease_ms(), text);
}

/* Opens a session and presents the registered memory. old: the last session, whose agent is gone,
 * or NULL. */
static pcclResult_t open_session(struct pccl_session *old, struct patience *p,
	const _Atomic bool *stop, struct pccl_session **ret)
{
	pcclResult_t r = old && pccl_session_may_return(old) && pccl_reconnector_lease_ms() > 0
				 ? reconnect(old, p, stop, ret)
				 : pccl_session_open(NULL, silence_ms(), ret);

	if (r != pcclSuccess)
		return r;
	r = pccl_registered_adopt(*ret);
	if (r != pcclSuccess) {
		pccl_session_unref(*ret);
		*ret = NULL;
		return r;
	}
	if (pccl_session_check(*ret) ||
		(pccl_session_may_return(*ret) && pccl_reconnector_lease_ms() > 0))
		return r;
	r = pccl_session_fail(*ret);
	pccl_session_unref(*ret);
	*ret = NULL;
	return r;
}

/* With the lock held: stores the failure for all threads that wait for this thread. */
static void tell_failure(pcclResult_t r)
{
	failure.n++;
	failure.code = r;
	pccl_fail_text(failure.text);
}

/* With the lock held: waits for a change. Returns a failure that another thread has stored in the
 * meantime. */
static pcclResult_t await_change(const _Atomic bool *stop)
{
	unsigned before = failure.n;

	if (is_stopped(stop))
		return fail_stopped();
	pccl_thread_wait(&changed, &lock);
	return failure.n == before ? pcclSuccess : pccl_fail(failure.code, "%s", failure.text);
}

pcclResult_t pccl_reconnector_session(const _Atomic bool *stop, struct pccl_session **ret)
{
	struct patience p = {0};
	pcclResult_t r = pccl_reconnector_lease_read();

	pthread_mutex_lock(&lock);
	while (r == pcclSuccess && (!current || !pccl_session_check(current))) {
		struct pccl_session *old, *s = NULL;

		if (opening || resuming || (current && comms)) {
			r = await_change(stop);
			continue;
		}
		old = current;
		current = NULL;
		opening = true;
		pthread_mutex_unlock(&lock);
		r = open_session(old, &p, stop, &s);
		if (r == pcclInterrupted) { /* other threads still wait for the same agent */
			s = old;
			old = NULL;
		}
		pccl_session_unref(old);
		pthread_mutex_lock(&lock);
		opening = false;
		current = s;
		if (r != pcclSuccess && r != pcclInterrupted)
			tell_failure(r);
		pthread_cond_broadcast(&changed);
	}
	if (r == pcclSuccess)
		*ret = pccl_session_ref(current);
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- making the next session; only the reconnector's thread */

/* Returns all communicators of the list as jobs, with a reference to each. */
static pcclComm_t *take_jobs(void)
{
	pcclComm_t *jobs = NULL;

	pthread_mutex_lock(&lock);
	for (pcclComm_t *c = comms; c; c = c->next) {
		pccl_comm_ref(c);
		c->next_job = jobs;
		jobs = c;
	}
	pthread_mutex_unlock(&lock);
	return jobs;
}

static void drop_jobs(pcclComm_t *jobs)
{
	while (jobs) {
		pcclComm_t *c = jobs;

		jobs = c->next_job;
		pccl_comm_unref(c);
	}
}

/* Gives up a communicator. The thread's sentence is the reason. */
static void give_up(pcclComm_t *c, pcclResult_t code)
{
	char text[PCCL_TEXT_MAX];

	pccl_fail_text(text);
	pccl_reconnector_remove(c);
	pccl_comm_give_up(c, code, text);
}

static void give_all_up(pcclComm_t *jobs, pcclResult_t code)
{
	for (pcclComm_t *c = jobs; c; c = c->next_job)
		give_up(c, code);
}

/* Handles the agent's answer for one communicator. */
static void settle(struct pccl_session *s, pcclComm_t *c)
{
	struct pccl_attachment *a;
	struct wl_reply reply;
	pcclResult_t r;
	int fds[3];

	r = pccl_session_end(s, &c->attach_call, &reply, fds, 3);
	if (r != pcclSuccess && reply.req_id == 0)
		return; /* this agent has died, too: the next agent is asked */
	if (r == pcclSuccess)
		r = pccl_attachment_new(s, reply.comm, fds, &a);
	if (r != pcclSuccess) {
		give_up(c, r);
		return;
	}
	patience = (struct patience){0};
	if (pccl_comm_resume(c, a, &reply))
		return;
	pccl_attachment_close(a, "");
	pccl_attachment_unref(a);
}

/* Attaches all communicators at the same time, because one may have to wait for its master or for
 * another communicator. */
static void attach_all(struct pccl_session *s, pcclComm_t *jobs)
{
	struct pccl_call **calls;
	pcclComm_t **asked;
	unsigned n = 0;

	for (pcclComm_t *c = jobs; c; c = c->next_job)
		n++;
	if (n == 0)
		return;
	calls = calloc(n, sizeof(struct pccl_call *));
	asked = calloc(n, sizeof(pcclComm_t *));
	if (!calls || !asked) {
		give_all_up(jobs,
			pccl_fail(pcclOutOfMemory, "no memory to attach the communicators again"));
		goto out;
	}
	n = 0;
	for (pcclComm_t *c = jobs; c; c = c->next_job) {
		struct wl_request request;
		pcclResult_t r;

		if (!pccl_comm_ask(c, &request)) {
			pccl_reconnector_remove(c);
			continue;
		}
		r = pccl_session_begin(s, &c->attach_call, &request, &answered);
		if (r != pcclSuccess) {
			give_up(c, r);
			continue;
		}
		calls[n] = &c->attach_call;
		asked[n++] = c;
	}
	for (unsigned left = n; left > 0; left--) {
		int i = pccl_session_wait(s, calls, n, &answered);

		/* The session has ended, and no more answers will come. Take the next call that is
		 * left. */
		for (unsigned k = 0; i < 0; k++)
			i = calls[k] ? (int)k : -1;
		calls[i] = NULL;
		settle(s, asked[i]);
	}
out:
	free(calls);
	free(asked);
}

static void resume(void)
{
	struct pccl_session *old, *s = NULL;
	pcclComm_t *jobs;
	pcclResult_t r;

	pthread_mutex_lock(&lock);
	/* Another thread may have opened the next session, or the list may be empty. */
	if (!comms || !current || pccl_session_check(current)) {
		pthread_mutex_unlock(&lock);
		return;
	}
	resuming = true;
	old = current;
	current = NULL;
	pthread_mutex_unlock(&lock);
	jobs = take_jobs();
	r = pccl_session_fail(old);
	if (pccl_session_may_return(old) && pccl_reconnector_lease_ms() > 0) {
		for (pcclComm_t *c = jobs; c; c = c->next_job)
			pccl_comm_detach(c);
		r = reconnect(old, &patience, NULL, &s);
	}
	pccl_session_unref(old);
	if (s) {
		(void)pccl_registered_adopt(s);
		pthread_mutex_lock(&lock);
		current = pccl_session_ref(s);
		resuming = false;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		attach_all(s, jobs);
		pccl_session_unref(s);
	} else {
		give_all_up(jobs, r);
		patience = (struct patience){0};
		pthread_mutex_lock(&lock);
		resuming = false;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	drop_jobs(jobs);
}

static void *keep(void *arg)
{
	(void)arg;
	for (;;) {
		/* poll() reports the end of the socket in any case. */
		struct pollfd p = {.events = 0};
		struct pccl_session *s;
		bool alive;

		pthread_mutex_lock(&lock);
		while (!comms || !current)
			pthread_cond_wait(&changed, &lock);
		s = pccl_session_ref(current);
		pthread_mutex_unlock(&lock);
		p.fd = pccl_session_fd(s);
		poll(&p, 1, IDLE_LOOK_MS);
		alive = pccl_session_check(s);
		pccl_session_unref(s);
		if (!alive)
			resume();
		else
			nap(1); /* a thread that reads the last packets will soon notice the end */
	}
	return NULL;
}

/* With the lock held: starts the thread, unless it was started already. */
static pcclResult_t start(void)
{
	char limit[CC_LIMIT_TEXT];
	int err;

	if (started)
		return pcclSuccess;
	err = pccl_thread_start(keep);
	if (err)
		return pccl_fail(cc_limit_is(err) ? pcclOutOfMemory : pcclInternalError,
			"the library's thread cannot be started: %s",
			cc_limit_call_text("pthread_create (clone3)", err, 0, limit, sizeof limit));
	started = true;
	return pcclSuccess;
}

pcclResult_t pccl_reconnector_add(pcclComm_t *c, struct pccl_session *s, bool *ret_late)
{
	pcclResult_t r = pcclSuccess;

	pthread_mutex_lock(&lock);
	*ret_late = s != current || !pccl_session_check(s);
	if (!*ret_late)
		r = start();
	if (!*ret_late && r == pcclSuccess && !c->listed) {
		c->listed = true;
		c->next = comms;
		comms = c;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return r;
}

void pccl_reconnector_remove(pcclComm_t *c)
{
	pthread_mutex_lock(&lock);
	for (pcclComm_t **p = &comms; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			c->listed = false;
			break;
		}
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

struct cc_addr pccl_reconnector_master_addr(const struct cc_addr *master)
{
	struct cc_addr at = {.family = 0};

	pthread_mutex_lock(&lock);
	for (pcclComm_t *c = comms; c && !at.family; c = c->next) {
		if (!cc_addr_eq(&c->master, master))
			continue;
		pthread_mutex_lock(&c->lock);
		at = pccl_comm_master_addr(c);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&lock);
	return at;
}
