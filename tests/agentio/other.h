/* SPDX-License-Identifier: MIT
 *
 * Another agent, played by the test: the next one in a ring of which the test is the master.
 */
#ifndef OTHER_H
#define OTHER_H

#include "proto/wire_link.h"
#include "tests/agentio/fixture.h"

struct other {
	struct cc_id id;
	int listener;
	struct cc_addr at;
	uint32_t n_streams; /* of links to it, without the one for small operations */
	struct cc_id peer;  /* of the client */
};

void other_listen(struct other *x, uint32_t n_streams);
/* A process of the agent under test joins, and a round orders the ring: group 1, the far agent next
 * and before. addrs: where to look for it. */
void other_order(struct other *x, struct fx *f, struct master *m, struct client *a,
	struct queue *qa, const struct cc_addr *addrs, uint32_t n, bool at_master);
/* One stream, up to its hello, which must be right. */
int other_accept_stream(struct other *x, const struct master *m, struct wlk_hello *h);
void other_answer(int fd, enum wlk_code code, const char *text);
/* Takes all streams, in whatever order: n_streams by their numbers, and then the one for small
 * operations. */
void other_accept_link(struct other *x, const struct master *m, int *fds);
/* The agent says that it could. */
void other_expect_success(struct master *m);

#endif
