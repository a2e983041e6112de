/* SPDX-License-Identifier: MIT
 *
 * Shared-state engines of several hosts in one process, joined by loopback TCP, with members that
 * have real manifests and, where their tensors are their own, a thread that does what their process
 * would: carry out commands.
 */
#ifndef HOST_H
#define HOST_H

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"

#define HOSTS_MAX   5u
#define MEMBERS_MAX 4u
#define WAIT_MS     20000

/* The tensors that all members have; their elected contents follow from `seed`. */
struct shape {
	uint32_t n;
	uint64_t seed;
	uint64_t *bytes;
	bool *may_differ;
	bool digested;
	struct wm_digest digest; /* see shape_digest */
};

enum kind { OWN = 0, REGISTERED = 1, MIXED = 2 };

struct member {
	struct host *host;
	struct shape *shape;
	uint32_t uid;
	uint64_t number; /* of its manifest's region */
	bool holder, receive_only;
	uint8_t **data;  /* of each tensor */
	uint8_t *memory; /* the region of the registered ones */
	int fd;          /* of it */
	uint64_t size;   /* of it */
	uint8_t *map;    /* manifest */
	uint64_t map_size;
	struct shm_state state;
	struct shm_slot slot;
	struct ste_region region;
	int bell;
	pthread_t shim;
	_Atomic bool quit;
	_Atomic bool deaf;       /* carries out no commands */
	_Atomic uint32_t limit;  /* carries out no more than so many; 0: any number */
	_Atomic bool corrupt;    /* writes something else into the window */
	_Atomic uint32_t blind;  /* cannot map memory of these members: a bit for each */
	_Atomic uint32_t n_seen; /* commands that it carried out from there */
	bool has_shim;
};

struct host {
	struct ste *e;
	bool done_early; /* net_drop has seen it */
	struct cc_id id;
	int event_fd, listener;
	uint16_t port;
	bool refuses; /* hangs up instead of an answer to the hello */
	bool mute;    /* answers it, and never says anything again */
	bool babbles; /* answers it, and then sends what nobody asked for */
	int mute_fds[16];
	uint32_t n_mute;
	uint32_t n_welcomed; /* streams to it */
	uint32_t n_members;
	struct member m[MEMBERS_MAX];
};

struct net {
	uint32_t n;
	struct host h[HOSTS_MAX];
};

extern uint32_t net_pool, net_hashes; /* of ste_config, for the next net_up */
extern uint64_t rng_state;
uint64_t rng(void);

void shape_init(struct shape *s, uint32_t n, uint64_t seed);
/* One tensor; or two, the second one of five bytes. */
void shape_one(struct shape *s, uint64_t bytes);
void shape_two(struct shape *s, uint64_t bytes);
void shape_free(struct shape *s);
uint64_t shape_bytes(const struct shape *s); /* that must be equal */
/* Byte i of a tensor, elected. */
uint8_t shape_byte(const struct shape *s, uint32_t tensor, uint64_t i);
/* Of the elected content; what it is made of must not change afterwards. */
struct wm_digest shape_digest(struct shape *s);

void net_up(struct net *n, uint32_t hosts);
void net_down(struct net *n);
/* A member with the elected content, or, unless it is a holder, with zeros. The manifest is not
 * made yet: the test may change data before member_hash. */
struct member *member_add(struct host *h, struct shape *s, bool holder, enum kind kind);
void member_hash(struct host *h, struct member *m);
void member_free(struct host *h, struct member *m);
uint32_t member_commands(const struct member *m); /* that it was given */
/* All tensors are what was elected; those that may differ are as they were made. */
void member_check(const struct member *m);

struct ste_source source_of(const struct net *n, uint32_t host, bool holds);
int host_try_start(struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src,
	uint32_t n_src);
void host_start(struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src,
	uint32_t n_src);
/* Accepts streams for all hosts until there is an event of host `want`. False: none in time. want
 * == UINT32_MAX: just for so long. STE_MEMBERS counts for nothing. */
bool net_event(struct net *n, uint32_t want, struct ste_event *ret, int ms);
void net_expect(struct net *n, uint32_t host, enum ste_event_type type);
/* On all hosts; the first one has these sources, the others none. */
void net_start(struct net *n, struct shape *s, const struct ste_source *src, uint32_t n_src);
void net_cancel(struct net *n, uint32_t host); /* SEQ, and waits for it */
struct ste_progress host_progress(struct host *h, uint64_t seq);

/* ---- for tests of a single attempt */

#define SEQ 9u

/* Drops a member and waits until it is dropped. */
void net_drop(struct net *n, uint32_t host, uint32_t member);
/* Its process is gone from then on. */
void member_stop(struct member *m);
/* Likewise, and whoever touches its memory dies; or not any more. */
void member_poison(struct member *m, bool on);

/* The first host is done, and its first member has what was elected. */
void net_expect_done(struct net *n);
/* net_down, and the shape is freed. */
void net_end(struct net *n, struct shape *s);
struct ste_member_view host_view(struct host *h, uint32_t member);
/* So many bytes of the host's first member went to others, who may have them before it counts. */
void net_expect_sent(struct net *n, uint32_t host, uint64_t bytes);
struct ste_source_view host_source(struct host *h, uint32_t src);
void host_hash(struct host *h); /* member_hash of all its members */
/* A receiver on host 0 and a holder on each of the others, which are the sources src. */
void net_newcomer(struct net *n, struct shape *s, uint32_t holders, enum kind from, enum kind to,
	struct ste_source *src);

#endif
