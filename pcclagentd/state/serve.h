/* SPDX-License-Identifier: MIT
 *
 * Streams from other agents: serve.c.
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
/* Nothing of the job (and of the member, unless NULL) is sent any more. */
void ste_conns_forget(struct ste *e, struct ste_job *j, const struct ste_peer *p);
/* Those that wait for a window; the others are told by epoll. */
void ste_conns_step(struct ste *e);
void ste_conns_tick(struct ste *e);
/* Nothing that epoll has reported can point to them. */
void ste_conns_free_closed(struct ste *e);

#endif
