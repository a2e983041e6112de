/* SPDX-License-Identifier: MIT
 *
 * The command line of pcclctl.
 */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdbool.h>

#include "common/cc_options.h"
#include "pcclctl/target.h"
#include "proto/wire_admin.h"

struct ctl_options {
	struct ctl_target target;
	struct wa_request request;
	bool json, targeted;
};

extern const struct cc_options ctl_options;

/* Parses the command line. Returns -1 to go on, otherwise the exit status, after all messages were
 * printed. */
int ctl_options_parse(struct ctl_options *c, int argc, char **argv);

#endif
