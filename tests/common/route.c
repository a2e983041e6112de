/* SPDX-License-Identifier: MIT
 *
 * The routes: each algorithm reduces and distributes every chunk, for any number of hosts.
 */
#include "common/cc_route.h"

#include <check.h>
#include <stdbool.h>

#include "common/cc_rings.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

/* Returns the hosts whose operands are in the sum that `pos` sends, as bits. *depth gets the number
 * of hops that this sum needs. */
static uint64_t sum_of(const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t *depth)
{
	uint32_t children[CC_ROUTE_FANOUT_MAX], deepest = 0;
	uint32_t n = cc_route_children(r, chunk, pos, children);
	uint64_t sum = UINT64_C(1) << pos;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t below;
		uint64_t part = sum_of(r, chunk, children[i], &below);

		ck_assert(i == 0 || children[i - 1] < children[i]);
		ck_assert_uint_eq(cc_route_parent(r, chunk, children[i]), pos);
		ck_assert_msg((sum & part) == 0, "an operand is added twice");
		sum |= part;
		deepest = below + 1 > deepest ? below + 1 : deepest;
	}
	*depth = deepest;
	return sum;
}

/* Returns the hosts that get the result from `pos`, and `pos` itself, as bits. */
static uint64_t reached(const struct cc_route *r, uint32_t chunk, uint32_t pos)
{
	uint32_t targets[CC_ROUTE_FANOUT_MAX];
	uint32_t n = cc_route_targets(r, chunk, pos, targets);
	uint64_t all = UINT64_C(1) << pos;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t part;

		ck_assert_uint_eq(cc_route_source(r, chunk, targets[i]), pos);
		part = reached(r, chunk, targets[i]);
		ck_assert_msg((all & part) == 0, "a host gets the result twice");
		all |= part;
	}
	return all;
}

static uint32_t log2_up(uint32_t n)
{
	uint32_t k = 0;

	while ((UINT32_C(1) << k) < n)
		k++;
	return k;
}

static uint32_t log2_down(uint32_t n)
{
	uint32_t k = 0;

	while (UINT32_C(2) << k <= n)
		k++;
	return k;
}

/* Makes one to four rings, each of which has all hosts in a random order. */
static struct cc_rings random_rings(struct tl_rng *rng, uint32_t hosts)
{
	struct cc_rings x = {.n = (uint32_t)tl_range(rng, 1, CC_RINGS_MAX), .hosts = hosts};

	for (uint32_t r = 0; r < x.n; r++) {
		x.share[r] = 1;
		for (uint32_t i = 0; i < hosts; i++) {
			uint32_t k = (uint32_t)tl_range(rng, 0, i);

			x.order[r][i] = x.order[r][k];
			x.order[r][k] = (uint8_t)i;
		}
	}
	ck_assert_int_eq(cc_rings_complete(&x), 0);
	return x;
}

START_TEST(every_chunk_is_reduced_and_distributed)
{
	struct tl_rng rng = tl_rng_new(11);
	struct cc_rings rings;
	struct cc_route r = {.algo = (enum cc_algo)_i, .rings = &rings};

	for (r.hosts = 1; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		uint64_t all = UINT64_MAX >> (64 - r.hosts), owners = 0;
		const uint32_t hops[] = {r.hosts - 1, r.hosts > 1, log2_down(r.hosts), r.hosts - 1};
		uint32_t chunks = r.hosts;

		rings = random_rings(&rng, r.hosts);
		if (r.algo == CC_ALGO_RINGS)
			chunks *= rings.n;
		for (uint32_t chunk = 0; chunk < chunks; chunk++) {
			uint32_t owner = cc_route_owner(&r, chunk), depth;

			ck_assert_uint_lt(owner, r.hosts);
			owners |= UINT64_C(1) << owner;
			ck_assert_uint_eq(cc_route_parent(&r, chunk, owner), CC_ROUTE_NONE);
			ck_assert_uint_eq(cc_route_source(&r, chunk, owner), CC_ROUTE_NONE);
			ck_assert_uint_eq(sum_of(&r, chunk, owner, &depth), all);
			ck_assert_uint_le(depth, hops[r.algo]);
			ck_assert(r.algo == CC_ALGO_TREE || depth == hops[r.algo]);
			ck_assert_uint_eq(reached(&r, chunk, owner), all);
		}
		ck_assert_msg(owners == all, "a host owns no chunk");
	}
}
END_TEST

/* Partial sums and results go only from a host to the next host of the ring, and each host starts
 * one chunk of each ring. */
START_TEST(chunks_stay_on_their_ring)
{
	struct tl_rng rng = tl_rng_new(12);
	struct cc_rings rings;
	struct cc_route r = {.algo = CC_ALGO_RINGS, .rings = &rings};

	for (r.hosts = 2; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		rings = random_rings(&rng, r.hosts);
		for (uint32_t k = 0; k < rings.n * r.hosts; k++) {
			const uint8_t *order = rings.order[k / r.hosts];
			uint32_t list[CC_ROUTE_FANOUT_MAX], starts = 0;

			for (uint32_t i = 0; i < r.hosts; i++) {
				/* all chunks of the ring, at its host i */
				uint32_t chunk = k / r.hosts * r.hosts + (k + i) % r.hosts;
				uint32_t pos = order[i], next = order[(i + 1) % r.hosts];
				uint32_t parent = cc_route_parent(&r, chunk, pos);

				ck_assert(parent == next || parent == CC_ROUTE_NONE);
				ck_assert(cc_route_targets(&r, chunk, pos, list) == 0 ||
					  list[0] == next);
			}
			for (uint32_t j = 0; j < r.hosts; j++)
				starts += cc_route_children(&r, k / r.hosts * r.hosts + j,
						  order[k % r.hosts], list) == 0;
			ck_assert_uint_eq(starts, 1);
		}
	}
}
END_TEST

/* If each ring has the order of the group, its chunks go as on CC_ALGO_RING. */
START_TEST(rings_in_the_order_of_the_group_are_like_the_ring)
{
	struct cc_rings rings = {.n = 2, .hosts = 7, .share = {1, 1}};
	struct cc_route ring = {.hosts = 7}, r = {CC_ALGO_RINGS, 7, &rings};
	uint32_t a[CC_ROUTE_FANOUT_MAX] = {0}, b[CC_ROUTE_FANOUT_MAX] = {0};

	for (uint8_t i = 0; i < 7; i++)
		rings.order[0][i] = rings.order[1][i] = i;
	ck_assert_int_eq(cc_rings_complete(&rings), 0);
	for (uint32_t i = 0; i < 2 * 7 * 7; i++) {
		uint32_t chunk = i / 7, pos = i % 7, n;

		ck_assert_uint_eq(cc_route_owner(&r, chunk), cc_route_owner(&ring, chunk % 7));
		ck_assert_uint_eq(
			cc_route_parent(&r, chunk, pos), cc_route_parent(&ring, chunk % 7, pos));
		ck_assert_uint_eq(
			cc_route_source(&r, chunk, pos), cc_route_source(&ring, chunk % 7, pos));
		n = cc_route_children(&r, chunk, pos, a);
		ck_assert_uint_eq(n, cc_route_children(&ring, chunk % 7, pos, b));
		ck_assert(n == 0 || a[0] == b[0]);
		n = cc_route_targets(&r, chunk, pos, a);
		ck_assert_uint_eq(n, cc_route_targets(&ring, chunk % 7, pos, b));
		ck_assert(n == 0 || a[0] == b[0]);
	}
}
END_TEST

/* Sets *sums and *results to the hosts to which `pos` sends partial sums and results, as bits. */
static void links_of(const struct cc_route *r, uint32_t pos, uint64_t *sums, uint64_t *results)
{
	*sums = *results = 0;
	for (uint32_t chunk = 0; chunk < r->hosts; chunk++) {
		uint32_t targets[CC_ROUTE_FANOUT_MAX];
		uint32_t n = cc_route_targets(r, chunk, pos, targets);
		uint32_t parent = cc_route_parent(r, chunk, pos);

		*sums |= parent == CC_ROUTE_NONE ? 0 : UINT64_C(1) << parent;
		for (uint32_t i = 0; i < n; i++)
			*results |= UINT64_C(1) << targets[i];
	}
}

START_TEST(tree_needs_links_at_powers_of_two)
{
	struct cc_route r = {.algo = CC_ALGO_TREE};

	for (r.hosts = 2; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		for (uint32_t pos = 0; pos < r.hosts; pos++) {
			uint64_t sums, results, before = 0, after = 0;

			links_of(&r, pos, &sums, &results);
			for (uint32_t step = 1; step < r.hosts; step *= 2) {
				before |= UINT64_C(1) << (pos + r.hosts - step) % r.hosts;
				after |= UINT64_C(1) << (pos + step) % r.hosts;
			}
			ck_assert_uint_eq(sums, before);
			ck_assert_uint_eq(results, after);
		}
	}
}
END_TEST

START_TEST(ring_sends_to_the_next_host)
{
	struct cc_route r = {.algo = CC_ALGO_RING};

	for (r.hosts = 2; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		for (uint32_t pos = 0; pos < r.hosts; pos++) {
			uint64_t sums, results, next = UINT64_C(1) << (pos + 1) % r.hosts;

			links_of(&r, pos, &sums, &results);
			ck_assert_uint_eq(sums, next);
			ck_assert_uint_eq(results, next);
		}
	}
}
END_TEST

/* A ring may have any number of hosts. */
START_TEST(ring_route_has_no_limit_of_hosts)
{
	struct cc_route r = {.algo = CC_ALGO_RING, .hosts = 100000};
	uint32_t list[CC_ROUTE_FANOUT_MAX];

	ck_assert_uint_eq(cc_route_owner(&r, 7), 99992);
	ck_assert_uint_eq(cc_route_parent(&r, 7, 99999), 0);
	ck_assert_uint_eq(cc_route_children(&r, 7, 99993, list), 0);
	ck_assert_uint_eq(cc_route_children(&r, 7, 0, list), 1);
	ck_assert_uint_eq(list[0], 99999);
	ck_assert_uint_eq(cc_route_targets(&r, 7, 99991, list), 0);
	ck_assert_uint_eq(cc_route_targets(&r, 7, 99992, list), 1);
	ck_assert_uint_eq(list[0], 99993);
	ck_assert_uint_eq(cc_route_sender(&r, 0, 7), 99999);
}
END_TEST

START_TEST(positions_wrap_around_the_ring)
{
	struct cc_route r = {.algo = CC_ALGO_TREE};

	for (r.hosts = 1; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		for (uint32_t pos = 0; pos < r.hosts; pos++) {
			for (uint32_t distance = 0; distance < r.hosts; distance++) {
				uint32_t to = cc_route_after(&r, pos, distance);

				ck_assert_uint_eq(to, (pos + distance) % r.hosts);
				ck_assert_uint_eq(cc_route_before(&r, to, distance), pos);
			}
		}
	}
}
END_TEST

/* ---- eager operations ---- */

/* The operands that each host has, as bits. */
struct operands {
	uint64_t of[CC_ROUTE_HOSTS_MAX];
};

static struct operands own_operands(const struct cc_route *r)
{
	struct operands have = {{0}};

	for (uint32_t pos = 0; pos < r->hosts; pos++)
		have.of[pos] = UINT64_C(1) << pos;
	return have;
}

static bool have_all(const struct cc_route *r, const struct operands *have)
{
	for (uint32_t pos = 0; pos < r->hosts; pos++)
		if (have->of[pos] != UINT64_MAX >> (64 - r->hosts))
			return false;
	return true;
}

/* Lets each host send on all operands that it has: one hop for each operand. */
static void hop(const struct cc_route *r, struct operands *have)
{
	const struct operands before = *have;

	for (uint32_t pos = 0; pos < r->hosts; pos++) {
		for (uint32_t origin = 0; origin < r->hosts; origin++) {
			uint32_t sender;

			if (origin == pos)
				continue;
			sender = cc_route_sender(r, pos, origin);
			if (sender >= r->hosts || sender == pos)
				ck_abort_msg("host %u gets an operand from %u", pos, sender);
			have->of[pos] |= before.of[sender] & UINT64_C(1) << origin;
		}
	}
}

START_TEST(operands_of_eager_operations_reach_all_hosts)
{
	struct cc_route r = {.algo = (enum cc_algo)_i};

	for (r.hosts = 1; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		const uint32_t hops[] = {r.hosts - 1, r.hosts > 1, log2_down(r.hosts), r.hosts - 1};
		struct operands have = own_operands(&r);
		uint32_t n = 0;

		for (; n < hops[r.algo]; n++) {
			ck_assert_msg(!have_all(&r, &have), "fewer hops are enough");
			hop(&r, &have);
		}
		ck_assert_msg(have_all(&r, &have),
			"%u hosts: a host lacks an operand after %u hops", r.hosts, n);
	}
}
END_TEST

/* Does one step of the tree. Returns false if there is no such step. */
static bool do_step(const struct cc_route *r, uint32_t step, struct operands *have)
{
	const struct operands before = *have;
	uint32_t n = cc_route_step(r, step), window = UINT32_C(1) << step;

	for (uint32_t pos = 0; n > 0 && pos < r->hosts; pos++) {
		uint32_t to = cc_route_after(r, pos, window);

		for (uint32_t i = 0; i < window; i++) {
			uint32_t origin = cc_route_before(r, pos, i);
			uint64_t bit = UINT64_C(1) << origin;

			/* A host waits for the operands of `window` hosts, also for the operands
			 * that it does not send. */
			ck_assert_msg(before.of[pos] & bit, "a host lacks what it sends");
			if (i >= n)
				continue;
			ck_assert_msg(!(have->of[to] & bit), "an operand is sent twice");
			ck_assert_uint_eq(cc_route_sender(r, to, origin), pos);
			have->of[to] |= bit;
		}
	}
	return n > 0;
}

START_TEST(steps_of_the_tree_collect_all_operands)
{
	struct cc_route r = {.algo = CC_ALGO_TREE};

	for (r.hosts = 1; r.hosts <= CC_ROUTE_HOSTS_MAX; r.hosts++) {
		struct operands have = own_operands(&r);
		uint32_t step = 0;

		while (do_step(&r, step, &have))
			step++;
		ck_assert_uint_eq(step, log2_up(r.hosts));
		ck_assert(have_all(&r, &have));
		ck_assert_uint_eq(cc_route_step(&r, step + 1), 0);
	}
}
END_TEST

START_TEST(master_chooses_by_size_and_quantization)
{
	const uint64_t most = UINT64_C(1) << 20;
	enum cc_algo small;
	uint64_t eager;
	uint32_t hosts;

	for (hosts = 0; hosts < 3; hosts++) {
		ck_assert_int_eq(cc_route_choose(hosts, 1, false), CC_ALGO_RING);
		ck_assert_int_eq(cc_route_choose(hosts, most, true), CC_ALGO_RING);
	}
	for (hosts = 3; hosts <= CC_ROUTE_HOSTS_MAX; hosts++) {
		small = hosts <= 8 ? CC_ALGO_DIRECT : CC_ALGO_TREE;
		ck_assert_int_eq(cc_route_choose(hosts, 0, false), small);
		ck_assert_int_eq(cc_route_choose(hosts, most, false), small);
		ck_assert_int_eq(cc_route_choose(hosts, most + 1, false), CC_ALGO_RING);
		eager = cc_route_eager_max(hosts) / hosts;
		ck_assert_int_eq(cc_route_choose(hosts, eager, true), small);
		ck_assert_int_eq(cc_route_choose(hosts, eager + 1, true), CC_ALGO_DIRECT);
		ck_assert_int_eq(cc_route_choose(hosts, 100 * most, true), CC_ALGO_DIRECT);
	}
}
END_TEST

Suite *route_suite(void)
{
	Suite *s = suite_create("route");
	TCase *tc = tcase_create("routes");

	tcase_add_loop_test(tc, every_chunk_is_reduced_and_distributed, 0, CC_ALGO_COUNT);
	tcase_add_test(tc, chunks_stay_on_their_ring);
	tcase_add_test(tc, rings_in_the_order_of_the_group_are_like_the_ring);
	tcase_add_test(tc, tree_needs_links_at_powers_of_two);
	tcase_add_test(tc, ring_sends_to_the_next_host);
	tcase_add_test(tc, ring_route_has_no_limit_of_hosts);
	tcase_add_test(tc, positions_wrap_around_the_ring);
	tcase_add_loop_test(tc, operands_of_eager_operations_reach_all_hosts, 0, CC_ALGO_COUNT);
	tcase_add_test(tc, steps_of_the_tree_collect_all_operands);
	tcase_add_test(tc, master_chooses_by_size_and_quantization);
	suite_add_tcase(s, tc);
	return s;
}
