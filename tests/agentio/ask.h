/* SPDX-License-Identifier: MIT
 *
 * Asks the fixture's agent through its admin socket, as pcclctl does.
 */
#ifndef ASK_H
#define ASK_H

#include "proto/wire_admin.h"
#include "tests/agentio/fixture.h"

/* The caller clears *ret. */
void ask(struct fx *f, enum wa_verb verb, struct wa_reply *ret);
/* Each of these functions fails the test if there is no such table, row or column. */
const struct wa_table *ask_table(const struct wa_reply *r, const char *table);
uint64_t ask_number(const struct wa_table *t, uint32_t row, const char *col);
const char *ask_text(const struct wa_table *t, uint32_t row, const char *col);

#endif
