/* SPDX-License-Identifier: MIT
 *
 * The cap of a host, from measured rates: the rate that it can carry in one direction over all its
 * links together. Functions without state. Callable from any thread.
 */
#ifndef CCM_CAPS_H
#define CCM_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* The rates of the links of a host in one direction, each measured alone. */
struct ccm_links {
	uint64_t fastest, second, sum; /* second: of another link than the fastest one */
};

void ccm_links_add(struct ccm_links *x, uint64_t rate);

/* Returns the cap of a host that has carried `at_once` over all its links at the same time. If this
 * is nearly the sum of its links, they were the limit, and not the host. In any case the host can
 * carry what its fastest link can carry. */
uint64_t ccm_cap_of(const struct ccm_links *x, uint64_t at_once);

/* The host has carried `at_once` while all other hosts sent to all and received from all, too. Can
 * the host perhaps carry more, because the other hosts were the limit? No, if its links were the
 * limit, or if two links alone have carried as much as all links together. */
bool ccm_cap_is_suspect(const struct ccm_links *x, uint64_t at_once);

#endif
