/* SPDX-License-Identifier: MIT
 *
 * Outbound links, for the files that open (try.c, opening.c) and keep (link.c) them. Stream 0 finds
 * an address that leads to the wanted agent: the candidates are connected side by side, a little
 * apart, but only one at a time says hello, so that the other agent never sees two links. The other
 * streams then go to the address that worked. A path may lose the packet that connects, and the
 * kernel sends it again only after a second: where nothing comes back, more than one connection is
 * tried.
 *
 * A link that was stuck (see base/flow.h) had packets that are too large for the path: the next one
 * to that agent has smaller segments. When the smallest are too large, too, none is tried until a
 * probe gets through: the pair fails like one that cannot connect.
 */
#ifndef OUT_LINK_H
#define OUT_LINK_H

#include "pcclagentd/net/net_internal.h"

#define CANDIDATES (WM_ADDRS_MAX + 1)
#define SYNS       5u /* connections tried at a time for one stream */
#define ERROR_SIZE 224

enum try_state {
	TRY_IDLE = 0,
	TRY_CONNECTING,
	TRY_WAITING, /* connected, its hello is not yet due */
	TRY_HELLO,   /* hello sent */
	TRY_GOOD,
	TRY_FAILED,
};

/* One of the connections that are tried for a stream. */
struct syn {
	struct connect_try *try;
	struct cc_conn *conn;
};

struct connect_try {
	struct out_link *link;
	struct cc_addr addr;
	uint16_t stream;
	enum try_state state;
	struct syn syns[SYNS]; /* CONNECTING */
	uint32_t n_syns;
	uint64_t next_syn;
	int fd; /* WAITING, HELLO, GOOD; else -1 */
	struct cc_watch *watch;
	uint64_t said_ns, hello_deadline;
	struct cc_key proof; /* of its hello */
	uint32_t have;
	uint8_t ack[WLK_ACK_SIZE];
	bool limit; /* FAILED: see wm_failure */
	char error[ERROR_SIZE];
};

struct out_link {
	struct net_run *run;
	uint32_t num;
	struct wm_endpoint to;
	struct cc_id nonce;  /* of the answer to stream 0 */
	uint32_t asked;      /* for so many streams */
	uint32_t n_streams;  /* how many there are */
	bool sets;           /* they take turns */
	struct probe *probe; /* NULL: a link */
	bool bulk;           /* which the other agent knows how to go on with */
	enum wlk_service service;
	bool up;
	bool silent; /* the core was told */
	struct link_health health;
	struct cc_addr here; /* our end, when it is up */
	uint64_t since, deadline, next_try;
	uint64_t trip_ns; /* the longest round trip that was measured; 0: nothing has come back */
	uint32_t n_tries, started;
	struct connect_try tries[CANDIDATES]; /* stream 0 to each candidate */
	/* n_streams + 1 once a candidate was good: [0] is that one, the last one is for small
	 * operations. */
	struct connect_try *streams;
	uint32_t next_stream;
	struct cc_conn *eager; /* that one, when it is up */
	int eager_fd;          /* its own */
	struct flow eager_flow;
	uint32_t segments; /* the place of their size in cc_tcp_sizes */
	bool send_failed;  /* and does not take what it should */
	struct out_link *prev, *next;
};

/* ---- try.c: one stream being opened ---- */

void net_try_start(struct connect_try *t);
void net_try_stop(struct connect_try *t);
__attribute__((format(printf, 2, 3))) void net_try_fail(
	struct connect_try *t, const char *fmt, ...);
void net_try_say_hello(struct connect_try *t);
void net_try_tick(struct connect_try *t, uint64_t now);
/* The step that was not done in time, as far as it is known. */
const char *net_try_lacks(const struct connect_try *t);
/* How many streams a link has whose first one is on fd. */
void net_try_choose_streams(struct out_link *l, int fd);
uint32_t net_link_bound_ms(const struct out_link *l, enum cc_bound b);

/* ---- opening.c: a link being opened ---- */

/* Takes the link as far as it goes without waiting. It may be gone afterwards. */
void net_link_advance(struct out_link *l);
void net_link_go_on(struct out_link *l, uint64_t now);

/* ---- link.c ---- */

struct out_link *net_link_find(const struct net_run *r, const struct cc_id *peer);
void net_link_free(struct out_link *l);
/* An established link is down: frees it, and tells the core. Of how: silent, stuck and text. */
void net_link_break(struct out_link *l, const struct eng_event *how);

#endif
