/* SPDX-License-Identifier: MIT
 *
 * The cap of a host, from measured rates: the rate that it can carry in one direction over all its
 * links together. Functions without state. Callable from any thread.
 */
#ifndef CCM_CAPS_H
#define CCM_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#define CCM_HOST_ROUNDS_MAX 8u
#define CCM_NO_HOST         UINT32_MAX

/* The rates of the links of a host in one direction, each measured alone. */
struct ccm_links {
	uint64_t fastest, second, sum; /* second: of another link than the fastest one */
};

void ccm_links_add(struct ccm_links *x, uint64_t rate);

/* Returns the cap of a host that has carried `at_once` over all its links at the same time. If this
 * is nearly the sum of its links, they were the limit, and not the host. In any case the host can
 * carry what its fastest link can carry. */
uint64_t ccm_cap_of(const struct ccm_links *x, uint64_t at_once);

/* The host has carried `at_once` while all other hosts sent to all and received from all, too.
 * Returns its cap; or 0 if it is suspect: the host can perhaps carry more, because the other hosts
 * were the limit. It is not suspect if the links were the limit, or if two links alone have carried
 * the same, and about as much as all links together: then the fastest one is the cap, because a
 * link alone is measured more exactly. */
uint64_t ccm_cap_if_sure(const struct ccm_links *x, uint64_t at_once);

/* Returns the one in the middle of those of the n values that are not 0; or 0. Changes their
 * order. */
uint64_t ccm_cap_middle(uint64_t *values, uint32_t n);

/* Hosts with suspect caps in one direction, the lowest caps first. If there are too many, those
 * with the lowest caps remain, because the lowest cap of all bounds a plan. */
struct ccm_suspects {
	uint32_t n, hosts[CCM_HOST_ROUNDS_MAX];
	uint64_t caps[CCM_HOST_ROUNDS_MAX];
};

void ccm_suspects_add(struct ccm_suspects *x, uint32_t host, uint64_t cap);

/* A round in which one host sends to all others, and another one receives from all others. Each
 * other host has one link in each direction then, and bytes that go one way do not delay the
 * answers to those that go the other way. Only the link from `out` to `in` shares both of its ends
 * with other links. So it may carry little. */
struct ccm_host_round {
	uint32_t out, in; /* indices of different hosts, or CCM_NO_HOST */
};

/* Writes the rounds that measure all these hosts. Returns their number. rates[i * n_hosts + k]:
 * what the link from host i to host k has carried alone. In each round both hosts should reach
 * their caps without the link from `out` to `in`, as far as this is known. */
uint32_t ccm_host_rounds(const struct ccm_suspects *out, const struct ccm_suspects *in,
	const uint64_t *rates, uint32_t n_hosts, struct ccm_host_round ret[CCM_HOST_ROUNDS_MAX]);

#endif
