/* SPDX-License-Identifier: MIT
 *
 * Host names whose addresses others are to be told. A name server may take its time, and what it
 * says may change: names are looked up beside the loop, again and again. Loop thread.
 */
#ifndef NAMES_H
#define NAMES_H

#include "common/cc_addr.h"
#include "pcclagentd/base/addr_spec.h"

struct names;

/* The names among the places; NULL: there are none. */
struct names *net_names_new(const struct addrs *p);
void net_names_free(struct names *n);
/* Takes what has been found, and looks up what has not been for a while. */
void net_names_look(struct names *n);
/* Addresses of the name, as of late, with the place's port. Returns how many. */
uint32_t net_names_get(const struct names *n, const struct place *p, const struct cc_addr **ret);

#endif
