/* SPDX-License-Identifier: MIT
 *
 * The addresses that connections come from, and what is granted to each of them before it has
 * members: so many connections, and so much work for handshakes.
 */
#ifndef SOURCES_H
#define SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_hash.h"

#include <uthash.h>

/* So many at once, and each second from then on. A handshake costs half a millisecond. */
#define SOURCE_KNOCKS         500u
#define SOURCE_KNOCKS_PER_S   50u
#define SOURCE_MESSAGES       10000u
#define SOURCE_MESSAGES_PER_S 2000u

struct agent;

/* The rest of a ration, as of then. */
struct ration {
	double left;
	uint64_t ns;
};

/* Hosts with IPv6 have a network of 64 bits to take addresses from: that is one source. */
struct source {
	uint8_t key[17];
	uint32_t n_conns;     /* they point here */
	uint32_t n_strangers; /* those without members, and those of them that */
	uint32_t n_silent;    /* have said no hello: */
	struct agent *silent; /* the oldest one first */
	struct ration knocks, messages;
	UT_hash_handle hh;
};

/* NULL without memory. */
struct source *source_get(struct source **all, const struct cc_addr *from, uint64_t now);
/* Take one of what it may have; false: not now. */
bool source_may_knock(struct source *s, uint64_t now);
bool source_may_speak(struct source *s, uint64_t now);
/* Forgets those that have no connections, and all their knocks again. */
void sources_tick(struct source **all, uint64_t now);
void sources_free(struct source **all);

#endif
