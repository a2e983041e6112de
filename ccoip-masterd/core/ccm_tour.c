/* SPDX-License-Identifier: MIT
 *
 * Finds a ring (a Hamiltonian cycle) where many links are barred, by two rules that are well known
 * for this problem. Go to the host with the fewest possible neighbours first (Warnsdorff, 1823).
 * Turn back as soon as any free host has no possible neighbour left, not only when the search
 * reaches that host.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* A search that never turns back takes STRAIGHT * n * n looks at links. */
#define STRAIGHT 4u

struct paths {
	int in, out, any; /* any: hosts with a possible link in at least one direction */
};

struct tour {
	const uint8_t *barred;
	uint32_t n;
	uint64_t work, work_max; /* looks at links */
	uint32_t *sel;           /* chosen, by position */
	/* For each free host, the number of possible links. in: from other free hosts and from the
	 * end of the path. out: to other free hosts and to the start. */
	struct paths *paths;
	bool *taken;
	int closing; /* free hosts with a link to the start */
};

static int open_path(const struct tour *t, uint32_t from, uint32_t to)
{
	return !t->barred[(size_t)from * t->n + to];
}

/* Moves the end of the path from u to w (sign 1), or back (sign -1). Updates the paths of the free
 * hosts. */
static void move_end(struct tour *t, uint32_t u, uint32_t w, int sign)
{
	bool u_starts = u == t->sel[0];
	uint32_t v;

	for (v = 0; v < t->n; v++) {
		int from_u = open_path(t, u, v), to_u = u_starts && open_path(t, v, u);
		int from_w = open_path(t, w, v), to_w = open_path(t, v, w);

		if (t->taken[v])
			continue;
		t->paths[v].in -= sign * from_u;
		t->paths[v].out -= sign * to_w;
		t->paths[v].any -= sign * ((from_u | to_u) - to_u + (from_w | to_w) - from_w);
	}
	t->closing -= sign * open_path(t, w, t->sel[0]);
	t->work += t->n;
}

/* Is no ring possible that begins with the d chosen hosts? */
static bool is_hopeless(struct tour *t, uint32_t d)
{
	const struct paths *x;
	uint32_t v;

	t->work += t->n;
	if (d == t->n)
		return !open_path(t, t->sel[d - 1], t->sel[0]);
	if (t->closing == 0)
		return true;
	for (v = 0; v < t->n; v++) {
		x = &t->paths[v];
		if (!t->taken[v] && (x->in == 0 || x->out == 0 || x->any < 2))
			return true;
	}
	return false;
}

static bool comes_before(const struct tour *t, uint32_t v, uint32_t than)
{
	if (than == t->n)
		return true;
	return t->paths[v].any < t->paths[than].any ||
	       (v < than && t->paths[v].any == t->paths[than].any);
}

/* Returns the free host after `last` in the order in which free hosts are tried; the first one if
 * `last` is n. Returns n if there is none. */
static uint32_t next_host(struct tour *t, uint32_t from, uint32_t last)
{
	uint32_t v, best = t->n;

	for (v = 0; v < t->n; v++) {
		if (t->taken[v] || v == last || !open_path(t, from, v))
			continue;
		if (last != t->n && comes_before(t, v, last))
			continue;
		if (comes_before(t, v, best))
			best = v;
	}
	t->work += t->n;
	return best;
}

static void count_paths(struct tour *t)
{
	uint32_t u, v;

	for (u = 0; u < t->n; u++) {
		for (v = 0; v < t->n; v++) {
			if (u == v)
				continue;
			t->paths[u].in += open_path(t, v, u);
			t->paths[u].out += open_path(t, u, v);
			t->paths[u].any += open_path(t, u, v) | open_path(t, v, u);
		}
	}
	t->work += (uint64_t)t->n * t->n;
}

static bool run(struct tour *t)
{
	uint32_t d = 1, last = t->n, w;

	while (t->work < t->work_max) {
		w = d < t->n ? next_host(t, t->sel[d - 1], last) : t->n;
		if (w != t->n) {
			t->taken[w] = true;
			move_end(t, t->sel[d - 1], w, 1);
			t->sel[d++] = w;
			last = t->n;
			if (!is_hopeless(t, d)) {
				if (d == t->n)
					return true;
				continue;
			}
		}
		if (--d == 0)
			return false;
		last = t->sel[d];
		move_end(t, t->sel[d - 1], last, -1);
		t->taken[last] = false;
	}
	return false;
}

static bool find(struct tour *t)
{
	uint32_t i, first = 0;

	count_paths(t);
	for (i = 0; i < t->n; i++)
		if (comes_before(t, i, first))
			first = i;
	t->sel[0] = first;
	t->taken[first] = true;
	t->closing = t->paths[first].in;
	return !is_hopeless(t, 1) && run(t);
}

bool ccm_tour_find(const uint8_t *barred, uint32_t n, uint32_t *work, uint32_t *ret)
{
	struct tour t = {.barred = barred, .n = n, .work_max = *work};
	uint32_t i, k;
	bool found;

	t.sel = cc_must_zalloc(n, sizeof *t.sel);
	t.paths = cc_must_zalloc(n, sizeof *t.paths);
	t.taken = cc_must_zalloc(n, sizeof *t.taken);
	found = find(&t);
	for (i = 0; found && t.sel[i] != 0; i++)
		;
	for (k = 0; found && k < n; k++)
		ret[k] = t.sel[(i + k) % n];
	*work -= t.work < *work ? (uint32_t)t.work : *work;
	free(t.sel);
	free(t.paths);
	free(t.taken);
	return found;
}

bool ccm_tour_is_worth(uint32_t n, uint32_t work)
{
	return STRAIGHT * (uint64_t)n * n <= work;
}
