/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share. Each object is written by only one
 * file:
 *
 *   local.c     the whole: construction, the end, counts
 *   session.c   processes' connections; packet.c: their packets; outbox.c: replies that wait;
 *               process.c: is a process alive or stopped; beat.c: asks a process whether it runs
 *   queue.c     communicators: queue pairs and their doorbells
 *   account.c   the memory and regions of each user, and the limits on them
 *   region.c    shared memory
 *   result.c    result regions and their reuse
 *   manifest.c  peers' candidates for synchronizations
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
	uint64_t last_session_ns; /* when the last session ended */
	uint32_t looked;   /* the session whose process was checked last; 0: all were checked */
	uint64_t looks_ns; /* when the latest pass over all sessions started */
	struct loc_comm *comms;
	struct loc_region *regions;
	uint32_t n_regions;
	uint64_t next_region;
	struct account *accounts;
	uint64_t mem_used;
	uint64_t own_used; /* the part of mem_used that loc_account_charge has booked */
	struct loc_result *results;
	struct checks *checks; /* checks of manifests */
	hsh_leaf_fn *crc32c;   /* NULL: not loaded yet, or not available */
};

struct account { /* the memory and regions of one user */
	uint32_t uid;
	uint32_t sessions, regions;
	uint64_t bytes;
	/* Bytes that other users had reserved but not touched at the last count, and the time until
	 * which this count is used. */
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
	uint32_t session; /* the owner; 0: a result region */
	uint32_t use;     /* enum wl_region_use, if it has an owner */
	uint32_t uid;     /* the user whose account is charged */
	uint64_t size;    /* mapped bytes, whole pages */
	uint64_t charged;
	uint8_t *map;
	_Atomic bool *mapped; /* see struct ste_region; NULL before the first synchronization */
	int fd; /* kept for result regions, and for others unless descriptors are scarce; else -1 */
	uint32_t refs; /* slots and operations that use it */
	/* References of users that only send the memory, and that accept that the owner frees
	 * it. */
	uint32_t lent;
	bool orphan; /* its owner is gone: it is freed with the last reference */
	UT_hash_handle hh;
	struct loc_region *prev, *next; /* neighbours in the owner's list */
};

struct loc_comm {
	struct loc *loc;
	uint32_t id, session, uid;
	uint32_t refs; /* held by the table, operations, and results that wait for its slots */
	bool closed;
	void *map; /* SHM_SIZE bytes */
	int sq_bell, data_bell;
	struct cc_watch *watch;
	bool draining;
	bool checking; /* a manifest is being checked: later entries wait */
	bool awaited;  /* loc_comm_await_operand */
	uint32_t head, attr_version;
	struct eng *eng; /* the struct eng that watches data_bell, or NULL */
	struct ste *ste; /* the struct ste that watches data_bell, or NULL */
	uint64_t busy;   /* a bit for each slot that is submitted and not completed */
	struct comm_slot {
		uint32_t gen;                /* counts submissions */
		struct loc_region *in, *out; /* referenced while the slot is busy */
		/* For a synchronization; referenced while the slot is busy. */
		struct loc_manifest *manifest;
	} slot[SHM_SLOTS];
	UT_hash_handle hh;
};

/* A manifest. Its memory stays while the manifest has users: the slot, and the job until the job no
 * longer uses the memory. The data that was copied out of the memory stays while the manifest has
 * references. */
struct loc_manifest {
	struct loc *loc;
	uint32_t refs, users;
	struct loc_region *region;
	uint32_t n_regions; /* regions in which its tensors lie */
	struct loc_region **regions;
	struct shm_state state;
	uint32_t uid;
	uint64_t charged; /* bytes charged for the agent's own tables */
};

enum result_state { RESULT_BUSY = 1, RESULT_IN_USE, RESULT_IDLE };

/* A result region: BUSY while an operation writes it, IN_USE while processes still copy out of it.
 */
struct loc_result {
	struct loc *loc;
	struct loc_region *region;
	struct loc_group group;
	/* A process whose session has ended may still read the region, so the region is not reused.
	 */
	bool abandoned;
	uint64_t size_class;
	enum result_state state;
	uint64_t idle_since_ns;
	uint32_t n_readers;
	uint32_t cap_members;
	struct loc_reader *readers; /* owned, like mappers; room for cap_members */
	/* Communicators whose processes have the region mapped. No data of other processes may be
	 * written to the region. */
	uint32_t n_mappers;
	uint32_t *mappers;
	struct loc_result *prev, *next;
};

/* ---- session.c ---- */

struct session *loc_session_find(const struct loc *loc, uint32_t id);
/* Sends the descriptor of a region without a request (wire_local_is_handover). The caller keeps its
 * descriptor. CC_ERR_*: the descriptor was not sent, but the session goes on. */
int loc_session_hand_over(struct loc *loc, uint32_t session, const struct wl_reply *r, int fd);
void loc_session_free_all(struct loc *loc);

/* ---- queue.c ---- */

/* Handles the result of a manifest's check. m: the manifest, which the slot owns from now on; or
 * NULL. */
void loc_comm_checked(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_manifest *m, uint32_t code, const char *text);
/* Is the reader's submission still in the slot, busy or with a result that the shim has not taken
 * yet? */
bool loc_comm_holds(const struct loc_reader *h);

/* ---- account.c ---- */

struct account *loc_account_get(struct loc *loc, uint32_t uid);
/* Frees the account if the user has no memory and no regions. */
void loc_account_put(struct loc *loc, struct account *a);
/* Books `more` bytes for a user. Returns WIRE_SUCCESS, or another code; then text names the limit
 * that was reached. */
uint32_t loc_account_book(struct loc *loc, struct account *a, uint64_t more, char *text);
void loc_account_unbook(struct loc *loc, uint32_t uid, uint64_t bytes, uint32_t regions);

/* ---- region.c ---- */

/* Makes a region for the session. Returns WIRE_SUCCESS, or another code and a sentence in
 * text[WL_TEXT_MAX]. */
uint32_t loc_region_alloc(struct loc *loc, struct session *s, uint64_t size, enum wl_region_use use,
	struct loc_region **ret, int *ret_fd, char *text);
/* Makes a region of memory that the process sent: a sealed memfd of ordinary pages with `size`
 * bytes. *fd becomes -1 if the region uses the memory. Otherwise the caller closes *fd, with
 * loc_packet_close_foreign. */
uint32_t loc_region_adopt(struct loc *loc, struct session *s, int *fd, uint64_t size,
	struct loc_region **ret, char *text);
uint32_t loc_region_free(struct loc *loc, struct session *s, uint64_t id, char *text);
struct loc_region *loc_region_find(const struct loc *loc, uint64_t id);
struct loc_region *loc_region_ref(struct loc_region *r);
void loc_region_unref(struct loc *loc, struct loc_region *r); /* NULL is fine */
void loc_region_session_closed(struct loc *loc, struct session *s);
/* Makes a region without a session. `bytes` of it are charged to uid. */
uint32_t loc_region_new_result(struct loc *loc, uint32_t uid, uint64_t size, uint64_t bytes,
	struct loc_region **ret, char *text);
/* Raises the bytes that are charged. */
uint32_t loc_region_charge(struct loc *loc, struct loc_region *r, uint64_t bytes, char *text);
/* Frees the region. empty: its pages are freed even if processes have them mapped. */
void loc_region_drop_result(struct loc *loc, struct loc_region *r, bool empty);

/* ---- result.c ---- */

/* Returns the result region with this id, if it holds a result for this communicator of the
 * session; or NULL. */
struct loc_result *loc_result_find(
	struct loc *loc, uint32_t session, uint32_t comm, uint64_t region);
/* Records that the communicator's process has the region's descriptor. False: there are too many
 * such processes. */
bool loc_result_add_mapper(struct loc_result *res, uint32_t comm);
/* The communicator's process may have unmapped its results. So the result regions that are recorded
 * as mapped by this process are not used again. */
void loc_result_comm_closed(struct loc *loc, const struct loc_comm *c);
void loc_result_free_all(struct loc *loc);

/* ---- manifest.c ---- */

int loc_checks_open(struct loc *loc);
/* Compares the manifest at the beginning of `region` with its submission: a small manifest at once,
 * a large one in a thread. loc_comm_checked follows, perhaps before this function returns.
 * References c. */
void loc_manifest_check(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_region *region);
/* Waits for the threads, and drops the results of their checks. */
void loc_checks_free(struct loc *loc);

#endif
