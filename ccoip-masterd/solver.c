/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/solver.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cc_limit.h"
#include "common/cc_loop.h"
#include "common/cc_must.h"
#include "common/cc_sys.h"
#include "topology/tpl.h"

#define BUDGET_NS   UINT64_C(900000000)
#define MOONSHOT_NS UINT64_C(60000000000)
/* A later answer is reported if its rate is higher, or its bound lower, by this factor. */
#define BETTER 1.01

struct job {
	struct ccm_problem p;
	double *rate, *trip, *out, *in; /* as the library wants them */
	struct tpl *tpl;
	double reported, bound; /* rate and bound of the last answer */
	struct job *prev, *next;
};

struct answer {
	struct ccm_solution x;
	uint16_t *order;
	char text[CC_LIMIT_TEXT];
	struct answer *prev, *next;
};

struct solver {
	void (*on_solved)(void *arg, const struct ccm_solution *x);
	void *arg;
	int fd; /* an eventfd: there are answers */
	struct cc_watch *watch;
	bool runs; /* the thread exists */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news; /* there is a job, or stop was set */
	struct job *jobs;
	struct answer *answers;
	_Atomic bool stop, interrupt; /* interrupt: a job waits, so end the moonshot */
};

static void job_free(struct job *j)
{
	if (!j)
		return;
	tpl_free(j->tpl);
	ccm_problem_clear(&j->p);
	free(j->rate);
	free(j->trip);
	free(j->out);
	free(j->in);
	free(j);
}

static void answer_free(struct answer *a)
{
	free(a->order);
	free(a);
}

static void report(struct solver *s, struct answer *a)
{
	uint64_t one = 1;

	a->x.order = a->order;
	pthread_mutex_lock(&s->lock);
	DL_APPEND(s->answers, a);
	pthread_mutex_unlock(&s->lock);
	(void)!write(s->fd, &one, sizeof one); /* it can only fail if it is readable already */
}

/* ---- conversion ---- */

static double *doubles(const uint64_t *v, size_t n)
{
	double *ret = cc_must_zalloc(n, sizeof *ret);

	for (size_t i = 0; i < n; i++)
		ret[i] = (double)v[i];
	return ret;
}

static void prepare(struct job *j)
{
	size_t n = j->p.n;

	j->rate = doubles(j->p.rates, n * n);
	j->out = doubles(j->p.out, n);
	j->in = doubles(j->p.in, n);
	j->trip = cc_must_zalloc(n * n, sizeof *j->trip);
	for (size_t i = 0; i < n * n; i++)
		j->trip[i] = j->p.trips_us[i];
}

static struct tpl_problem problem_of(const struct job *j)
{
	return (struct tpl_problem){
		.n = j->p.n, .rate = j->rate, .trip = j->trip, .out = j->out, .in = j->in};
}

/* Returns the rate of the plan in force. */
static double current_rate(const struct job *j)
{
	struct tpl_problem p = problem_of(j);
	const struct cc_rings *c = &j->p.current;
	uint32_t *order = cc_must_zalloc((size_t)CC_RINGS_MAX * j->p.n, sizeof *order);
	const uint32_t *rings[CC_RINGS_MAX];
	double weight[CC_RINGS_MAX] = {1}, sum = 0, ret;
	uint32_t n = c->n > 0 ? c->n : 1;

	for (uint32_t r = 0; r < c->n; r++)
		sum += c->share[r];
	for (uint32_t r = 0; r < n; r++) {
		rings[r] = order + (size_t)r * j->p.n;
		for (uint32_t i = 0; i < j->p.n; i++)
			order[(size_t)r * j->p.n + i] = c->n > 0 ? c->order[r][i] : i;
		if (c->n > 0)
			weight[r] = c->share[r] / sum;
	}
	ret = tpl_plan_rate(&p, n, rings, weight);
	free(order);
	return ret;
}

static double trip_sum(const struct job *j, const uint32_t *ring)
{
	double sum = 0;

	for (uint32_t i = 0; i < j->p.n; i++)
		sum += j->trip[(size_t)ring[i] * j->p.n + ring[(i + 1) % j->p.n]];
	return sum;
}

/* Small operations use the first ring, so it is the one with the lowest sum of round trips. */
static uint32_t first_ring(const struct job *j, const struct tpl_best *b)
{
	uint32_t first = 0;

	for (uint32_t r = 1; r < b->n_rings; r++)
		if (trip_sum(j, b->ring[r]) < trip_sum(j, b->ring[first]))
			first = r;
	return first;
}

static uint16_t share_of(double weight)
{
	double v = weight * UINT16_MAX;

	return v < 1 ? 1 : (uint16_t)lround(v);
}

/* `searching`: other answers may follow. */
static void answer(struct solver *s, struct job *j, bool searching)
{
	struct tpl_best b = tpl_best(j->tpl);
	struct answer *a = cc_must_zalloc(1, sizeof *a);
	uint32_t n = j->p.n, first = first_ring(j, &b);

	a->x = (struct ccm_solution){.number = j->p.number,
		.n = n,
		.n_rings = b.n_rings,
		.rate = b.value,
		.current = current_rate(j),
		.bound = b.bound,
		.searching = searching};
	a->order = cc_must_zalloc((size_t)b.n_rings * n, sizeof *a->order);
	for (uint32_t k = 0; k < b.n_rings; k++) {
		uint32_t r = k == 0 ? first : k == first ? 0 : k;

		a->x.shares[k] = share_of(b.weight[r]);
		for (uint32_t i = 0; i < n; i++)
			a->order[k * n + i] = (uint16_t)b.ring[r][i];
	}
	j->reported = b.value;
	j->bound = b.bound;
	report(s, a);
}

static void answer_none(struct solver *s, const struct job *j, const char *text)
{
	struct answer *a = cc_must_zalloc(1, sizeof *a);

	a->x = (struct ccm_solution){.number = j->p.number, .n = j->p.n, .text = a->text};
	(void)snprintf(a->text, sizeof a->text, "%s", text);
	report(s, a);
}

/* ---- the thread ---- */

/* Returns whether the work is finished. */
static bool work(struct solver *s, struct job *j, uint64_t ns, const _Atomic bool *interrupt)
{
	uint64_t end = cc_now_ns() + ns;
	bool done = false;

	while (!done && !atomic_load(&s->stop) && !(interrupt && atomic_load(interrupt)) &&
		cc_now_ns() < end)
		done = tpl_work(j->tpl, 1);
	return done;
}

static bool has_news(const struct job *j)
{
	struct tpl_best b = tpl_best(j->tpl);

	return b.value > j->reported * BETTER || b.bound * BETTER < j->bound;
}

/* Looks for better answers until the next job comes. The last answer says that the search has
 * ended. */
static void moonshot(struct solver *s, struct job *j)
{
	uint64_t end = cc_now_ns() + MOONSHOT_NS;
	bool done = false;

	while (!done && !atomic_load(&s->stop) && !atomic_load(&s->interrupt) &&
		cc_now_ns() < end) {
		done = work(s, j, BUDGET_NS, &s->interrupt);
		if (!done && has_news(j))
			answer(s, j, true);
	}
	answer(s, j, false);
}

static void solve(struct solver *s, struct job *j)
{
	char text[CC_LIMIT_TEXT];
	struct tpl_problem p;
	bool plan = j->p.max_rings > 1 && j->p.n <= TPL_PLAN_HOSTS_MAX;

	prepare(j);
	p = problem_of(j);
	if (tpl_new(&p, plan ? TPL_PLAN : TPL_BOTTLENECK, 1, &j->tpl) < 0) {
		(void)snprintf(text, sizeof text,
			"ccoip-masterd has made a wrong problem for group %u with %u hosts: report "
			"this as a bug",
			j->p.group, j->p.n);
		answer_none(s, j, text);
		return;
	}
	if (work(s, j, BUDGET_NS, NULL)) {
		answer(s, j, false);
		return;
	}
	answer(s, j, true);
	moonshot(s, j);
}

static struct job *take_job(struct solver *s)
{
	struct job *j;

	pthread_mutex_lock(&s->lock);
	while (!s->jobs && !atomic_load(&s->stop))
		pthread_cond_wait(&s->news, &s->lock);
	j = s->jobs;
	if (j)
		DL_DELETE(s->jobs, j);
	atomic_store(&s->interrupt, s->jobs != NULL);
	pthread_mutex_unlock(&s->lock);
	return j;
}

static void *run(void *arg)
{
	struct solver *s = arg;

	while (!atomic_load(&s->stop)) {
		struct job *j = take_job(s);

		if (j)
			solve(s, j);
		job_free(j);
	}
	return NULL;
}

/* ---- the loop thread ---- */

static void on_answers(void *arg)
{
	struct solver *s = arg;
	struct answer *list, *a, *next;
	uint64_t n;

	(void)!read(s->fd, &n, sizeof n);
	pthread_mutex_lock(&s->lock);
	list = s->answers;
	s->answers = NULL;
	pthread_mutex_unlock(&s->lock);
	DL_FOREACH_SAFE (list, a, next) {
		s->on_solved(s->arg, &a->x);
		answer_free(a);
	}
}

struct solver *solver_new(
	struct cc_loop *l, void (*on_solved)(void *arg, const struct ccm_solution *x), void *arg)
{
	struct solver *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->on_solved = on_solved;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->news, NULL);
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->watch = s->fd >= 0 ? cc_watch_new(l, s->fd, false, on_answers, s) : NULL;
	if (s->watch)
		return s;
	solver_free(s);
	return NULL;
}

/* Starts the thread, unless it runs. Returns 0 or an errno. */
static int start(struct solver *s)
{
	sigset_t all, old;
	int error;

	if (s->runs)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the loop */
	error = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->runs = error == 0;
	return error;
}

void solver_post(struct solver *s, struct ccm_problem *p)
{
	struct job *j = cc_must_zalloc(1, sizeof *j);
	char limit[CC_LIMIT_TEXT];
	int error = start(s);

	j->p = *p;
	*p = (struct ccm_problem){0};
	if (error) {
		answer_none(
			s, j, cc_limit_call_text("pthread_create", error, 0, limit, sizeof limit));
		job_free(j);
		return;
	}
	pthread_mutex_lock(&s->lock);
	DL_APPEND(s->jobs, j);
	atomic_store(&s->interrupt, true);
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
}

void solver_free(struct solver *s)
{
	struct job *j, *j_next;
	struct answer *a, *a_next;

	if (!s)
		return;
	atomic_store(&s->stop, true);
	if (s->runs) {
		pthread_mutex_lock(&s->lock);
		pthread_cond_signal(&s->news);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	DL_FOREACH_SAFE (s->jobs, j, j_next)
		job_free(j);
	DL_FOREACH_SAFE (s->answers, a, a_next)
		answer_free(a);
	cc_watch_free(s->watch);
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->news);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
