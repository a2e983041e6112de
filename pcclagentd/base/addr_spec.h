/* SPDX-License-Identifier: MIT
 *
 * Address specs: the addresses by which other hosts reach this host, and the interfaces that data
 * uses, as the operator names them. Pure.
 */
#ifndef ADDR_SPEC_H
#define ADDR_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_sys.h"
#include "proto/wire_master.h"

#define ADDR_SPEC_NAME_MAX 128 /* size of a name, with the NUL */

/* An address spec: an address, a network of this host, an interface of this host, or a host name.
 */
struct place {
	enum { ADDR_SPEC_ADDR, ADDR_SPEC_NET, ADDR_SPEC_INTERFACE, ADDR_SPEC_NAME } kind;
	/* ADDR_SPEC_ADDR: the address. ADDR_SPEC_NET: the network. ADDR_SPEC_NAME: only the port is
	 * set. A port that is not 0 replaces the p2p port. */
	struct cc_addr addr;
	uint8_t bits;                  /* NET */
	char name[ADDR_SPEC_NAME_MAX]; /* INTERFACE, NAME */
};

struct addrs {
	uint32_t n;
	struct place v[WM_ADDRS_MAX];
};

/* Parses an address spec: "192.0.2.1", "[2001:db8::1]:7", "10.2.0.0/16", "eth1" or "a.example:7".
 * Returns false if the text is none of these, or an address that no agent can have; then *ret_why
 * is the rule that it breaks, or "". */
bool addr_spec_parse(const char *text, struct place *ret, const char **ret_why);
/* Does the address spec cover the address of `i`? The port does not matter. */
bool addr_spec_has(const struct place *p, const struct cc_interface *i);

#endif
