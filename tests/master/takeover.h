/* SPDX-License-Identifier: MIT
 *
 * A run of three hosts whose master died: its agents come to a new one and say what they know.
 */
#ifndef TAKEOVER_H
#define TAKEOVER_H

#include "tests/master/fake.h"

#define TK_SEQ 5 /* of the last start that the last master made */

/* What an agent says of the run. */
struct tk_know {
	struct wm_resume r;
	struct wm_group_view own;
	struct wm_ring_position position;
	struct wm_outcome outcomes[4];
};

/* The run of the test; the fourth host is the test's own. */
extern struct takeover {
	struct fk f;
	struct fk_host *h[4];   /* a, b, c */
	struct fk_peer p[4];    /* of group 0, on h[i] */
	struct tk_know know[4]; /* by the agent of h[i]: at first, what it was told last */
} tk;

/* All three are accepted, the next master is there, and nobody has come to it yet. */
void tk_setup(void);
void tk_teardown(void);

void tk_connect(size_t i); /* a new connection of h[i]'s agent */
void tk_join(size_t i, enum wm_join_phase phase);
void tk_end(size_t i);       /* h[i]'s agent says what it knows, and has no more to say */
void tk_come_back(size_t i); /* connects, and joins as accepted */
void tk_all_come_back(void);
void tk_all_end(void);

void tk_none_of(enum wm_type type); /* nobody was told this */
void tk_no_error(void);             /* nobody was told of an error */
void tk_works(void);                /* all three do an operation */

#endif
