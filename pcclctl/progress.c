/* SPDX-License-Identifier: MIT */
#include "pcclctl/progress.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "pcclctl/client.h"
#include "pcclctl/print.h"

#define EVERY_MS 100u
#define WIDTH    24u

/* Finds the number in the first row of the answer. */
static bool find(const struct wa_reply *r, const char *name, uint64_t *ret)
{
	const struct wa_table *t = r->tables;

	if (r->n_tables != 1 || t->n_rows != 1)
		return false;
	for (uint32_t i = 0; i < t->n_cols; i++) {
		if (strcmp(t->col[i].name, name) != 0 || t->col[i].kind == WA_KIND_TEXT)
			continue;
		*ret = t->cells[i].number;
		return true;
	}
	return false;
}

bool ctl_progress_line(const struct wa_reply *r, char buf[CTL_PROGRESS_SIZE])
{
	uint64_t round, rounds, left;
	char bar[WIDTH + 1], time[PRINT_VALUE_SIZE];
	uint32_t full;

	if (!find(r, "round", &round) || !find(r, "rounds", &rounds) || !find(r, "left", &left) ||
		round == 0 || round > rounds)
		return false;
	full = (uint32_t)((round - 1) * WIDTH / rounds);
	memset(bar, '.', WIDTH);
	memset(bar, '#', full);
	bar[WIDTH] = '\0';
	(void)snprintf(buf, CTL_PROGRESS_SIZE,
		"measuring links [%s] round %" PRIu64 " of %" PRIu64 ", about %s left", bar, round,
		rounds, print_duration(left, time));
	return true;
}

/* Draws the line. Returns false if there is nothing to draw. */
static bool draw(const struct ctl_target *t, FILE *f)
{
	struct wa_request q = {.verb = WA_PROGRESS};
	char line[CTL_PROGRESS_SIZE], why[CTL_WHY_SIZE];
	struct wa_reply r;
	bool ok;

	if (ctl_ask(t, &q, &r, why) != 0)
		return false;
	ok = ctl_progress_line(&r, line);
	wa_reply_clear(&r);
	if (ok)
		fprintf(f, "\r%s\033[K", line);
	(void)fflush(f);
	return ok;
}

void ctl_progress_show(const struct ctl_target *t, FILE *f, uint32_t wait_ms)
{
	const struct timespec pause = {.tv_nsec = EVERY_MS * 1000000L};
	bool seen = false;
	uint32_t ms = 0;

	for (;;) {
		if (draw(t, f))
			seen = true;
		else if (seen || ms >= wait_ms)
			break;
		(void)nanosleep(&pause, NULL);
		ms += EVERY_MS;
	}
	if (seen)
		fputs("\r\033[K", f);
}
