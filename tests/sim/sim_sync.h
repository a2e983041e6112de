/* SPDX-License-Identifier: MIT
 *
 * Shared state in simulated runs, and its elections.
 */
#ifndef SIM_SYNC_H
#define SIM_SYNC_H

#include "tests/sim/sim.h"

/* sim_sync.c */
/* Chooses the contents with which a program begins. */
void sim_sync_setup(struct sim *s, struct sim_peer *p);
/* Before a step: sometimes lets the program's state drift. */
void sim_sync_prepare(struct sim *s, struct sim_peer *p);
/* The program calls pcclSynchronizeSharedState. */
void sim_sync_begin(struct sim *s, struct sim_peer *p);
/* The shim has the answer, which is in `o`. */
void sim_sync_end(struct sim *s, struct sim_peer *p, const struct sim_op *o);
/* The program awaits a success: it trains, and has the next revision. */
void sim_sync_learn(struct sim *s, struct sim_peer *p);
/* The program was kicked, with this text. It loads a checkpoint if the text says so. */
void sim_sync_put_out(struct sim *s, struct sim_peer *p, const char *text);
void sim_sync_abandon(struct sim *s, struct sim_peer *p);
/* The member gets a success. Checks that all members of its group have the contents. */
void sim_sync_heard(struct sim *s, struct sim_peer *p, struct sim_op *o);
void sim_sync_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o);
void sim_sync_start(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_drop(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_free(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_sync_event(struct sim *s, const struct sim_event *ev);
/* Returns a host that has finished its job while others have not; or -1. */
int sim_sync_waiter(const struct sim *s);

/* sim_elect.c */
/* A master receives a vote with a candidate. */
void sim_elect_vote(struct sim *s, const struct wm_op_vote *v);
/* Notes the members and the expected revision, before a step of a master. */
void sim_elect_before(struct sim *s, const struct sim_master *m, const struct ccm_event *ev);
/* Checks the elections and kicks of that step against the rules. */
void sim_elect_after(struct sim *s, const struct sim_master *m);
/* Was this peer kicked by an election or for a failed transfer? */
bool sim_elect_is_out(const struct sim *s, const struct cc_id *peer);

#endif
