/* SPDX-License-Identifier: MIT */
/* Measures the limits of this machine's memory for bench/compare. Usage: limits copy|sum THREADS
 *
 * Each line "BYTES WARM-UPS N" of standard input is answered by a line of N durations in seconds. A
 * duration is that of the slowest thread. Each thread copies one of its arrays of BYTES bytes to
 * another one of its arrays, or adds it to the other array.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/krn.h"

#define MAX_THREADS 64
#define PAGE        4096u /* arrays of different threads share no page */

struct order {
	size_t bytes;
	unsigned warm_ups, n, n_threads;
	bool sum;
};

struct worker {
	const struct order *order;
	pthread_barrier_t *together;
	pthread_t thread;
	double *times;
	void *to, *from;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct order *o = w->order;
	const void *both[2] = {w->to, w->from};

	memset(w->to, 0, o->bytes);
	memset(w->from, 0, o->bytes);
	for (unsigned i = 0; i < o->warm_ups + o->n; i++) {
		double began;

		pthread_barrier_wait(w->together);
		began = now();
		if (o->sum)
			krn_reduce(KRN_F32, KRN_SUM, w->to, both, 2, o->bytes / sizeof(float));
		else
			memcpy(w->to, w->from, o->bytes);
		if (i >= o->warm_ups)
			w->times[i - o->warm_ups] = now() - began;
	}
	return NULL;
}

/* Runs all threads. times: the n times of the first thread, then those of the next one, and so on.
 */
static void work_together(
	const struct order *o, double *times, unsigned char *arrays, size_t stride)
{
	struct worker workers[MAX_THREADS];
	pthread_barrier_t together;

	pthread_barrier_init(&together, NULL, o->n_threads);
	for (unsigned t = 0; t < o->n_threads; t++) {
		workers[t] = (struct worker){.order = o,
			.together = &together,
			.times = times + (size_t)t * o->n,
			.to = arrays + stride * 2 * t,
			.from = arrays + stride * (2 * t + 1)};
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) {
			fprintf(stderr, "limits: no more threads\n");
			exit(EXIT_FAILURE); /* the other threads would wait for this one */
		}
	}
	for (unsigned t = 0; t < o->n_threads; t++)
		pthread_join(workers[t].thread, NULL);
	pthread_barrier_destroy(&together);
}

static void print_longest(const struct order *o, const double *times)
{
	for (unsigned i = 0; i < o->n; i++) {
		double longest = times[i];

		for (unsigned t = 1; t < o->n_threads; t++)
			if (times[(size_t)t * o->n + i] > longest)
				longest = times[(size_t)t * o->n + i];
		printf("%.9f ", longest);
	}
	printf("\n");
}

static void carry_out(const struct order *o)
{
	size_t stride = (o->bytes + PAGE - 1) / PAGE * PAGE;
	unsigned char *arrays = aligned_alloc(PAGE, stride * 2 * o->n_threads);
	double *times = calloc((size_t)o->n_threads * o->n, sizeof *times);

	if (arrays && times) {
		work_together(o, times, arrays, stride);
		print_longest(o, times);
	} else {
		printf("error: no memory\n");
	}
	fflush(stdout);
	free(arrays);
	free(times);
}

int main(int argc, char **argv)
{
	struct order o = {0};
	char line[100], *at;

	if (argc == 3) {
		o.sum = strcmp(argv[1], "sum") == 0;
		o.n_threads = (unsigned)strtoul(argv[2], NULL, 10);
	}
	if (o.n_threads < 1 || o.n_threads > MAX_THREADS ||
		(!o.sum && strcmp(argv[1], "copy") != 0)) {
		fprintf(stderr, "usage: limits copy|sum THREADS\n");
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof line, stdin)) {
		o.bytes = strtoul(line, &at, 10);
		o.warm_ups = (unsigned)strtoul(at, &at, 10);
		o.n = (unsigned)strtoul(at, NULL, 10);
		carry_out(&o);
	}
	return EXIT_SUCCESS;
}
