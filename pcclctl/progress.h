/* SPDX-License-Identifier: MIT
 *
 * The progress of measurements, as a bar on a terminal.
 */
#ifndef CTL_PROGRESS_H
#define CTL_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "pcclctl/target.h"
#include "proto/wire_admin.h"

#define CTL_PROGRESS_SIZE 128

/* Writes a line from the answer to WA_PROGRESS: a bar, the rounds that are done, the time that is
 * left. Returns false if no links are measured, or if `r` is another answer. */
bool ctl_progress_line(const struct wa_reply *r, char buf[CTL_PROGRESS_SIZE]);
/* Shows the progress on the terminal f until no links are measured any more, and removes it. Waits
 * up to wait_ms for measurements to begin. A master that does not answer ends this without a
 * message. */
void ctl_progress_show(const struct ctl_target *t, FILE *f, uint32_t wait_ms);

#endif
