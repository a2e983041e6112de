/* SPDX-License-Identifier: MIT */
#include "pccl-bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pccl-bench/procs.h"
#include "pccl-bench/result.h"
#include "pccl-bench/size.h"
#include "pccl-bench/usage.h"

#define LOOK_MS  500   /* time between two checks for progress */
#define LEAVE_MS 10000 /* limit for leaving the run, and for the end of a process */

struct bench {
	const struct bch_options *o;
	struct bch_procs procs;
	struct bch_result result;
	int signal_fd;
	int status; /* exit status once it is decided, otherwise 0 */
	char title[BCH_TITLE_SIZE];
	uint64_t agents_cpu_ns; /* as of the last sample */
};

/* ---- waiting ---- */

static int open_signals(struct bench *b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* the run must end properly even if the reader of the results
				   * goes away */
	b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return b->signal_fd < 0 ? CC_ERR_IO : 0;
}

/* Reads pending signals. */
static void take_signals(struct bench *b)
{
	struct signalfd_siginfo info;

	while (read(b->signal_fd, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGCHLD && !b->status)
			b->status = 128 + (int)info.ssi_signo;
	bch_procs_reap(&b->procs);
}

/* Waits until something has happened, but at most LOOK_MS. Returns whether a phase has ended. */
static bool look(struct bench *b)
{
	struct pollfd p[] = {{.fd = b->signal_fd, .events = POLLIN},
		{.fd = b->procs.board->phase_fd, .events = POLLIN}};
	uint64_t n;

	poll(p, 2, LOOK_MS);
	take_signals(b);
	return read(b->procs.board->phase_fd, &n, sizeof n) == sizeof n;
}

static void complain_of_standstill(struct bench *b)
{
	fprintf(stderr, "pccl-bench: no progress for %" PRIu32 " s (--timeout)\n", b->o->timeout_s);
	for (uint32_t i = 0; i < b->o->peers; i++)
		fprintf(stderr, "  peer %" PRIu32 " is %s\n", i,
			atomic_load(&b->procs.board->slots[i].doing));
	b->status = EX_UNAVAILABLE;
}

static bool somebody_ended(const struct bench *b)
{
	for (uint32_t i = 0; i < b->procs.n_children; i++)
		if (b->procs.children[i].pid == 0)
			return true;
	return false;
}

/* Waits until the phase ends, and returns 0. If something else ends the run, returns the exit
 * status. */
static int await_phase(struct bench *b)
{
	uint64_t limit = (uint64_t)b->o->timeout_s * 1000000000u, since = cc_now_ns(), now;
	uint64_t seen = bch_board_progress(b->procs.board), progress;

	while (!look(b)) {
		if (b->status)
			return b->status;
		if (somebody_ended(b)) {
			if (bch_procs_complain(&b->procs) == 0)
				fputs("pccl-bench: a process has ended too early\n", stderr);
			return b->status = EX_UNAVAILABLE;
		}
		now = cc_now_ns();
		progress = bch_board_progress(b->procs.board);
		if (progress != seen)
			since = now;
		seen = progress;
		if (now - since > limit) {
			complain_of_standstill(b);
			return b->status;
		}
	}
	return b->status;
}

/* Waits until no process of this role is left. Returns whether all have ended in time. */
static bool await_end(struct bench *b, enum bch_role role)
{
	uint64_t end = cc_now_ns() + LEAVE_MS * 1000000ull;

	while (bch_procs_left(&b->procs, role) > 0 && cc_now_ns() < end)
		look(b);
	return bch_procs_left(&b->procs, role) == 0;
}

static void stop(struct bench *b, enum bch_role role, int signal)
{
	bch_procs_kill(&b->procs, role, signal);
	if (!await_end(b, role)) {
		bch_procs_kill(&b->procs, role, SIGKILL);
		await_end(b, role);
	}
}

/* ---- measuring ---- */

static uint64_t agents_cpu(const struct bch_procs *c)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < c->n_children; i++)
		if (c->children[i].role == BCH_AGENT)
			ns += bch_usage_cpu_ns(c->children[i].pid);
	return ns;
}

static uint64_t largest(const struct bch_procs *c, enum bch_role role)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < c->n_children; i++) {
		uint64_t n = c->children[i].role == role ? bch_usage_memory(c->children[i].pid) : 0;

		most = n > most ? n : most;
	}
	return most;
}

/* Fills a row. To be called when all peers have finished a size and wait. */
static void take_row(struct bench *b, uint64_t bytes, struct bch_row *row)
{
	struct bch_board *board = b->procs.board;
	uint64_t lanes = b->o->async ? b->o->async : 1;
	uint64_t cpu_ns = agents_cpu(&b->procs) - b->agents_cpu_ns;
	size_t esize = bch_type_size(b->o->kind.type), good;

	*row = (struct bch_row){.count = bytes / esize, .bytes = bytes / esize * esize};
	for (uint32_t i = 0; i < board->n_peers; i++) {
		cpu_ns += board->slots[i].cpu_ns;
		row->wrong += board->slots[i].wrong;
		row->failed += board->slots[i].failed;
		if (!(board->slots[i].error <= row->error))
			row->error = board->slots[i].error;
	}
	row->cpu_s_per_gb =
		(double)cpu_ns / ((double)row->bytes * (double)lanes * b->o->iterations);
	good = bch_times_merge(board->times, board->n_peers, board->n_times);
	row->timed = good > 0;
	if (row->timed) {
		bch_times_of(board->times, good, &row->times);
		row->algbw = bch_algbw(row->bytes * lanes, row->times.median);
		row->busbw = bch_busbw(row->algbw, b->o->world_size);
	}
	row->agent_rss = largest(&b->procs, BCH_AGENT);
	row->trainer_rss = largest(&b->procs, BCH_PEER);
}

/* Prints the progress on a terminal, if the results are written somewhere else. */
static void show_progress(const struct bench *b, uint64_t size)
{
	if (!isatty(STDERR_FILENO) || (!b->o->json && isatty(STDOUT_FILENO)))
		return;
	if (size)
		fprintf(stderr, "\r\033[K%" PRIu64 " bytes, %" PRIu32 " of %" PRIu32, size,
			b->result.n_rows + 1,
			(b->o->optimize ? 2 : 1) *
				bch_size_count(b->o->begin, b->o->factor, b->o->end));
	else
		fputs("\r\033[K", stderr);
}

static int measure_all(struct bench *b, bool optimized)
{
	struct bch_result *r = &b->result;

	for (uint64_t s = b->o->begin; s; s = bch_size_next(s, b->o->factor, b->o->end)) {
		show_progress(b, s);
		bch_board_open(b->procs.board);
		if (await_phase(b)) /* warm-up */
			return b->status;
		b->agents_cpu_ns = agents_cpu(&b->procs);
		bch_board_open(b->procs.board);
		if (await_phase(b))
			return b->status;
		take_row(b, s, &r->rows[r->n_rows]);
		r->rows[r->n_rows].optimized = optimized;
		if (!b->o->json)
			bch_print_row(stdout, b->o, &r->rows[r->n_rows]);
		r->n_rows++;
		if (fflush(stdout) != 0) {
			perror("pccl-bench: standard output");
			return b->status = EX_IOERR;
		}
	}
	bch_board_open(b->procs.board);
	return 0;
}

/* The peers are in pcclOptimizeTopology. */
static int optimize(struct bench *b)
{
	uint64_t began = cc_now_ns();

	if (await_phase(b))
		return b->status;
	b->result.optimize_ns = cc_now_ns() - began;
	if (!b->o->json)
		bch_print_optimized(stdout, &b->result);
	return 0;
}

static int measure(struct bench *b)
{
	if (await_phase(b))
		return b->status;
	if (!b->o->json)
		bch_print_heading(stdout, &b->result);
	if (measure_all(b, false) || !b->o->optimize)
		return b->status;
	return optimize(b) ? b->status : measure_all(b, true);
}

/* ---- from beginning to end ---- */

static int start(struct bench *b)
{
	if (bch_procs_start_master(&b->procs) < 0)
		return b->status = EX_OSERR;
	if (b->o->library && !b->o->master.family && await_phase(b))
		return b->status;
	return bch_procs_start_peers(&b->procs) < 0 ? b->status = EX_OSERR : 0;
}

static void leave(struct bench *b)
{
	if (!await_end(b, BCH_PEER) && !b->status)
		fputs("pccl-bench: a peer does not return from pcclDestroyCommunicator and is "
		      "killed\n",
			stderr);
	else if (!b->status && bch_procs_complain(&b->procs) > 0 && !b->o->library)
		b->status =
			EX_UNAVAILABLE; /* with another library a peer may end with any status */
}

/* Prints failed calls that did not end the run, at most one for each peer. */
static void tell_errors(const struct bench *b)
{
	for (uint32_t i = 0; i < b->o->peers; i++)
		if (b->procs.board->slots[i].why[0])
			fprintf(stderr, "pccl-bench: peer %" PRIu32 ": %s\n", i,
				b->procs.board->slots[i].why);
}

static void print(struct bench *b)
{
	if (b->o->json && bch_print_json(stdout, &b->result) < 0) {
		fputs("pccl-bench: no memory\n", stderr);
		b->status = EX_OSERR;
	} else if (!b->o->json) {
		bch_print_ending(stdout, &b->result);
	}
	if (!b->status && bch_errors(&b->result) > 0) {
		tell_errors(b);
		b->status = EX_SOFTWARE;
	}
}

static void run(struct bench *b)
{
	if (start(b) == 0 && measure(b) == 0)
		leave(b);
	show_progress(b, 0);
	if (b->status == EX_UNAVAILABLE)
		bch_procs_print_logs(&b->procs);
	stop(b, BCH_PEER, SIGKILL);
	stop(b, BCH_AGENT, SIGTERM);
	stop(b, BCH_MASTER, b->o->library ? SIGKILL : SIGTERM);
	if (!b->status)
		print(b);
}

int bch_bench(const struct bch_options *o)
{
	struct bench b = {.o = o, .result = {.options = o}};

	b.result.rows =
		calloc((size_t)(o->optimize ? 2 : 1) * bch_size_count(o->begin, o->factor, o->end),
			sizeof *b.result.rows);
	if (!b.result.rows || bch_procs_init(&b.procs, o) < 0) {
		free(b.result.rows);
		return EX_OSERR;
	}
	b.result.hosts = bch_hosts_title(&b.procs.hosts, b.title);
	if (open_signals(&b) < 0)
		b.status = EX_OSERR;
	else
		run(&b);
	bch_procs_clear(&b.procs);
	close(b.signal_fd);
	free(b.result.rows);
	return b.status;
}
