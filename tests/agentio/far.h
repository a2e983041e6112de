/* SPDX-License-Identifier: MIT
 *
 * Another agent, played by the test: the next one in a ring of which the test is the master.
 */
#ifndef FAR_H
#define FAR_H

#include "proto/wire_link.h"
#include "tests/agentio/fixture.h"

struct far {
	struct cc_id id;
	int listener;
	struct cc_addr at;
	uint32_t n_streams; /* of links to it, without the one for small operations */
	struct cc_id peer;  /* of the client */
};

void far_listen(struct far *x, uint32_t n_streams);
/* A process of the agent under test joins, and a round orders the ring: group 1, the far agent next
 * and before. addrs: where to look for it. */
void far_order(struct far *x, struct fx *f, struct master *m, struct client *a, struct queue *qa,
	const struct cc_addr *addrs, uint32_t n, bool at_master);
/* One stream, up to its hello, which must be right. */
int far_accept_stream(struct far *x, const struct master *m, struct wlk_hello *h);
void far_answer(int fd, enum wlk_code code, const char *text);
/* Takes all streams, in whatever order: n_streams by their numbers, and then the one for small
 * operations. */
void far_accept_link(struct far *x, const struct master *m, int *fds);
/* The agent says that it could. */
void far_expect_success(struct master *m);

#endif
