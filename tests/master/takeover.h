/* SPDX-License-Identifier: MIT
 *
 * A run of three hosts whose master died. Its agents connect to a new master and send their
 * snapshots.
 */
#ifndef TAKEOVER_H
#define TAKEOVER_H

#include "tests/master/fake.h"

#define TK_SEQ 5 /* sequence number of the last attempt that the old master started */

/* The snapshot of one agent. */
struct tk_know {
	struct wm_resume r;
	struct wm_group_view own;
	struct wm_ring_position position;
	struct wm_outcome outcomes[4];
	struct cc_id lost; /* with r.view.n_lost == 1 */
};

/* The run of the test. The fourth host is for the test to use. */
extern struct takeover {
	struct fk f;
	struct fk_host *h[4]; /* a, b, c */
	struct fk_peer p[4];  /* in group 0, on h[i] */
	/* The snapshot of h[i]'s agent: at first the state that the old master sent last. */
	struct tk_know know[4];
} tk;

/* Makes a run with three accepted peers and replaces its master. No agent has connected to the new
 * master yet. */
void tk_setup(void);
void tk_teardown(void);

void tk_connect(size_t i); /* opens a new connection of h[i]'s agent */
void tk_join(size_t i, enum wm_join_phase phase);
/* h[i]'s agent knows the view after the loss of p[lost]. */
void tk_lost(size_t i, size_t lost);
void tk_end(size_t i);       /* sends the last message of the snapshot of h[i]'s agent */
void tk_come_back(size_t i); /* connects h[i], and its peer joins as accepted */
void tk_all_come_back(void);
void tk_all_end(void);

void tk_none_of(enum wm_type type); /* checks that no inbox holds such a message */
void tk_no_error(void);             /* checks that no inbox holds an abort, a kick or a refusal */
void tk_works(void);                /* checks that all three can do an operation */

#endif
