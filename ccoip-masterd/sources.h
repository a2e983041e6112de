/* SPDX-License-Identifier: MIT
 *
 * The addresses that connections come from, and the limits of each address while its agents have no
 * members: connections, handshakes (knocks) and messages.
 */
#ifndef SOURCES_H
#define SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_hash.h"

/* A source may send SOURCE_KNOCKS knocks and SOURCE_MESSAGES messages at once. Each second adds
 * SOURCE_KNOCKS_PER_S and SOURCE_MESSAGES_PER_S. The answer to a knock costs half a millisecond. */
#define SOURCE_KNOCKS         500u
#define SOURCE_KNOCKS_PER_S   50u
#define SOURCE_MESSAGES       10000u
#define SOURCE_MESSAGES_PER_S 2000u

struct agent;

/* A ration, of which `left` units remained at the time ns. */
struct ration {
	double left;
	uint64_t ns;
};

/* An IPv4 address, or a network of 64 bits with IPv6, because an IPv6 host can use each address of
 * its network. */
struct source {
	uint8_t key[17];
	uint32_t n_conns;     /* connections from this source */
	uint32_t n_strangers; /* the connections of agents without members */
	uint32_t n_silent;    /* the connections that have sent no hello */
	struct agent *silent; /* the connections without a hello, the oldest one first */
	struct ration knocks, messages;
	UT_hash_handle hh;
};

/* Finds or makes the source of an address. Returns NULL when memory is exhausted. */
struct source *source_get(struct source **all, const struct cc_addr *from, uint64_t now);
/* Both functions take one unit of a ration of `s`, and return false if no unit is left. */
bool source_may_knock(struct source *s, uint64_t now);
bool source_may_speak(struct source *s, uint64_t now);
/* Forgets each source that has a full ration of knocks and no connections. */
void sources_tick(struct source **all, uint64_t now);
void sources_free(struct source **all);

#endif
