/* SPDX-License-Identifier: MIT
 *
 * Places that the operator names: where this host is reached, and which of its interfaces data
 * takes. Pure.
 */
#ifndef ADDR_SPEC_H
#define ADDR_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_sys.h"
#include "proto/wire_master.h"

#define ADDR_SPEC_NAME_MAX 128 /* with NUL */

/* What the operator names: an address, or all addresses of this host in a network, or those of an
 * interface, or what a host name leads to. */
struct place {
	enum { ADDR_SPEC_ADDR, ADDR_SPEC_NET, ADDR_SPEC_INTERFACE, ADDR_SPEC_NAME } kind;
	/* ADDR and NAME (port alone), with the port that counts instead of that of p2p, or 0; NET
	 */
	struct cc_addr addr;
	uint8_t bits;                  /* NET */
	char name[ADDR_SPEC_NAME_MAX]; /* INTERFACE, NAME */
};

struct addrs {
	uint32_t n;
	struct place v[WM_ADDRS_MAX];
};

/* "192.0.2.1", "[2001:db8::1]:7", "10.2.0.0/16", "eth1", "a.example:7".
 * False: it is none of these, or one that no agent can have; *ret_why is the rule, or "". */
bool addr_spec_parse(const char *text, struct place *ret, const char **ret_why);
/* Is the address one that the place names? The port does not count. */
bool addr_spec_has(const struct place *p, const struct cc_interface *i);

#endif
