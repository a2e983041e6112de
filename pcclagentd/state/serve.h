/* SPDX-License-Identifier: MIT
 *
 * serve.c: streams from other agents.
 */
#ifndef STATE_SERVE_H
#define STATE_SERVE_H

#include <stdint.h>

#include "pcclagentd/state/state.h"

struct ste_conn;
struct ste_job;
struct ste_peer;

struct ste_conn *ste_conn_new(const struct ste *e, int fd, uint64_t features, uint64_t seq);
void ste_conn_add(struct ste *e, struct ste_conn *c);
void ste_conn_ready(struct ste *e, struct ste_conn *c, uint32_t events);
void ste_conn_acked(struct ste *e, struct ste_conn *c, struct ste_peer *p, int slot);
void ste_conn_close(struct ste *e, struct ste_conn *c);
/* Closes the connections on which data of the job is being sent. Unless `p` is NULL, closes only
 * those that send data of this member. */
void ste_conns_forget(struct ste *e, struct ste_job *j, const struct ste_peer *p);
/* Continues the answers that are read through windows. Other answers continue on epoll events. */
void ste_conns_step(struct ste *e);
/* Closes connections on which nothing has moved for too long. */
void ste_conns_tick(struct ste *e);
/* Frees closed connections. To be called when no unhandled epoll event can point to these
 * connections. */
void ste_conns_free_closed(struct ste *e);

#endif
