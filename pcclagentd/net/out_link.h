/* SPDX-License-Identifier: MIT
 *
 * Outbound links, for the files that open them (try.c, opening.c) and keep them (link.c). The
 * connections of a probe and of a measurement are opened in the same way.
 *
 * Stream 0 finds an address that leads to the wanted agent. The candidates for this address are
 * connected in parallel, each a little later than the one before. Only one of them at a time sends
 * a hello, so that the other agent never sees two links. The other streams then use the address
 * that worked. A path may lose the packet that opens a connection, and the kernel sends it again
 * only after a second. So if nothing comes back, several connections are tried for one stream.
 *
 * If a link was stuck (see base/flow.h), its packets were too large for the path. So the next link
 * to the same agent has smaller segments. If the smallest segments are too large, too, no link is
 * opened until a probe gets through. Until then the pair fails like a pair that cannot connect.
 */
#ifndef OUT_LINK_H
#define OUT_LINK_H

#include "pcclagentd/net/net_internal.h"

#define CANDIDATES (WM_ADDRS_MAX + 1)
#define SYNS       5u /* connections that are tried at a time for one stream */
#define ERROR_SIZE 224

enum try_state {
	TRY_IDLE = 0,
	TRY_CONNECTING,
	TRY_WAITING, /* connected; may not send its hello yet */
	TRY_HELLO,   /* has sent its hello */
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
	struct syn syns[SYNS]; /* used in CONNECTING */
	uint32_t n_syns;
	uint64_t next_syn;
	int fd; /* used in WAITING, HELLO and GOOD; -1 in other states */
	struct cc_watch *watch;
	uint64_t said_ns, hello_deadline; /* when the hello was sent; the limit for its answer */
	struct cc_key proof;              /* proof of the hello */
	uint32_t have;                    /* bytes of `ack` */
	uint8_t ack[WLK_ACK_SIZE];
	bool limit; /* FAILED: one of the two agents has reached a limit */
	char error[ERROR_SIZE];
};

struct out_link {
	struct net_run *run;
	uint32_t num;
	struct wm_endpoint to;
	struct cc_id nonce;  /* nonce of the answer to stream 0 */
	uint32_t asked;      /* requested number of streams */
	uint32_t n_streams;  /* actual number, without the stream for the eager path */
	bool sets;           /* the streams are divided into stream sets */
	struct probe *probe; /* the probe that uses this connection, or NULL */
	struct pair *pair;   /* the pair of a measurement that uses these connections, or NULL */
	bool bulk;           /* the other agent can exchange the bytes of a probe */
	enum wlk_service service;
	bool up;     /* established */
	bool silent; /* AGT_EV_LINK_SILENT has reported that the link is silent */
	struct link_health health;
	struct cc_addr here; /* local address, if `up` */
	uint64_t since, deadline, next_try;
	uint64_t trip_ns;          /* the longest round trip measured; 0: nothing has come back */
	uint32_t n_tries, started; /* candidates: all; those that were started */
	struct connect_try tries[CANDIDATES]; /* stream 0 to each candidate */
	/* net_link_all_streams(), when a candidate has succeeded. [0] is the candidate. The last
	 * stream of a link is for the eager path. */
	struct connect_try *streams;
	uint32_t next_stream;
	struct cc_conn *eager; /* the stream for the eager path, if `up` */
	int eager_fd;          /* the socket of `eager`, which owns it */
	struct flow eager_flow;
	uint32_t segments; /* the size of its segments: index of cc_tcp_sizes */
	bool send_failed;  /* `eager` has not taken an operand */
	struct out_link *prev, *next;
};

/* Does it belong to a probe or a measurement? */
static inline bool net_link_is_none(const struct out_link *l)
{
	return l->probe || l->pair;
}

/* Returns the number of its streams, with the stream for the eager path. */
static inline uint32_t net_link_all_streams(const struct out_link *l)
{
	return l->n_streams + !net_link_is_none(l);
}

/* ---- try.c: one stream being opened ---- */

void net_try_start(struct connect_try *t);
void net_try_stop(struct connect_try *t);
__attribute__((format(printf, 2, 3))) void net_try_fail(
	struct connect_try *t, const char *fmt, ...);
void net_try_say_hello(struct connect_try *t);
void net_try_tick(struct connect_try *t, uint64_t now);
/* Returns a text that names the step that was not done in time. */
const char *net_try_lacks(const struct connect_try *t);
/* Chooses the number of streams and the use of stream sets for a link whose stream 0 is on `fd`. */
void net_try_choose_streams(struct out_link *l, int fd);
uint32_t net_link_bound_ms(const struct out_link *l, enum cc_bound b);

/* ---- opening.c: a link being opened ---- */

/* Does all steps that are possible without waiting. The link may be freed when this returns. */
void net_link_advance(struct out_link *l);
/* Checks the deadlines, then continues. The link may be freed when this returns. */
void net_link_go_on(struct out_link *l, uint64_t now);

/* ---- link.c ---- */

struct out_link *net_link_find(const struct net_run *r, const struct cc_id *peer);
/* Opens a link whose path needs no probe, or whose probe has succeeded. There must be no link to
 * the same agent. */
void net_link_begin(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams);
void net_link_free(struct out_link *l);
/* Frees an established link and sends AGT_EV_LINK_DOWN. Of `how` it uses silent, stuck and text. */
void net_link_break(struct out_link *l, const struct eng_event *how);

#endif
