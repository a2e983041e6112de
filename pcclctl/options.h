/* SPDX-License-Identifier: MIT
 *
 * The command line of pcclctl.
 */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdbool.h>

#include "common/cc_options.h"
#include "pcclctl/gpu.h"
#include "pcclctl/target.h"
#include "pcclctl/topology.h"
#include "proto/wire_admin.h"

enum ctl_command {
	CTL_ASK,            /* `request`, to a daemon; the others ask no daemon */
	CTL_TOPOLOGY_SOLVE, /* `topology` */
	CTL_GPU_CHECK,      /* `gpu` */
};

struct ctl_options {
	enum ctl_command command;
	struct ctl_target target;
	struct wa_request request;
	bool json, targeted;
	bool dot; /* print the rings for Graphviz */
	struct ctl_topology topology;
	struct ctl_gpu gpu;
};

extern const struct cc_options ctl_options;

/* Parses the command line. Returns -1 to go on, otherwise the exit status, after all messages were
 * printed. cc_options_clear frees the paths. */
int ctl_options_parse(struct ctl_options *c, int argc, char **argv);

#endif
