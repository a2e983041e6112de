/* SPDX-License-Identifier: MIT
 *
 * Shared-state engines of several hosts in one process, connected by loopback TCP. The members have
 * real manifests. Each member has a thread that carries out commands, like the process of a real
 * member.
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

/* The tensors of all members. Their elected contents follow from `seed`. */
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
	uint64_t number; /* the number of the manifest's region */
	bool holder, receive_only;
	uint8_t **data;  /* the contents of each tensor */
	uint8_t *memory; /* the region of its registered tensors */
	int fd;          /* descriptor of this region */
	uint64_t size;   /* size of this region */
	uint8_t *map;    /* its manifest */
	uint64_t map_size;
	struct shm_state state;
	struct shm_slot slot;
	struct ste_region region;
	int bell;
	pthread_t shim;
	_Atomic bool quit;
	_Atomic bool deaf;       /* carries out no commands */
	_Atomic uint32_t limit;  /* the most commands that it carries out; 0: no limit */
	_Atomic bool corrupt;    /* writes wrong bytes into the window */
	_Atomic uint32_t blind;  /* members whose memory it cannot map: a bit for each */
	_Atomic uint32_t n_seen; /* commands for which it read the memory of another member */
	bool has_shim;
};

struct host {
	struct ste *e;
	bool done_early; /* net_drop has taken the event STE_DONE */
	struct cc_id id;
	int event_fd, listener;
	uint16_t port;
	bool refuses; /* closes connections instead of answering the hello */
	bool mute;    /* answers the hello and then sends nothing */
	bool babbles; /* answers the hello and then sends bytes that were not requested */
	int mute_fds[16];
	uint32_t n_mute;
	uint32_t n_welcomed; /* streams to this host */
	uint32_t n_members;
	struct member m[MEMBERS_MAX];
};

struct net {
	uint32_t n;
	struct host h[HOSTS_MAX];
};

extern uint32_t net_pool, net_hashes; /* values of ste_config for the next net_up */
extern uint64_t rng_state;
uint64_t rng(void);

void shape_init(struct shape *s, uint32_t n, uint64_t seed);
/* Makes a shape of one tensor, or of two tensors. The second tensor has five bytes. */
void shape_one(struct shape *s, uint64_t bytes);
void shape_two(struct shape *s, uint64_t bytes);
void shape_free(struct shape *s);
/* Returns the bytes of all tensors that must be equal. */
uint64_t shape_bytes(const struct shape *s);
/* Returns byte `i` of a tensor of the elected contents. */
uint8_t shape_byte(const struct shape *s, uint32_t tensor, uint64_t i);
/* Returns the digest of the elected contents. The shape must not change after this call. */
struct wm_digest shape_digest(struct shape *s);

void net_up(struct net *n, uint32_t hosts);
void net_down(struct net *n);
/* Adds a member: a holder has the elected contents, another member has zeros. The manifest is not
 * made yet, so the test may change the data before member_hash. */
struct member *member_add(struct host *h, struct shape *s, bool holder, enum kind kind);
void member_hash(struct host *h, struct member *m);
void member_free(struct host *h, struct member *m);
/* Returns how many commands the member was given. */
uint32_t member_commands(const struct member *m);
/* Checks that the member has the elected contents and that the manifest says so. Tensors that may
 * differ must have their first contents. */
void member_check(const struct member *m);

struct ste_source source_of(const struct net *n, uint32_t host, bool holds);
int host_try_start(struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src,
	uint32_t n_src);
void host_start(struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src,
	uint32_t n_src);
/* Accepts streams for all hosts until host `want` has an event other than STE_MEMBERS. Returns
 * false if none comes in time. If `want` is UINT32_MAX, accepts streams for the whole time. */
bool net_event(struct net *n, uint32_t want, struct ste_event *ret, int ms);
/* The next event of the host must have this type. */
void net_expect(struct net *n, uint32_t host, enum ste_event_type type);
/* Starts the job SEQ on all hosts. Host 0 has these sources, the other hosts have none. */
void net_start(struct net *n, struct shape *s, const struct ste_source *src, uint32_t n_src);
/* Cancels the job SEQ and waits for its end. */
void net_cancel(struct net *n, uint32_t host);
struct ste_progress host_progress(struct host *h, uint64_t seq);

/* ---- for tests of a single attempt */

#define SEQ 9u

/* Drops a member and waits until it is dropped. */
void net_drop(struct net *n, uint32_t host, uint32_t member);
/* Ends the thread that carries out the member's commands, as if its process were gone. */
void member_stop(struct member *m);
/* If `on`, calls member_stop and protects the member's memory, so that any access to it ends the
 * test. Otherwise removes the protection. */
void member_poison(struct member *m, bool on);

/* Waits until host 0 is done, and checks its first member. */
void net_expect_done(struct net *n);
/* Calls net_down and frees the shape. */
void net_end(struct net *n, struct shape *s);
struct ste_member_view host_view(struct host *h, uint32_t member);
/* Waits until the host has counted this many bytes that its first member sent to others. The others
 * may have received them earlier. */
void net_expect_sent(struct net *n, uint32_t host, uint64_t bytes);
struct ste_source_view host_source(struct host *h, uint32_t src);
/* Calls member_hash for all members of the host. */
void host_hash(struct host *h);
/* Makes a net with a receiver on host 0, and a holder on each other host. These other hosts become
 * the sources `src`. */
void net_newcomer(struct net *n, struct shape *s, uint32_t holders, enum kind from, enum kind to,
	struct ste_source *src);

#endif
