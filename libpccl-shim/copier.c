/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/copier.h"

#include <pthread.h>

#include "libpccl-shim/thread.h"

/* Guards all variables below, and the jobs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t added = PTHREAD_COND_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* the state of a job has changed */
static struct pccl_job *queue;                            /* jobs in the order of the calls */
static struct pccl_job **end = &queue;
static bool started; /* the thread was started */

void pccl_copier_after_fork(void)
{
	/* See pccl_reconnector_after_fork. */
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&added, NULL);
	pthread_cond_init(&changed, NULL);
	queue = NULL;
	end = &queue;
	started = false;
}

/* With the lock held: takes a job off the queue. */
static struct pccl_job *take(struct pccl_job **at)
{
	struct pccl_job *j = *at;

	*at = j->next;
	if (!*at)
		end = at;
	return j;
}

/* Carries out a job. Called with the lock held, and releases it while the job runs. */
static void carry_out(struct pccl_job *j)
{
	j->state = PCCL_JOB_BEGUN;
	pthread_mutex_unlock(&lock);
	j->run(j);
	pthread_mutex_lock(&lock);
	j->state = PCCL_JOB_NONE;
	pthread_cond_broadcast(&changed);
}

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!queue)
			pthread_cond_wait(&added, &lock);
		carry_out(take(&queue));
	}
	return NULL;
}

void pccl_copier_add(struct pccl_job *j, struct pcclComm_t *c, const struct shm_sqe *e,
	void (*run)(struct pccl_job *j))
{
	j->next = NULL;
	j->run = run;
	j->comm = c;
	j->entry = *e;
	atomic_store_explicit(&j->stop, false, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	j->state = PCCL_JOB_QUEUED;
	*end = j;
	end = &j->next;
	/* If no thread can be started, the job is carried out when it is awaited. */
	started = started || pccl_thread_start(work) == 0;
	pthread_cond_signal(&added);
	pthread_mutex_unlock(&lock);
}

void pccl_copier_submitted(struct pccl_job *j)
{
	pthread_mutex_lock(&lock);
	j->state = PCCL_JOB_SUBMITTED;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

bool pccl_copier_await(struct pccl_job *j)
{
	bool ready;

	pthread_mutex_lock(&lock);
	while (j->state == PCCL_JOB_QUEUED) {
		struct pccl_job **at = &queue;

		while ((*at)->comm != j->comm)
			at = &(*at)->next;
		carry_out(take(at));
	}
	if (j->state == PCCL_JOB_BEGUN)
		pccl_thread_wait(&changed, &lock);
	ready = j->state == PCCL_JOB_NONE || j->state == PCCL_JOB_SUBMITTED;
	pthread_mutex_unlock(&lock);
	return ready;
}

/* With the lock held: takes the job off the queue, or makes its thread stop. */
static void cancel(struct pccl_job *j)
{
	atomic_store(&j->stop, true);
	if (j->state == PCCL_JOB_QUEUED) {
		struct pccl_job **at = &queue;

		while (*at != j)
			at = &(*at)->next;
		take(at)->state = PCCL_JOB_NONE;
	}
}

void pccl_copier_cancel(struct pccl_job *j)
{
	pthread_mutex_lock(&lock);
	cancel(j);
	pthread_mutex_unlock(&lock);
}

void pccl_copier_stop(struct pccl_job *j)
{
	pthread_mutex_lock(&lock);
	cancel(j);
	while (j->state != PCCL_JOB_NONE)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
