/* SPDX-License-Identifier: MIT
 *
 * usage: run [--seed N | --seeds A-B] [--jobs J] [--trace] [--expect-failure] [--scale N,N,...]
 *
 * Without arguments: the seeds that `make check` runs. A seed that fails is printed with the
 * command that replays it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_DEFAULT 1000
#else
#define SEEDS_DEFAULT 8000
#endif
#define FAILURES_MAX 50 /* printed and then given up */

struct totals {
	uint64_t seeds, failed, events, reductions, retries, kills, reconnects, agent_deaths,
		attaches, doubts, master_deaths, resumes;
};

struct options {
	unsigned long from, to;
	unsigned jobs;
	bool trace, expect_failure;
	const char *scale;
};

static void add(struct totals *t, const struct sim *s, bool ok)
{
	t->seeds++;
	t->failed += !ok;
	t->events += s->events;
	t->reductions += s->reductions;
	t->retries += s->retries;
	t->kills += s->kills;
	t->reconnects += s->reconnects;
	t->agent_deaths += s->agent_deaths;
	t->attaches += s->attaches;
	t->doubts += s->doubts;
	t->master_deaths += s->master_deaths;
	t->resumes += s->resumes;
}

static void run_job(const struct options *o, unsigned job, struct totals *t)
{
	static struct sim s;
	unsigned long seed;

	for (seed = o->from + job; seed <= o->to; seed += o->jobs) {
		add(t, &s, sim_world_run(&s, seed, o->trace));
		fflush(stdout);
		if (t->failed >= (o->expect_failure ? 1 : FAILURES_MAX))
			return;
	}
}

/* One process per job, totals in shared memory. */
static int run_jobs(const struct options *o, struct totals *all)
{
	size_t size = o->jobs * sizeof(struct totals);
	struct totals *t;
	int status, crashed = 0;
	unsigned i;

	/* cppcheck-suppress invalidFunctionArg ; it is no file that is mapped */
	t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		return -1;
	fflush(stdout);
	for (i = 1; i < o->jobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (pid == 0) {
			run_job(o, i, &t[i]);
			fflush(stdout);
			_exit(0);
		}
	}
	run_job(o, 0, &t[0]);
	while (wait(&status) > 0)
		crashed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	for (i = 0; i < o->jobs; i++) {
		const uint64_t *from = (const uint64_t *)&t[i];
		uint64_t *to = (uint64_t *)all;
		size_t k;

		for (k = 0; k < sizeof *t / sizeof *from; k++)
			to[k] += from[k];
	}
	munmap(t, o->jobs * sizeof *t);
	return crashed;
}

static int usage(void)
{
	fprintf(stderr, "usage: run [--seed N | --seeds A-B] [--jobs J] [--trace] "
			"[--expect-failure] [--scale N,N,...]\n");
	return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'}, {"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'}, {"expect-failure", no_argument, NULL, 'f'},
		{"scale", required_argument, NULL, 'c'}, {0}};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't') {
			o->trace = true;
		} else if (c == 'f') {
			o->expect_failure = true;
		} else if (c == 's') {
			o->from = o->to = strtoul(optarg, NULL, 10);
		} else if (c == 'r') {
			o->from = strtoul(optarg, &end, 10);
			o->to = *end == '-' ? strtoul(end + 1, NULL, 10) : o->from;
		} else if (c == 'j') {
			o->jobs = (unsigned)strtoul(optarg, NULL, 10);
		} else if (c == 'c') {
			o->scale = optarg;
		} else {
			return -1;
		}
	}
	return o->jobs < 1 || o->jobs > 64 || o->trace > (o->from == o->to) ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct options o = {.from = 1, .to = SEEDS_DEFAULT, .jobs = 2};
	struct totals t = {0};
	int crashed;

	if (parse(argc, argv, &o) < 0)
		return usage();
	if (o.scale)
		return sim_scale(o.scale) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	crashed = run_jobs(&o, &t);
	if (crashed != 0) {
		printf("a job of the simulator crashed\n");
		return EXIT_FAILURE;
	}
	printf("%lu events, %lu reductions, %lu tried again; %lu processes killed, %lu reconnects; "
	       "%lu agents died, %lu attaches, %lu operations in doubt; %lu masters died, "
	       "%lu resumptions\n",
		(unsigned long)t.events, (unsigned long)t.reductions, (unsigned long)t.retries,
		(unsigned long)t.kills, (unsigned long)t.reconnects, (unsigned long)t.agent_deaths,
		(unsigned long)t.attaches, (unsigned long)t.doubts, (unsigned long)t.master_deaths,
		(unsigned long)t.resumes);
	if (o.expect_failure) {
		printf("%s\n", t.failed ? "1 passed, 0 failed" : "0 passed, 1 failed");
		return t.failed ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	printf("%lu passed, %lu failed\n", (unsigned long)(t.seeds - t.failed),
		(unsigned long)t.failed);
	return t.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
