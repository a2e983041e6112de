/* SPDX-License-Identifier: MIT
 *
 * Another agent, which the test plays: the next host in a ring. The test is the master, too.
 */
#ifndef OTHER_H
#define OTHER_H

#include "proto/wire_link.h"
#include "tests/agentio/fixture.h"

struct other {
	struct cc_id id;
	int listener;
	struct cc_addr at;
	uint32_t n_streams; /* of links to it, without the eager stream */
	struct cc_id peer;  /* the peer of the client */
};

void other_listen(struct other *x, uint32_t n_streams);
/* Lets a process of the agent under test join, and orders a ring: group 1, with this agent as the
 * next and the previous host. addrs: the addresses at which the agent under test has to look for
 * it. */
void other_order(struct other *x, struct fx *f, struct master *m, struct client *a,
	struct queue *qa, const struct cc_addr *addrs, uint32_t n, bool at_master);
/* Accepts one stream and checks its hello. */
int other_accept_stream(struct other *x, const struct master *m, struct wlk_hello *h);
void other_answer(int fd, enum wlk_code code, const char *text);
/* Accepts all streams of a link, in any order. fds: the n_streams streams by number, then the eager
 * stream. */
void other_accept_link(struct other *x, const struct master *m, int *fds);
/* Expects a report of the round without failures. */
void other_expect_success(struct master *m);

#endif
