/* SPDX-License-Identifier: MIT
 *
 * Other agents, which the test plays: the next host in a ring, or both other hosts of a ring of
 * three. The test is the master, too.
 */
#ifndef OTHER_H
#define OTHER_H

#include "proto/wire_link.h"
#include "tests/agentio/fixture.h"

struct other {
	struct cc_id id;
	int listener;
	struct cc_addr at;
	uint32_t n_streams; /* streams of a link to this agent, without the eager stream */
	struct cc_id peer;  /* the peer of the process */
};

void other_listen(struct other *x, uint32_t n_streams);
/* Lets a process of the agent under test join, and orders a ring of group 1 in which this agent is
 * the next host and the previous host. addrs: the addresses at which the agent under test has to
 * look for this agent. */
void other_order(struct other *x, struct fx *f, struct master *m, struct client *a,
	struct queue *qa, const struct cc_addr *addrs, uint32_t n, bool at_master);
/* Does the same with two other agents in a ring of three hosts, and links between all hosts. Their
 * names are "nexthost" and "prevhost". */
void other_order_mesh(struct other *next, const struct other *prev, struct fx *f, struct master *m,
	struct client *a, struct queue *qa);
/* Accepts one stream and checks its hello. */
int other_accept_stream(struct other *x, const struct master *m, struct wlk_hello *h);
void other_answer(int fd, enum wlk_code code, const char *text);
/* Accepts all streams of a link, in any order. fds: the n_streams streams by number, then the eager
 * stream. */
void other_accept_link(struct other *x, const struct master *m, int *fds);
/* Accepts the connection of a probe, and answers that this agent exchanges bytes. */
int other_accept_probe(struct other *x, const struct master *m);
/* Exchanges the bytes of a probe, and closes the connection. */
void other_exchange(int fd);
/* Opens a stream of a link from the agent `from` to the agent under test, with a hello that the
 * master has proven, and expects this answer. *nonce: set by the answer to stream 0, for the other
 * streams of the link. */
int other_open_in(const struct cc_id *from, struct fx *f, const struct master *m, uint16_t stream,
	enum wlk_code code, struct cc_id *nonce);
/* Expects a report of the round without failures. */
void other_expect_success(struct master *m);

#endif
