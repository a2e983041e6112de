/* SPDX-License-Identifier: MIT
 *
 * Control messages between a shim and its agent: one protobuf message (proto/local.proto) per
 * SOCK_SEQPACKET packet, at most WL_PACKET_MAX bytes and WL_FDS_MAX descriptors. Pure.
 *
 * Every request carries a req_id > 0 chosen by the shim and gets exactly one reply with the same
 * req_id, in any order: a connect waits for votes while other requests are answered. The hello must
 * come first. The agent closes the connection on a malformed packet.
 */
#ifndef WIRE_LOCAL_H
#define WIRE_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "proto/wire_view.h"

#define WL_VERSION_MIN 1u
#define WL_VERSION_MAX 1u
#define WL_PACKET_MAX  4096u
#define WL_FDS_MAX     3u
#define WL_NAME_MAX    64u
#define WL_TEXT_MAX    512u
#define WL_SEQS_MAX    64u

/* Features. WL_BEAT: a socket comes with the answer to the hello, on which a thread of the shim
 * answers each packet of the agent with one of its own: its process runs. */
#define WL_BEAT 1u

enum wl_type {
	WL_HELLO = 1,       /* -> version, features; fd, with WL_BEAT: the beat's socket */
	WL_COMM_CREATE = 2, /* -> comm; fds: queue pair memfd, submission doorbell, data doorbell */
	WL_COMM_CONNECT = 3, /* -> run, generation, topo_ballot, pending_ballot, view */
	WL_COMM_DESTROY = 4,
	WL_UPDATE_TOPOLOGY = 5, /* -> generation, topo_ballot, view */
	WL_ARE_PENDING = 6,     /* -> flag, pending_ballot, view */
	WL_REGION_ALLOC = 7,    /* -> region, size; fd: sealed memfd, read-write */
	WL_REGION_FREE = 8,
	WL_REGION_MAP = 9, /* a region that the agent named, in a completion or a command -> region,
			    * size; fd, to be read */
	WL_COMM_ATTACH = 10,  /* COMM_CREATE for a communicator that was connected when its agent
			       * died -> comm, run, generation, done, topo_ballot, pending_ballot;
			       * fds as  COMM_CREATE */
	WL_REGION_ADOPT = 11, /* registered memory of an agent that died; fd in the request: its
			       * sealed memfd -> region */
};

enum wl_region_use {
	WL_REGION_REGISTERED = 1,
	WL_REGION_STAGING = 2,
	WL_REGION_STATE = 3, /* shm_state.h */
};

struct wl_request {
	enum wl_type type;
	uint32_t req_id;
	/* WL_HELLO */
	uint32_t version_min, version_max;
	uint64_t features;
	char name[WL_NAME_MAX]; /* program, for logs and pcclctl */
	/* WL_COMM_CREATE */
	struct cc_addr master;
	uint32_t group;
	uint32_t pool_size; /* 0 means 1 */
	/* all that name a communicator */
	uint32_t comm;
	/* WL_COMM_DESTROY */
	char text[WL_TEXT_MAX]; /* why the peer leaves the run; "": it is done with it */
	bool until_left;        /* the answer is to wait for the master, not for long */
	/* WL_REGION_* */
	uint64_t region;
	uint64_t size; /* bytes */
	uint32_t use;  /* enum wl_region_use */
	/* WL_COMM_CONNECT, WL_COMM_ATTACH: who this is. Random, chosen by the shim for each
	 * pcclConnect, so that a connect that is asked for again is the same peer. */
	struct cc_id peer, token;
	uint32_t thread; /* likewise: number of the communicator's main thread, or 0 */
	/* WL_UPDATE_TOPOLOGY, WL_ARE_PENDING, WL_COMM_ATTACH: from the last reply with them */
	uint64_t topo_ballot, pending_ballot;
	/* WL_COMM_CREATE, WL_COMM_ATTACH: another place of that master, where the agent before
	 * found it last; family 0: none is known */
	struct cc_addr master_addr;
	/* WL_COMM_ATTACH: also master, group, pool_size */
	struct cc_id run;            /* from the reply to WL_COMM_CONNECT */
	uint64_t epoch;              /* of the last commit that the agent before knew */
	uint64_t ring_epoch;         /* the last round that it knew to be committed, and */
	uint64_t prepared;           /* that it had reported as good */
	uint64_t view_id;            /* of the view that it was told last, */
	uint32_t global, world_size; /* its size, and that of the group */
	uint64_t generation;         /* of the group, that it or the application knows of */
	uint32_t n_seqs;
	uint64_t seqs[WL_SEQS_MAX]; /* attempts whose result lies whole in the result region: did
				     * they succeed? Then the latest ones that have */
	uint32_t n_succeeded;       /* of them: these last ones */
};

struct wl_reply {
	uint32_t req_id;                   /* 0: unasked; see wire_local_is_handover */
	uint32_t code;                     /* pcclResult_t */
	char text[WL_TEXT_MAX];            /* what failed and what to do; "" on success */
	uint32_t version_min, version_max; /* with pcclVersionMismatch: the agent's */
	uint32_t version;                  /* WL_HELLO: chosen */
	uint64_t features;
	uint32_t hash_type; /* WL_HELLO: enum wm_hash_type, or 0: as it is without a setting */
	uint32_t comm;
	uint64_t region;
	uint64_t size;
	bool flag;
	struct cc_id run;    /* WL_COMM_CONNECT, _ATTACH: to present with WL_COMM_ATTACH */
	uint64_t generation; /* WL_COMM_CONNECT, _ATTACH, WL_UPDATE_TOPOLOGY: what the application
			      * knows of from now on */
	uint64_t done;       /* WL_COMM_ATTACH: bit i: seqs[i] succeeded */
	/* How many votes of the run have been answered: WL_COMM_CONNECT and _ATTACH tell both,
	 * WL_UPDATE_TOPOLOGY the first, WL_ARE_PENDING the second. */
	uint64_t topo_ballot, pending_ballot;
	struct wire_view view; /* of an accepted peer, with every end of a call that involves
				* others */
};

/* A packet that nobody asked for either hands the result region of an operation of `comm` over
 * (region, size; fd), or is a goodbye: code and text say why the session ends. */
static inline bool wire_local_is_handover(const struct wl_reply *r)
{
	return r->req_id == 0 && r->region != 0;
}

/* buf holds WL_PACKET_MAX bytes. Return the length, or a negative enum cc_err. */
int wire_local_put_request(const struct wl_request *r, uint8_t *buf);
int wire_local_put_reply(const struct wl_reply *r, uint8_t *buf);
/* 0 or a negative enum cc_err with *why (static text). *ret untouched on failure. */
int wire_local_get_request(
	const uint8_t *buf, size_t len, struct wl_request *ret, const char **why);
int wire_local_get_reply(const uint8_t *buf, size_t len, struct wl_reply *ret, const char **why);

#endif
