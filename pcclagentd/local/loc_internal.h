/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share. Each object is written by one of
 * them alone:
 *
 *   session.c   processes' connections; packet.c their packets, outbox.c replies that wait,
 *               process.c whether a process is there, beat.c whether it runs
 *   queue.c     communicators: queue pairs and their doorbells
 *   account.c   what users hold, and the limits on it
 *   region.c    shared memory
 *   result.c    result regions and their reuse
 *   manifest.c  what peers offer to synchronizations
 */
#ifndef LOC_INTERNAL_H
#define LOC_INTERNAL_H

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "common/cc_loop.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/local/beat.h"
#include "pcclagentd/local/local.h"
#include "pcclagentd/local/outbox.h"
#include "pcclagentd/local/process.h"
#include "proto/wire_codes.h"

struct loc {
	struct base *base;
	const struct loc_ops *ops;
	void *arg;
	struct cc_listener *listener;
	struct session *sessions;
	uint32_t next_session;
	uint64_t last_session_ns; /* when the last one left */
	uint32_t looked;          /* the session whose process was looked at last; 0: all were */
	uint64_t looks_ns;        /* when that began anew */
	struct loc_comm *comms;
	struct loc_region *regions;
	uint32_t n_regions;
	uint64_t next_region;
	struct account *accounts;
	uint64_t mem_used;
	uint64_t own_used; /* of mem_used: loc_account_charge */
	struct loc_result *results;
	struct checks *checks; /* of manifests */
	hsh_leaf_fn *crc32c;   /* NULL: not asked for yet, or not to be had */
};

struct account { /* what one user holds */
	uint32_t uid;
	uint32_t sessions, regions;
	uint64_t bytes;
	/* What others had reserved and not touched when it was counted, and until when that holds.
	 */
	uint64_t untouched, untouched_until_ns;
	UT_hash_handle hh;
};

struct session {
	struct loc *loc;
	uint32_t id;
	int fd;
	struct process process;
	struct beat beat;
	struct cc_watch *watch, *room_watch, *pid_watch; /* watch: NULL while replies wait */
	struct outbox outbox;
	uint32_t uid;
	bool greeted, stopped;
	uint64_t opened_ns;
	char name[WL_NAME_MAX];
	struct loc_region *regions;
	UT_hash_handle hh;
};

struct loc_region {
	uint64_t id;
	uint32_t session; /* owner; 0: a result region */
	uint32_t use;     /* enum wl_region_use, of an owner's */
	uint32_t uid;     /* whose account is charged */
	uint64_t size;    /* mapped bytes, whole pages */
	uint64_t charged;
	uint8_t *map;
	_Atomic bool *mapped; /* see ste_region; NULL until it is synchronized */
	int fd;               /* of result regions; of others, if there are enough; else -1 */
	uint32_t refs;        /* slots and operations that use it */
	uint32_t lent;        /* of these: only to be sent, by then perhaps to no purpose */
	bool orphan;          /* its owner is gone: goes with the last reference */
	UT_hash_handle hh;
	struct loc_region *prev, *next; /* of the owner's list */
};

struct loc_comm {
	struct loc *loc;
	uint32_t id, session, uid;
	uint32_t refs; /* the table, operations, results that wait for its slots */
	bool closed;
	void *map; /* SHM_SIZE bytes */
	int sq_bell, data_bell;
	struct cc_watch *watch;
	bool draining;
	bool checking; /* a manifest: entries behind it wait */
	bool awaited;  /* loc_comm_await_operand */
	uint32_t head, attr_version;
	struct eng *eng; /* that watches data_bell, or NULL; */
	struct ste *ste; /* likewise */
	uint64_t busy;   /* slots, as bits: submitted, not completed */
	struct comm_slot {
		uint32_t gen;                  /* counts submissions */
		struct loc_region *in, *out;   /* referenced while busy */
		struct loc_manifest *manifest; /* of a synchronization; likewise */
	} slot[SHM_SLOTS];
	UT_hash_handle hh;
};

/* Its memory is there as long as it has users: the slot, and the job until that does not use it any
 * more; what was copied out of it as long as it is referenced. */
struct loc_manifest {
	struct loc *loc;
	uint32_t refs, users;
	struct loc_region *region;
	uint32_t n_regions; /* that its tensors lie in */
	struct loc_region **regions;
	struct shm_state state;
	uint32_t uid;
	uint64_t charged; /* for our own tables */
};

enum result_state { RESULT_BUSY = 1, RESULT_IN_USE, RESULT_IDLE };

/* BUSY while an operation writes it, HELD while the processes still copy out of it. */
struct loc_result {
	struct loc *loc;
	struct loc_region *region;
	struct loc_group group;
	bool abandoned; /* a session ended that may still read it: not to be reused */
	uint64_t size_class;
	enum result_state state;
	uint64_t idle_since_ns;
	uint32_t n_readers;
	uint32_t cap_members;
	struct loc_reader *readers; /* room for cap_members, owned; and so are mappers */
	/* Communicators whose processes have it: nobody else's data may come here. */
	uint32_t n_mappers;
	uint32_t *mappers;
	struct loc_result *prev, *next;
};

/* ---- session.c ---- */

struct session *loc_session_find(const struct loc *loc, uint32_t id);
/* Sends an offer (wire_local_is_handover), with its descriptor, which stays the caller's. CC_ERR_*:
 * it has not been sent, which is of no consequence to the session. */
int loc_session_hand_over(struct loc *loc, uint32_t session, const struct wl_reply *r, int fd);
void loc_session_free_all(struct loc *loc);

/* ---- queue.c ---- */

/* What a manifest's check has come to; m: NULL, or what is offered, which is the slot's then. */
void loc_comm_checked(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_manifest *m, uint32_t code, const char *text);
/* Is the slot still the holder's, or its result not taken yet? */
bool loc_comm_holds(const struct loc_reader *h);

/* ---- account.c ---- */

struct account *loc_account_get(struct loc *loc, uint32_t uid);
/* Forgets it if it holds nothing. */
void loc_account_put(struct loc *loc, struct account *a);
/* Books `more` bytes for a user, or says which limit is in the way. */
uint32_t loc_account_book(struct loc *loc, struct account *a, uint64_t more, char *text);
void loc_account_unbook(struct loc *loc, uint32_t uid, uint64_t bytes, uint32_t regions);

/* ---- region.c ---- */

/* WIRE_SUCCESS, or another code and a sentence in text[WL_TEXT_MAX]. */
uint32_t loc_region_alloc(struct loc *loc, struct session *s, uint64_t size, enum wl_region_use use,
	struct loc_region **ret, int *ret_fd, char *text);
/* A region of memory that the process brought along: sealed, of ordinary pages, `size` bytes. What
 * could be harmful in a descriptor is not even closed here: *fd is -1 when it has been used up. */
uint32_t loc_region_adopt(struct loc *loc, struct session *s, int *fd, uint64_t size,
	struct loc_region **ret, char *text);
uint32_t loc_region_free(struct loc *loc, struct session *s, uint64_t id, char *text);
struct loc_region *loc_region_find(const struct loc *loc, uint64_t id);
struct loc_region *loc_region_ref(struct loc_region *r);
void loc_region_unref(struct loc *loc, struct loc_region *r); /* NULL is fine */
void loc_region_session_closed(struct loc *loc, struct session *s);
/* A region without a session of which `bytes` are charged to uid. */
uint32_t loc_region_new_result(struct loc *loc, uint32_t uid, uint64_t size, uint64_t bytes,
	struct loc_region **ret, char *text);
/* Raises what is charged. */
uint32_t loc_region_charge(struct loc *loc, struct loc_region *r, uint64_t bytes, char *text);
/* empty: its pages are given back although processes may have them mapped. */
void loc_region_drop_result(struct loc *loc, struct loc_region *r, bool empty);

/* ---- result.c ---- */

/* The result region with this id if the session's communicator has a part in it. */
struct loc_result *loc_result_find(
	struct loc *loc, uint32_t session, uint32_t comm, uint64_t region);
/* The communicator's process gets the region's descriptor: remember. False: too many. */
bool loc_result_add_mapper(struct loc_result *res, uint32_t comm);
/* The communicator's process may have given its mappings up: results that it is taken to have
 * mapped are not used again. */
void loc_result_comm_closed(struct loc *loc, const struct loc_comm *c);
void loc_result_free_all(struct loc *loc);

/* ---- manifest.c ---- */

int loc_checks_open(struct loc *loc);
/* Holds the manifest at the beginning of `region` against its submission, at once or, if it is
 * large, in a thread; loc_comm_checked follows, also before this returns. References c. */
void loc_manifest_check(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_region *region);
/* Waits for threads; nothing follows from them. */
void loc_checks_free(struct loc *loc);

#endif
