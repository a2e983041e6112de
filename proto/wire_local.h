/* SPDX-License-Identifier: MIT
 *
 * Control messages between a shim and its agent. Each SOCK_SEQPACKET packet contains one protobuf
 * message (proto/local.proto), at most WL_PACKET_MAX bytes, and at most WL_FDS_MAX descriptors.
 * Pure.
 *
 * Every request has a req_id > 0 that the shim chooses, and gets exactly one reply with the same
 * req_id. Replies may come in any order, because a connect waits for votes while other requests are
 * answered. The hello must come first. The agent closes the connection after a malformed packet.
 */
#ifndef WIRE_LOCAL_H
#define WIRE_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "proto/wire_ballot.h"
#include "proto/wire_view.h"

#define WL_VERSION_MIN 2u
#define WL_VERSION_MAX 2u
#define WL_PACKET_MAX  4096u
#define WL_FDS_MAX     3u
#define WL_NAME_MAX    64u
#define WL_TEXT_MAX    512u
#define WL_SEQS_MAX    64u

/* A feature: the answer to the hello comes with a socket for the beat. A thread of the shim answers
 * each packet that the agent sends on this socket, and so shows that its process runs. */
#define WL_BEAT 1u

enum wl_type {
	WL_HELLO = 1,       /* -> version, features; fd, with WL_BEAT: the socket of the beat */
	WL_COMM_CREATE = 2, /* -> comm; fds: queue pair memfd, submission doorbell, data doorbell */
	WL_COMM_CONNECT = 3, /* -> run, generation, ballots, view */
	WL_COMM_DESTROY = 4,
	WL_VOTE = 5, /* -> flag (the answer), ballots, view; generation if the kind is exclusive */
	WL_REGION_ALLOC = 6, /* -> region, size; fd: sealed memfd, read-write */
	WL_REGION_FREE = 7,
	/* A region that the agent named in a completion or a command -> region, size; fd for
	 * reading. */
	WL_REGION_MAP = 8,
	/* Like COMM_CREATE, for a communicator that was connected when its agent died -> comm,
	 * run, generation, done, ballots; fds as for COMM_CREATE. */
	WL_COMM_ATTACH = 9,
	/* Registered memory of an agent that died; the request brings fd, the sealed memfd ->
	 * region. */
	WL_REGION_ADOPT = 10,
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
	char name[WL_NAME_MAX]; /* name of the program, for logs and pcclctl */
	/* WL_COMM_CREATE */
	struct cc_addr master;
	uint32_t group;
	uint32_t pool_size; /* streams per link; 0 means 1 */
	/* all requests that name a communicator */
	uint32_t comm;
	/* WL_COMM_DESTROY */
	/* Why the peer leaves the run; "": it does not need the run any more. */
	char text[WL_TEXT_MAX];
	bool until_left; /* answer when the master has confirmed, or after a short time */
	/* WL_REGION_* */
	uint64_t region;
	uint64_t size; /* bytes */
	uint32_t use;  /* enum wl_region_use */
	/* WL_COMM_CONNECT, WL_COMM_ATTACH: id and token of the peer. The shim chooses them at
	 * random for each pcclConnect, so a repeated request names the same peer. */
	struct cc_id peer, token;
	uint32_t thread; /* the same requests: number of the communicator's main thread, or 0 */
	enum wire_ballot ballot; /* WL_VOTE */
	/* WL_COMM_ATTACH: the last numbers of ballots that the process got. */
	uint64_t ballots[WIRE_BALLOTS];
	/* WL_COMM_CREATE, WL_COMM_ATTACH: another address of the same master, where the previous
	 * agent reached it last. Family 0 means that none is known. */
	struct cc_addr master_addr;
	/* WL_COMM_ATTACH. The fields master, group and pool_size are also used. */
	struct cc_id run; /* from the reply to WL_COMM_CONNECT */
	uint64_t view_id; /* of the last view that the previous agent received */
	uint32_t global;  /* world size of the run in this view */
	uint32_t n_seqs;
	/* Attempts to be checked, whose whole result lies in the result region. After them, the
	 * latest attempts that have succeeded. */
	uint64_t seqs[WL_SEQS_MAX];
	uint32_t n_succeeded; /* the last n_succeeded of seqs are the attempts that succeeded */
};

struct wl_reply {
	uint32_t req_id;        /* 0: the packet answers no request; see wire_local_is_handover */
	uint32_t code;          /* pcclResult_t */
	char text[WL_TEXT_MAX]; /* the failure and a remedy; "" on success */
	uint32_t version_min, version_max; /* with pcclVersionMismatch: versions of the agent */
	uint32_t version;                  /* WL_HELLO: the chosen version */
	uint64_t features;
	uint32_t hash_type; /* WL_HELLO: enum wm_hash_type; 0: the default */
	uint32_t comm;
	uint64_t region;
	uint64_t size;
	bool flag;
	struct cc_id run; /* WL_COMM_CONNECT, _ATTACH: the run, for a later WL_COMM_ATTACH */
	/* WL_COMM_CONNECT, _ATTACH, WL_VOTE: the generation that the application knows from now on;
	 * 0: as before. */
	uint64_t generation;
	uint64_t done; /* WL_COMM_ATTACH: bit i means that seqs[i] succeeded */
	/* WL_COMM_CONNECT, _ATTACH, WL_VOTE: the last numbers of ballots whose end the peer knows
	 * with this reply. */
	uint64_t ballots[WIRE_BALLOTS];
	/* View of an accepted peer, at the end of each call that involves other peers. */
	struct wire_view view;
};

/* Does the packet hand over the result region of an operation of `comm` (region, size; fd)? Any
 * other packet with req_id 0 ends the session, and its code and text give the reason.
 */
static inline bool wire_local_is_handover(const struct wl_reply *r)
{
	return r->req_id == 0 && r->region != 0;
}

/* Encode a message into buf, which has WL_PACKET_MAX bytes. Return the length, or a negative enum
 * cc_err. */
int wire_local_put_request(const struct wl_request *r, uint8_t *buf);
int wire_local_put_reply(const struct wl_reply *r, uint8_t *buf);
/* Decode a message. Return 0, or a negative enum cc_err with *why (static text). On failure *ret is
 * unchanged. */
int wire_local_get_request(
	const uint8_t *buf, size_t len, struct wl_request *ret, const char **why);
int wire_local_get_reply(const uint8_t *buf, size_t len, struct wl_reply *ret, const char **why);

#endif
