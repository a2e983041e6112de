/* SPDX-License-Identifier: MIT
 *
 * The rings of a run as a graph.
 */
#ifndef CTL_DOT_H
#define CTL_DOT_H

#include <stdio.h>

#include "proto/wire_admin.h"

/* Prints the table "rings" of a master's reply in the language of Graphviz. Each ring has a colour,
 * and its slowest links are bold. Returns 0, or CC_ERR_NOENT if the reply has no such table. */
int print_dot(FILE *f, const struct wa_reply *r);

#endif
