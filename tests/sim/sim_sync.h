/* SPDX-License-Identifier: MIT
 *
 * Shared state in simulated runs, and who is elected.
 */
#ifndef SIM_SYNC_H
#define SIM_SYNC_H

#include "tests/sim/sim.h"

/* sim_sync.c */
/* What a program begins with. */
void sim_sync_setup(struct sim *s, struct sim_peer *p);
/* Before a step: something may have gone wrong with its state. */
void sim_sync_prepare(struct sim *s, struct sim_peer *p);
/* The program calls. */
void sim_sync_begin(struct sim *s, struct sim_peer *p);
/* The shim has the answer, in o. */
void sim_sync_end(struct sim *s, struct sim_peer *p, const struct sim_op *o);
/* The program awaits it: it trains, and has the next revision. */
void sim_sync_learn(struct sim *s, struct sim_peer *p);
/* It was put out, and this is why. */
void sim_sync_put_out(struct sim *s, struct sim_peer *p, const char *text);
void sim_sync_abandon(struct sim *s, struct sim_peer *p);
/* The member has its answer, like sim_xfer_heard. */
void sim_sync_heard(struct sim *s, struct sim_peer *p, struct sim_op *o);
void sim_sync_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o);
void sim_sync_start(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_drop(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_free(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_event(struct sim *s, const struct sim_event *ev);
int sim_sync_waiter(const struct sim *s); /* a host that is done, and others are not; or -1 */

/* sim_elect.c */
/* A master hears of an offer. */
void sim_elect_vote(struct sim *s, const struct wm_op_vote *v);
/* Who takes part, and what is expected, before a step of a master. */
void sim_elect_before(struct sim *s, const struct sim_master *m, const struct ccm_event *ev);
/* What it said in that step: is it what the rules say? */
void sim_elect_after(struct sim *s, const struct sim_master *m);
/* Was this peer put out, rightly? */
bool sim_elect_is_out(const struct sim *s, const struct cc_id *peer);

#endif
