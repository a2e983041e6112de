/* SPDX-License-Identifier: MIT
 *
 * pcclctl: asks a daemon (client.c) and prints the answer (print.c), computes rings
 * (topology.c), or checks a GPU (gpu.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "pcclctl/client.h"
#include "pcclctl/dot.h"
#include "pcclctl/options.h"
#include "pcclctl/print.h"

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int ask(const struct ctl_options *c)
{
	char why[CTL_WHY_SIZE];
	struct wa_reply r;
	int code = ctl_ask(&c->target, &c->request, &r, why);

	if (code) {
		fprintf(stderr, "pcclctl: %s\n", why);
		return code;
	}
	if (c->dot) {
		if (print_dot(stdout, &r) < 0) {
			fputs("pcclctl: the answer of the master has no table of rings\n", stderr);
			code = EX_PROTOCOL;
		}
	} else if (c->json) {
		if (print_json(stdout, &r) < 0) {
			fputs("pcclctl: no memory\n", stderr);
			code = EX_OSERR;
		}
	} else {
		print_tables(stdout, &r,
			&(struct print_style){.daemon = c->request.verb == WA_STATUS ||
							c->request.verb == WA_STATE,
				.record = c->request.verb == WA_STATUS,
				.colour = wants_colour()});
	}
	wa_reply_clear(&r);
	return code;
}

static int run(const struct ctl_options *c)
{
	switch (c->command) {
	case CTL_TOPOLOGY_SOLVE:
		return ctl_topology_solve(&c->topology, c->json);
	case CTL_GPU_CHECK:
		return ctl_gpu_check(&c->gpu, c->json);
	default:
		return ask(c);
	}
}

int main(int argc, char **argv)
{
	struct ctl_options c;
	int code = ctl_options_parse(&c, argc, argv);

	if (code < 0)
		code = run(&c);
	cc_options_clear(&ctl_options, &c);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("pcclctl: standard output");
		return EX_IOERR;
	}
	return code;
}
