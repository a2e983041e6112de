/* SPDX-License-Identifier: MIT
 *
 * Local search over rings, in three kinds of moves:
 *
 * - Two neighbouring pieces of the ring change places, and keep their directions (the only exchange
 *   of three links without a reversal: Kanellakis and Papadimitriou: Local search for the
 * asymmetric traveling salesman problem, 1980). A piece of one or a few hosts that moves elsewhere
 * is a case of it (Or-opt).
 * - A short piece is reversed (2-opt, limited because the costs of the reversed piece change, too).
 *
 * Links are looked for only among the cheapest ones of each host, and a host is looked at again
 * only after its links have changed (don't-look bits; Johnson and McGeoch 1997). A perturbation
 * replaces four links close to each other (double bridge: Martin, Otto and Felten 1991).
 */
#include "topology/tpl_internal.h"

#define REVERSED_MAX 32u /* hosts in a piece that is reversed */
#define WINDOW       50u /* hosts among which a perturbation changes links */
#define PATIENCE     40u /* perturbations per host until the search begins again at the best ring */

void tpl_search_init(struct tpl_search *s, uint32_t n, uint64_t seed)
{
	uint32_t k = n - 1 < TPL_NEAR ? n - 1 : TPL_NEAR;

	*s = (struct tpl_search){
		.n = n,
		.k = k,
		.near = cc_must_zalloc((size_t)n * k, sizeof *s->near),
		.tour = cc_must_zalloc(n, sizeof *s->tour),
		.pos = cc_must_zalloc(n, sizeof *s->pos),
		.kept = cc_must_zalloc(n, sizeof *s->kept),
		.kept_pos = cc_must_zalloc(n, sizeof *s->kept_pos),
		.best = cc_must_zalloc(n, sizeof *s->best),
		.piece = cc_must_zalloc(n, sizeof *s->piece),
		.queue = cc_must_zalloc(n, sizeof *s->queue),
		.in_queue = cc_must_zalloc(n, sizeof *s->in_queue),
		.random = seed,
	};
}

void tpl_search_clear(struct tpl_search *s)
{
	free(s->near);
	free(s->tour);
	free(s->pos);
	free(s->kept);
	free(s->kept_pos);
	free(s->best);
	free(s->piece);
	free(s->queue);
	free(s->in_queue);
}

void tpl_search_begin(struct tpl_search *s, const struct tpl_costs *c)
{
	s->cost = c->c;
	s->eps = c->eps;
	s->best_cost = INFINITY;
}

/* Inserts host j with the key x into the k lowest ones, which are sorted. */
static void insert_near(
	uint32_t *near, double *key, uint32_t k, uint32_t *n_near, uint32_t j, double x)
{
	uint32_t at;

	if (*n_near == k && x >= key[k - 1])
		return;
	if (*n_near < k)
		(*n_near)++;
	for (at = *n_near - 1; at > 0 && key[at - 1] > x; at--) {
		key[at] = key[at - 1];
		near[at] = near[at - 1];
	}
	key[at] = x;
	near[at] = j;
}

void tpl_search_near(struct tpl_search *s, const struct tpl_ap *a, uint32_t i)
{
	uint32_t lowest[TPL_NEAR] = {0}, *near = s->near + (size_t)i * s->k, n_lowest = 0,
		 n_near = 0;
	double key[TPL_NEAR] = {0};

	/* The first host is random: if many costs are equal, hosts get different candidates. */
	for (uint32_t q = 0, j = tpl_below(&s->random, s->n); q < s->n;
		q++, j = j + 1 < s->n ? j + 1 : 0)
		if (j != i)
			insert_near(lowest, key, s->k, &n_lowest, j,
				s->cost[(size_t)i * s->n + j] - a->v[j]);
	for (uint32_t q = 0; q < n_lowest; q++)
		insert_near(
			near, key, s->k, &n_near, lowest[q], s->cost[(size_t)i * s->n + lowest[q]]);
}

/* ---- the ring as an array ---- */

static inline double link_cost(const struct tpl_search *s, uint32_t a, uint32_t b)
{
	return s->cost[(size_t)a * s->n + b];
}

/* Returns the position that is `ahead` positions after `at`; ahead <= n. */
static inline uint32_t after(const struct tpl_search *s, uint32_t at, uint32_t ahead)
{
	at += ahead;
	return at >= s->n ? at - s->n : at;
}

static inline uint32_t next_of(const struct tpl_search *s, uint32_t a)
{
	return s->tour[after(s, s->pos[a], 1)];
}

static inline uint32_t prev_of(const struct tpl_search *s, uint32_t a)
{
	return s->tour[after(s, s->pos[a], s->n - 1)];
}

/* Returns how many positions b comes after a. */
static inline uint32_t distance(const struct tpl_search *s, uint32_t a, uint32_t b)
{
	return s->pos[b] >= s->pos[a] ? s->pos[b] - s->pos[a] : s->pos[b] + s->n - s->pos[a];
}

static inline void put(struct tpl_search *s, uint32_t at, uint32_t a)
{
	s->tour[at] = a;
	s->pos[a] = at;
}

static void look_at(struct tpl_search *s, uint32_t a)
{
	if (s->in_queue[a])
		return;
	s->in_queue[a] = true;
	s->queue[after(s, s->head, s->queued)] = a;
	s->queued++;
}

/* Exchanges the piece of x hosts that begins at position `at` with the y hosts after it. */
static void exchange(struct tpl_search *s, uint32_t at, uint32_t x, uint32_t y)
{
	uint32_t rest = s->n - x - y;

	/* To exchange two of three pieces is the same for a ring, whichever two these are. */
	if (x > y && x > rest) {
		at = after(s, at, x);
		x = y;
		y = rest;
	} else if (y > rest) {
		uint32_t old = x;

		at = after(s, at, x + y);
		x = rest;
		y = old;
	}
	for (uint32_t i = 0, p = at; i < x; i++, p = after(s, p, 1))
		s->piece[i] = s->tour[p];
	for (uint32_t i = 0, p = after(s, at, x), q = at; i < y;
		i++, p = after(s, p, 1), q = after(s, q, 1))
		put(s, q, s->tour[p]);
	for (uint32_t i = 0, q = after(s, at, y); i < x; i++, q = after(s, q, 1))
		put(s, q, s->piece[i]);
}

static void reverse(struct tpl_search *s, uint32_t at, uint32_t len)
{
	uint32_t p = at, q = after(s, at, len - 1);

	for (uint32_t i = 0; i < len / 2; i++) {
		uint32_t a = s->tour[p], b = s->tour[q];

		put(s, p, b);
		put(s, q, a);
		p = after(s, p, 1);
		q = after(s, q, s->n - 1);
	}
}

/* ---- moves ---- */

/* Looks for three links to replace: host a gets the next host b, the host before b the next host
 * d, and the host before d the host that followed a. The piece between these two comes after the
 * piece from b. The sums of the first two replacements must be gains, too: of each improving
 * exchange, one of the three hosts where it can begin fulfils this (Lin and Kernighan 1973). */
static bool try_exchange(struct tpl_search *s, uint32_t a, uint32_t b, double gain)
{
	uint32_t old = next_of(s, a), e = prev_of(s, b), at = distance(s, a, b);
	const uint32_t *near = s->near + (size_t)e * s->k;
	double open = gain + link_cost(s, e, b);

	for (uint32_t i = 0; i < s->k; i++) {
		uint32_t d = near[i], to = distance(s, a, d), f;

		if (open - link_cost(s, e, d) <= s->eps)
			break;
		if (to == 0)
			to = s->n;
		if (to <= at)
			continue;
		f = prev_of(s, d);
		if (open - link_cost(s, e, d) + link_cost(s, f, d) - link_cost(s, f, old) <= s->eps)
			continue;
		s->now -= open - link_cost(s, e, d) + link_cost(s, f, d) - link_cost(s, f, old);
		exchange(s, s->pos[old], at - 1, to - at);
		look_at(s, a);
		look_at(s, e);
		look_at(s, f);
		look_at(s, b);
		look_at(s, d);
		look_at(s, old);
		return true;
	}
	return false;
}

/* Reverses the piece from the host after a to host b, if this is a gain. */
static bool try_reverse(struct tpl_search *s, uint32_t a, uint32_t b, double gain)
{
	uint32_t len = distance(s, a, b), old = next_of(s, a), end = next_of(s, b);
	uint32_t p = s->pos[old], from = old;

	if (len > REVERSED_MAX || len + 2 > s->n)
		return false;
	gain += link_cost(s, b, end) - link_cost(s, old, end);
	for (uint32_t i = 1; i < len; i++) {
		uint32_t to;

		p = after(s, p, 1);
		to = s->tour[p];
		gain += link_cost(s, from, to) - link_cost(s, to, from);
		from = to;
	}
	if (gain <= s->eps)
		return false;
	s->now -= gain;
	reverse(s, s->pos[old], len);
	for (uint32_t i = 0, q = s->pos[a]; i < len + 2; i++, q = after(s, q, 1))
		look_at(s, s->tour[q]);
	return true;
}

static bool improve_host(struct tpl_search *s, uint32_t a)
{
	const uint32_t *near = s->near + (size_t)a * s->k;
	double old = link_cost(s, a, next_of(s, a));

	for (uint32_t i = 0; i < s->k; i++) {
		uint32_t b = near[i];
		double gain = old - link_cost(s, a, b);

		if (gain <= s->eps)
			break;
		if (b == next_of(s, a))
			continue;
		if (try_exchange(s, a, b, gain) || try_reverse(s, a, b, gain))
			return true;
	}
	return false;
}

static void keep_best(struct tpl_search *s)
{
	s->now = tpl_ring_cost(
		s->n, s->cost, s->tour); /* without the rounding of many differences */
	if (s->now >= s->best_cost)
		return;
	s->best_cost = s->now;
	memcpy(s->best, s->tour, s->n * sizeof *s->best);
	s->idle = 0;
}

bool tpl_search_improve(struct tpl_search *s, uint32_t moves)
{
	while (s->queued > 0 && moves > 0) {
		uint32_t a = s->queue[s->head];

		s->head = after(s, s->head, 1);
		s->queued--;
		s->in_queue[a] = false;
		if (!improve_host(s, a))
			continue;
		look_at(s, a);
		moves--;
	}
	if (s->now < s->best_cost - s->eps)
		keep_best(s);
	return s->queued == 0;
}

/* ---- the search ---- */

/* Keeps the ring as the one to which a perturbation that fails returns. */
static void keep(struct tpl_search *s)
{
	memcpy(s->kept, s->tour, s->n * sizeof *s->tour);
	memcpy(s->kept_pos, s->pos, s->n * sizeof *s->pos);
}

static void restore(struct tpl_search *s)
{
	memcpy(s->tour, s->kept, s->n * sizeof *s->tour);
	memcpy(s->pos, s->kept_pos, s->n * sizeof *s->pos);
}

void tpl_search_set(struct tpl_search *s, const uint32_t *ring)
{
	for (uint32_t i = 0; i < s->n; i++)
		put(s, i, ring[i]);
	for (uint32_t i = 0; i < s->n; i++)
		look_at(s, i);
	s->idle = 0;
	keep_best(s);
}

/* Four pieces A B C D become A D C B. B, C and D are short, and A is the rest. */
static void perturb(struct tpl_search *s)
{
	uint32_t window = s->n - 1 < WINDOW ? s->n - 1 : WINDOW, at = tpl_below(&s->random, s->n);
	uint32_t cut[4] = {0, 0, 0, window}, len[3], first = at;
	double before = 0, behind = 0;

	cut[1] = 1 + tpl_below(&s->random, window - 2);
	cut[2] = cut[1] + 1 + tpl_below(&s->random, window - cut[1] - 1);
	for (int i = 0; i < 3; i++)
		len[i] = cut[i + 1] - cut[i];
	for (uint32_t i = 0, p = at; i < window; i++, p = after(s, p, 1))
		s->piece[i] = s->tour[p];
	for (int i = 0; i < 4; i++) {
		uint32_t p = after(s, first, cut[i]), q = after(s, p, s->n - 1);

		before += link_cost(s, s->tour[q], s->tour[p]);
		look_at(s, s->tour[q]);
		look_at(s, s->tour[p]);
	}
	for (int i = 2; i >= 0; i--)
		for (uint32_t k = 0; k < len[i]; k++, at = after(s, at, 1))
			put(s, at, s->piece[cut[i] + k]);
	cut[1] = len[2];
	cut[2] = len[2] + len[1];
	for (int i = 0; i < 4; i++) {
		uint32_t p = after(s, first, cut[i]), q = after(s, p, s->n - 1);

		behind += link_cost(s, s->tour[q], s->tour[p]);
	}
	s->now += behind - before;
}

void tpl_search_kick(struct tpl_search *s)
{
	double old = s->now;

	s->idle++;
	keep(s);
	perturb(s);
	(void)tpl_search_improve(s, UINT32_MAX);
	if (s->now > old + s->eps) {
		restore(s);
		s->now = old;
	}
	if (s->idle < PATIENCE * s->n)
		return;
	/* Begins again at the best ring, changed in many places. */
	tpl_search_set(s, s->best);
	for (uint32_t i = 0; i < 2 + s->n / 16; i++)
		perturb(s);
	(void)tpl_search_improve(s, UINT32_MAX);
}
