/* SPDX-License-Identifier: MIT
 *
 * Where other hosts reach this one. Interfaces come and go, so it is found out anew before each
 * hello, when a link has failed, and every few seconds; what has changed masters are told. Loop
 * thread.
 */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_sys.h"
#include "proto/wire_master.h"

#define PLACE_NAME_MAX 128 /* with NUL */

/* What the operator names: an address, or all addresses of this host in a network, or those of an
 * interface, or what a host name leads to. */
struct place {
	enum { PLACE_ADDR, PLACE_NET, PLACE_INTERFACE, PLACE_NAME } kind;
	/* ADDR and NAME (port alone), with the port that counts instead of that of p2p, or 0; NET
	 */
	struct cc_addr addr;
	uint8_t bits;              /* NET */
	char name[PLACE_NAME_MAX]; /* INTERFACE, NAME */
};

struct places {
	uint32_t n;
	struct place v[WM_ADDRS_MAX];
};

/* "192.0.2.1", "[2001:db8::1]:7", "10.2.0.0/16", "eth1", "a.example:7".
 * False: it is none of these, or one that no agent can have; *ret_why is the rule, or "". */
bool place_parse(const char *text, struct place *ret, const char **ret_why);
/* Is the address one that the place names? The port does not count. */
bool place_has(const struct place *p, const struct cc_interface *i);

struct agentd;

/* The core is told if there is something new. */
void addresses_refresh(struct agentd *d);
void addresses_tick(struct agentd *d, uint64_t now);
/* This host has lost the address, and has others: what uses it should begin anew with one of these.
 * Asked for the same one time and again it looks but once; zero `last` before. text: says so. */
struct last_address {
	struct cc_addr addr;
	bool gone;
	char text[128];
};
bool address_is_gone(struct last_address *last, const struct cc_addr *addr);
/* Sorts addresses of another host: first those in networks that this host has, of interfaces that
 * were chosen before others, then all others; last those that this host has itself, which are
 * seldom meant. Otherwise the order stays. */
void addresses_sort(const struct agentd *d, struct cc_addr *v, uint32_t n);

#endif
