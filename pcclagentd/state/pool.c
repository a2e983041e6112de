/* SPDX-License-Identifier: MIT
 *
 * The worker pool: threads that copy between tensors that the agent can reach. One thread alone
 * cannot use the full bandwidth of the memory. The threads exist while there is something to copy,
 * and know only their tasks. The engine's thread handles the results. The engine's thread copies
 * the contents of windows itself, because the thread of the trainer copies at the same time.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/pool.h"
#include "pcclagentd/state/ste_internal.h"

#define IDLE_NS STE_MS(1000)
#define TASKS   64u

/* The task to copy a block into the tensor of a receiver. */
struct ste_task {
	struct ste_job *j;
	struct ste_block *b;
	struct ste_peer *p;
	uint8_t *dst;
	bool right;
	struct ste_task *next;
};

struct ste_pool {
	pthread_mutex_t lock;
	pthread_cond_t work, news; /* wake the pool; wake the engine's thread */
	struct ste_task *todo, **todo_end, *done;
	uint32_t n_running;
	_Atomic uint32_t n_done;
	bool quit;
	/* Used by the engine's thread only. */
	uint32_t max, n_threads, n_given;
	pthread_t threads[STE_POOL_MAX];
	struct ste_task tasks[TASKS], *free;
	uint64_t used_ns;
	_Atomic uint64_t n_copied; /* the loop reads it */
};

static uint32_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

struct ste_pool *ste_pool_new(uint32_t wanted)
{
	uint32_t n = wanted ? wanted : processors();
	struct ste_pool *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->todo_end = &c->todo;
	c->max = wanted == STE_NO_POOL ? 0 : n - (wanted ? 0 : 1);
	if (c->max > STE_POOL_MAX)
		c->max = STE_POOL_MAX;
	for (uint32_t i = 0; i < TASKS; i++) {
		c->tasks[i].next = c->free;
		c->free = &c->tasks[i];
	}
	if (pthread_mutex_init(&c->lock, NULL) != 0)
		goto err;
	if (pthread_cond_init(&c->work, NULL) != 0)
		goto err_lock;
	if (pthread_cond_init(&c->news, NULL) != 0)
		goto err_work;
	return c;
err_work:
	pthread_cond_destroy(&c->work);
err_lock:
	pthread_mutex_destroy(&c->lock);
err:
	free(c);
	return NULL;
}

void ste_pool_free(struct ste_pool *c)
{
	if (!c)
		return;
	pthread_cond_destroy(&c->news);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

uint64_t ste_pool_copied(const struct ste_pool *c)
{
	return atomic_load_explicit(&c->n_copied, memory_order_relaxed);
}

/* ---- tasks; with the lock held */

static struct ste_task *take(struct ste_pool *c)
{
	struct ste_task *t = c->todo;

	if (!t)
		return NULL;
	c->todo = t->next;
	if (!c->todo)
		c->todo_end = &c->todo;
	c->n_running++;
	return t;
}

/* Carries out a task. Releases the lock while it copies. */
static void carry_out(struct ste_pool *c, struct ste_task *t)
{
	pthread_mutex_unlock(&c->lock);
	ste_peer_map(t->p, t->b);
	t->right = ste_job_block_copy(t->j, t->b, t->dst);
	pthread_mutex_lock(&c->lock);
	c->n_running--;
	t->next = c->done;
	c->done = t;
	atomic_fetch_add(&c->n_done, 1);
	pthread_cond_signal(&c->news);
}

static void *pool_main(void *arg)
{
	struct ste *e = arg;
	struct ste_pool *c = e->pool;

	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		struct ste_task *t = take(c);

		if (!t) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		carry_out(c, t);
		pthread_mutex_unlock(&c->lock);
		/* The engine's thread checks n_done after it has announced that it sleeps. */
		wrk_wake(&e->worker);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- for the engine's thread */

static void start(struct ste *e)
{
	struct ste_pool *c = e->pool;

	while (c->n_threads < c->max &&
		pthread_create(&c->threads[c->n_threads], NULL, pool_main, e) == 0) {
		pthread_setname_np(c->threads[c->n_threads], "pccl-state-copy");
		c->n_threads++;
	}
}

void ste_pool_end(struct ste *e)
{
	struct ste_pool *c = e->pool;

	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	while (c->n_threads > 0)
		pthread_join(c->threads[--c->n_threads], NULL);
	c->quit = false;
}

bool ste_pool_give(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint8_t *dst)
{
	struct ste_pool *c = j->e->pool;
	struct ste_task *t = c->free;

	if (!t || c->max == 0 || b->len <= WIRE_LEAF)
		return false;
	if (c->n_threads == 0)
		start(j->e);
	if (c->n_threads == 0) {
		c->max = 0; /* does not try to start threads again */
		return false;
	}
	c->free = t->next;
	c->n_given++;
	*t = (struct ste_task){.j = j, .b = b, .p = p, .dst = dst};
	pthread_mutex_lock(&c->lock);
	*c->todo_end = t;
	c->todo_end = &t->next;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	c->used_ns = j->e->now_ns;
	return true;
}

bool ste_pool_help(struct ste *e)
{
	struct ste_pool *c = e->pool;
	struct ste_task *t;

	if (c->n_given == 0)
		return false;
	pthread_mutex_lock(&c->lock);
	t = take(c);
	if (t)
		carry_out(c, t);
	pthread_mutex_unlock(&c->lock);
	return t != NULL;
}

bool ste_pool_has_done(const struct ste *e)
{
	return atomic_load(&e->pool->n_done) > 0;
}

bool ste_pool_collect(struct ste *e)
{
	struct ste_pool *c = e->pool;
	struct ste_task *t, *next;

	if (!ste_pool_has_done(e))
		return false;
	pthread_mutex_lock(&c->lock);
	t = c->done;
	c->done = NULL;
	atomic_store(&c->n_done, 0);
	pthread_mutex_unlock(&c->lock);
	for (; t; t = next) {
		next = t->next;
		c->n_given--;
		atomic_fetch_add_explicit(&c->n_copied, 1, memory_order_relaxed);
		ste_block_copied(t->j, t->b, t->p, t->right);
		t->next = c->free;
		c->free = t;
	}
	return true;
}

void ste_pool_settle(struct ste *e)
{
	struct ste_pool *c = e->pool;

	while (c->n_given > 0) {
		while (ste_pool_help(e))
			;
		pthread_mutex_lock(&c->lock);
		while (c->n_running > 0 && !c->done)
			pthread_cond_wait(&c->news, &c->lock);
		pthread_mutex_unlock(&c->lock);
		(void)ste_pool_collect(e);
	}
}

void ste_pool_tick(struct ste *e)
{
	struct ste_pool *c = e->pool;

	if (c->n_threads > 0 && c->n_given == 0 && e->now_ns > c->used_ns + IDLE_NS)
		ste_pool_end(e);
}
