/* SPDX-License-Identifier: MIT
 *
 * usage: run [--seed N | --seeds A-B] [--jobs J] [--trace] [--expect-failure] [--scale N,N,...]
 *
 * Without arguments: runs the seeds of `make check`. For a seed that fails, it prints the command
 * that replays the seed. --seed prints all events if the seed fails, --trace also if it passes.
 * Invalid arguments: exit status 64.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_DEFAULT 1000
#else
#define SEEDS_DEFAULT 8000
#endif
#define FAILURES_MAX   50  /* failed seeds after which it stops */
#define EXCUSED_ONE_IN 500 /* at most one seed in this number may be exempt */

struct totals {
	uint64_t seeds, failed, events, reductions, retries, kills, reconnects, agent_deaths,
		attaches, doubts, aheads, rolled_back, routed_ops, master_deaths, resumes, voters,
		two_masters, syncs, served, torn, kicked, rests, witnesses, overruled, outdated,
		seen[SIM_SEEN], seeds_with[SIM_SEEN];
};

struct options {
	const char *program; /* run or planted_N */
	unsigned long from, to;
	unsigned jobs;
	bool single; /* --seed */
	bool trace, expect_failure;
	uint32_t sizes[SIM_SIZES];
	unsigned n_sizes;
};

static void add(struct totals *t, const struct sim *s, bool ok)
{
	unsigned i;

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
	t->aheads += s->aheads;
	t->rolled_back += s->rolled_back;
	t->routed_ops += s->routed_ops;
	t->master_deaths += s->master_deaths;
	t->resumes += s->resumes;
	t->voters += s->voters;
	t->two_masters += s->two_masters;
	t->syncs += s->syncs;
	t->served += s->served;
	t->torn += s->torn;
	t->kicked += s->kicked;
	t->rests += s->rests;
	t->witnesses += s->witnesses;
	t->overruled += s->overruled > 0;
	t->outdated += s->outdated;
	for (i = 0; i < SIM_SEEN; i++) {
		t->seen[i] += s->seen[i];
		t->seeds_with[i] += s->seen[i] > 0;
	}
}

static void run_job(const struct options *o, unsigned job, struct totals *t)
{
	bool again = o->single && !o->trace && !o->expect_failure, ok;
	static struct sim s;
	unsigned long seed;

	for (seed = o->from + job; seed <= o->to; seed += o->jobs) {
		ok = sim_view_run(&s, seed, o->trace, again ? NULL : o->program);
		add(t, &s, ok);
		if (!ok && again)
			(void)sim_view_run(&s, seed, true, o->program);
		fflush(stdout);
		if (t->failed >= (o->expect_failure ? 1 : FAILURES_MAX))
			return;
	}
}

/* Runs one process per job, with totals in shared memory. Returns the number of crashed jobs, or
 * -1. */
static int run_jobs(const struct options *o, struct totals *all)
{
	size_t size = o->jobs * sizeof(struct totals);
	struct totals *t;
	int status, crashed = 0;
	unsigned i;

	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
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
	return EX_USAGE;
}

/* Reads a whole number at *text that is followed by `end`. Moves *text behind both. Returns false
 * if there is no such number. */
static bool number(const char **text, char end, unsigned long *ret)
{
	char *rest;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*ret = strtoul(*text, &rest, 10);
	if (errno || *rest != end || *ret > ULONG_MAX / 2)
		return false;
	*text = end ? rest + 1 : rest;
	return true;
}

static bool parse_sizes(struct options *o, const char *arg)
{
	unsigned long n;
	bool more;

	for (o->n_sizes = 0; o->n_sizes < SIM_SIZES; o->n_sizes++) {
		more = strchr(arg, ',') != NULL;
		if (!number(&arg, more ? ',' : '\0', &n) || n < 3 || n > SIM_SIZE_MAX)
			return false;
		o->sizes[o->n_sizes] = (uint32_t)n;
		if (!more) {
			o->n_sizes++;
			return true;
		}
	}
	return false;
}

static bool parse_option(struct options *o, int c, const char *arg)
{
	unsigned long n;

	switch (c) {
	case 't':
		o->trace = true;
		return true;
	case 'f':
		o->expect_failure = true;
		return true;
	case 's':
		o->single = true;
		if (!number(&arg, '\0', &o->from))
			return false;
		o->to = o->from;
		return true;
	case 'r':
		o->single = false;
		return number(&arg, '-', &o->from) && number(&arg, '\0', &o->to) &&
		       o->from <= o->to;
	case 'j':
		if (!number(&arg, '\0', &n) || n < 1 || n > 64)
			return false;
		o->jobs = (unsigned)n;
		return true;
	case 'c':
		return parse_sizes(o, arg);
	default:
		return false;
	}
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'}, {"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'}, {"expect-failure", no_argument, NULL, 'f'},
		{"scale", required_argument, NULL, 'c'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!parse_option(o, c, optarg))
			return -1;
	return optind < argc || (o->trace && o->from != o->to) ? -1 : 0;
}

static void print_seen(const struct totals *t)
{
	static const char *const names[SIM_SEEN] = {"links lost on one side",
		"pairs whose links break in each operation", "processes that died at once",
		"calls that others did not make", "waits for any operation",
		"operations with odd parameters", "calls that failed before submission",
		"parts that failed by themselves", "newcomers admitted",
		"parts of quantized operations", "faults of hosts with some of their links",
		"routes kept by a new master", "measurements", "links of busy hosts",
		"optimizations", "optimizations that failed",
		"parts of operations over several rings", "reports of what links carry",
		"links that have become slow", "of these measured again",
		"of these avoided by all rings"};
	unsigned i;

	for (i = 0; i < SIM_SEEN; i++)
		printf("%s%s: %lu in %lu seeds", i ? "; " : "", names[i], (unsigned long)t->seen[i],
			(unsigned long)t->seeds_with[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct options o = {.program = argv[0], .from = 1, .to = SEEDS_DEFAULT, .jobs = 2};
	struct totals t = {0};
	int crashed;

	if (parse(argc, argv, &o) < 0)
		return usage();
	if (o.n_sizes)
		return sim_scale(o.sizes, o.n_sizes) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	crashed = run_jobs(&o, &t);
	if (crashed != 0) {
		printf("a job of the simulator crashed\n");
		return EXIT_FAILURE;
	}
	printf("%lu events, %lu reductions, %lu repeated; %lu processes killed, %lu reconnects; "
	       "%lu agents died, %lu attaches, %lu operations in doubt; %lu masters died, "
	       "%lu resumptions; %lu voters left while the master was unreachable; %lu times "
	       "the master lost all hosts but one; %lu masters died when only some agents had "
	       "received a success\n",
		(unsigned long)t.events, (unsigned long)t.reductions, (unsigned long)t.retries,
		(unsigned long)t.kills, (unsigned long)t.reconnects, (unsigned long)t.agent_deaths,
		(unsigned long)t.attaches, (unsigned long)t.doubts, (unsigned long)t.master_deaths,
		(unsigned long)t.resumes, (unsigned long)t.voters, (unsigned long)t.rests,
		(unsigned long)t.witnesses);
	printf("%lu parts of operations began before the votes, %lu were rolled back; %lu used "
	       "the links between all hosts\n",
		(unsigned long)t.aheads, (unsigned long)t.rolled_back, (unsigned long)t.routed_ops);
	printf("%lu states synchronized, %lu peers fetched what they lacked, %lu had torn state, "
	       "%lu were kicked\n",
		(unsigned long)t.syncs, (unsigned long)t.served, (unsigned long)t.torn,
		(unsigned long)t.kicked);
	print_seen(&t);
	printf("%lu of %lu seeds need not have one outcome: two masters of one run were at work; "
	       "%lu need not have one lineage: a master could not know which peers had gone on; "
	       "%lu need not have the last revision: a master read a journal without the entries "
	       "of an older master, a younger master went on beside it, or it goes on with a "
	       "peer that an older master had given up\n",
		(unsigned long)t.two_masters, (unsigned long)t.seeds, (unsigned long)t.overruled,
		(unsigned long)t.outdated);
	if (o.expect_failure) {
		printf("%s\n", t.failed ? "1 passed, 0 failed" : "0 passed, 1 failed");
		return t.failed ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (t.seeds >= EXCUSED_ONE_IN && (t.two_masters * EXCUSED_ONE_IN > t.seeds ||
						 t.overruled * EXCUSED_ONE_IN > t.seeds ||
						 t.outdated * EXCUSED_ONE_IN > t.seeds)) {
		printf("too many seeds are exempt: at most one in %d may be\n", EXCUSED_ONE_IN);
		t.failed++;
	}
	printf("%lu passed, %lu failed\n", (unsigned long)(t.seeds - t.failed),
		(unsigned long)t.failed);
	return t.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
