/* SPDX-License-Identifier: MIT
 *
 * Host names that are advertised by their addresses. A name server may be slow, and its answers may
 * change. So names are looked up in the background, again and again. Used by the loop thread.
 */
#ifndef NAMES_H
#define NAMES_H

#include "common/cc_addr.h"
#include "pcclagentd/base/addr_spec.h"

struct names;

/* Collects the names among the address specs. Returns NULL if there are none. */
struct names *net_names_new(const struct addrs *p);
void net_names_free(struct names *n);
/* Takes the results of look-ups, and starts the look-ups that are due. */
void net_names_look(struct names *n);
/* Finds the latest addresses of a name, with the port of its address spec. Returns their number. */
uint32_t net_names_get(const struct names *n, const struct place *p, const struct cc_addr **ret);

#endif
