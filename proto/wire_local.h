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

#define WL_VERSION_MIN 1u
#define WL_VERSION_MAX 1u
#define WL_PACKET_MAX  4096u
#define WL_FDS_MAX     3u
#define WL_NAME_MAX    64u
#define WL_TEXT_MAX    512u

enum wl_type {
	WL_HELLO = 1,       /* -> version, features */
	WL_COMM_CREATE = 2, /* -> comm; fds: queue pair memfd, submission doorbell, data doorbell */
	WL_COMM_CONNECT = 3,
	WL_COMM_DESTROY = 4,
	WL_UPDATE_TOPOLOGY = 5,
	WL_ARE_PENDING = 6,  /* -> flag */
	WL_REGION_ALLOC = 7, /* -> region, size; fd: sealed memfd, read-write */
	WL_REGION_FREE = 8,
	WL_REGION_MAP = 9, /* a result region named in a completion -> region, size; fd */
};

enum wl_region_use { WL_REGION_REGISTERED = 1, WL_REGION_STAGING = 2 };

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
	/* WL_REGION_* */
	uint64_t region;
	uint64_t size; /* bytes */
	uint32_t use;  /* enum wl_region_use */
};

struct wl_reply {
	uint32_t req_id;        /* 0: unasked (goodbye: code and text say why the session ends) */
	uint32_t code;          /* pcclResult_t */
	char text[WL_TEXT_MAX]; /* what failed and what to do; "" on success */
	uint32_t version_min, version_max; /* with pcclVersionMismatch: the agent's */
	uint32_t version;                  /* WL_HELLO: chosen */
	uint64_t features;
	uint32_t comm;
	uint64_t region;
	uint64_t size;
	bool flag;
};

/* buf holds WL_PACKET_MAX bytes. Return the length, or a negative enum cc_err. */
int wire_local_put_request(const struct wl_request *r, uint8_t *buf);
int wire_local_put_reply(const struct wl_reply *r, uint8_t *buf);
/* 0 or a negative enum cc_err with *why (static text). *ret untouched on failure. */
int wire_local_get_request(
	const uint8_t *buf, size_t len, struct wl_request *ret, const char **why);
int wire_local_get_reply(const uint8_t *buf, size_t len, struct wl_reply *ret, const char **why);

#endif
