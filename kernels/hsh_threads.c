/* SPDX-License-Identifier: MIT */
#include "kernels/hsh_run.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/*
 * The number of leaves that a thread takes at once (1 MiB). Leaves are numbered over all tensors,
 * so that all threads have work both with one large tensor and with many small ones.
 */
#define CHUNK 16

struct job {
	hsh_leaf_fn *leaf;
	struct hsh_tensor_work *tensors;
	size_t n;
	atomic_uint_fast64_t next; /* the next chunk that no thread has taken */
};

/* Hashes leaves of the job until no chunk is left. */
static void *work(void *arg)
{
	struct job *job = arg;
	uint64_t before = 0; /* leaves of all tensors before t */
	size_t t = 0;

	/* The numbers of the chunks that one thread takes only grow, so the thread goes through the
	 * tensors only once. */
	while (t < job->n) {
		uint64_t i = CHUNK * atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
		uint64_t end = i + CHUNK;

		while (t < job->n && i < end) {
			const struct hsh_tensor_work *w = &job->tensors[t];
			uint64_t count = hsh_leaf_count(w->bytes);

			if (i - before < count) {
				uint64_t first = i - before;
				uint64_t n = count - first < end - i ? count - first : end - i;

				hsh_leaves(
					job->leaf, w->data, w->bytes, first, n, w->leaves + first);
				i += n;
			}
			if (i - before >= count) {
				before += count;
				t++;
			}
		}
	}
	return NULL;
}

/* Starts up to n threads and returns their number. These threads block all signals, which are meant
 * for the threads of the program. */
static unsigned start(struct job *job, pthread_t *threads, unsigned n)
{
	sigset_t all, old;
	unsigned started = 0;

	if (n == 0)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (started < n && pthread_create(&threads[started], NULL, work, job) == 0)
		started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

void hsh_tensors(hsh_leaf_fn *leaf, struct hsh_tensor_work *tensors, size_t n, unsigned threads)
{
	struct job job = {.leaf = leaf, .tensors = tensors, .n = n};
	pthread_t others[HSH_MAX_THREADS - 1];
	uint64_t chunks, leaves = 0;
	unsigned started;

	for (size_t t = 0; t < n; t++)
		leaves += hsh_leaf_count(tensors[t].bytes);
	chunks = leaves / CHUNK + (leaves % CHUNK > 0);
	if (threads > HSH_MAX_THREADS)
		threads = HSH_MAX_THREADS;
	if (threads > chunks)
		threads = (unsigned)chunks;
	started = start(&job, others, threads > 1 ? threads - 1 : 0);
	work(&job);
	for (unsigned i = 0; i < started; i++)
		pthread_join(others[i], NULL);
	for (size_t t = 0; t < n; t++)
		tensors[t].hash = hsh_tensor(tensors[t].leaves, tensors[t].bytes);
}
