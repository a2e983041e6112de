/* SPDX-License-Identifier: MIT */
#include "common/cc_detect.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

/* z(1 - 10^-8) = 5.612, in thousandths */
#define Z_MILLI 5612u

/* Nine minutes. The sum of 32 squares of this value fits into 64 bits. */
#define GAP_MAX_US (UINT32_C(1) << 29)

void cc_detect_init(struct cc_detect *d, uint32_t beat_ms, uint32_t max_ms, uint64_t now_ns)
{
	uint64_t min_ms = CC_DETECT_MIN_BEATS * (uint64_t)beat_ms;

	if (min_ms < CC_DETECT_MIN_MS)
		min_ms = CC_DETECT_MIN_MS;
	if (min_ms > max_ms)
		min_ms = max_ms;
	*d = (struct cc_detect){
		.min_ns = min_ms * NS_PER_MS,
		.max_ns = max_ms * NS_PER_MS,
		.short_ns = beat_ms * NS_PER_MS / 2,
		.heard_ns = now_ns,
	};
}

static void add_gap(struct cc_detect *d, uint64_t gap_ns)
{
	uint64_t us = (gap_ns < d->max_ns ? gap_ns : d->max_ns) / NS_PER_US;
	uint32_t gap = us < GAP_MAX_US ? (uint32_t)us : GAP_MAX_US;

	d->longest_us -= d->longest_us / CC_DETECT_FADE;
	if (gap > d->longest_us)
		d->longest_us = gap;
	d->gap_us[d->next] = gap;
	d->next = (d->next + 1) % CC_DETECT_WINDOW;
	if (d->n < CC_DETECT_WINDOW)
		d->n++;
}

void cc_detect_heard(struct cc_detect *d, uint64_t now_ns)
{
	uint64_t gap = cc_detect_silence(d, now_ns);

	if (!d->paused && now_ns >= d->heard_ns && gap >= d->short_ns)
		add_gap(d, gap);
	d->paused = false;
	d->heard_ns = now_ns;
}

void cc_detect_pause(struct cc_detect *d, uint64_t now_ns)
{
	d->paused = true;
	d->heard_ns = now_ns;
}

bool cc_detect_blind(const struct cc_detect *d, uint64_t stood_still_ns)
{
	return stood_still_ns > d->min_ns / 2;
}

/* Returns the largest integer whose square is at most v. */
static uint64_t square_root(uint64_t v)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 62; bit > 0; bit >>= 2) {
		if (v >= root + bit) {
			v -= root + bit;
			root = root / 2 + bit;
		} else {
			root /= 2;
		}
	}
	return root;
}

static uint64_t bound_without_path(const struct cc_detect *d)
{
	uint64_t sum = 0, squares = 0, mean, deviation, bound;

	if (d->n < CC_DETECT_SAMPLES_MIN)
		return d->max_ns;
	for (uint32_t i = 0; i < d->n; i++)
		sum += d->gap_us[i];
	mean = sum / d->n;
	for (uint32_t i = 0; i < d->n; i++) {
		uint64_t off = d->gap_us[i] > mean ? d->gap_us[i] - mean : mean - d->gap_us[i];

		squares += off * off;
	}
	deviation = square_root(squares / d->n);
	if (deviation < mean / 8)
		deviation = mean / 8;
	bound = mean + deviation * Z_MILLI / 1000;
	if (bound < d->longest_us + d->longest_us / 4)
		bound = d->longest_us + d->longest_us / 4;
	bound *= NS_PER_US;
	if (bound < d->min_ns)
		return d->min_ns;
	return bound < d->max_ns ? bound : d->max_ns;
}

uint64_t cc_detect_bound(const struct cc_detect *d)
{
	return bound_without_path(d) + d->path_ns;
}

void cc_detect_path(struct cc_detect *d, uint32_t path_ms)
{
	uint64_t ns = path_ms * NS_PER_MS;

	d->path_ns = ns >= d->path_ns ? ns : d->path_ns - (d->path_ns - ns + 7) / 8;
}

uint64_t cc_detect_silence(const struct cc_detect *d, uint64_t now_ns)
{
	return now_ns > d->heard_ns ? now_ns - d->heard_ns : 0;
}

bool cc_detect_gone(struct cc_detect *d, uint64_t now_ns)
{
	if (now_ns < d->heard_ns)
		cc_detect_pause(d, now_ns);
	if (now_ns - d->heard_ns <= d->min_ns)
		return false;
	return now_ns - d->heard_ns > cc_detect_bound(d);
}
