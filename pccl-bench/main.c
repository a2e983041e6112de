/* SPDX-License-Identifier: MIT
 *
 * pccl-bench: measures collective operations.
 */
#include <stdio.h>
#include <sysexits.h>

#include "pccl-bench/bench.h"
#include "pccl-bench/quant_run.h"

int main(int argc, char **argv)
{
	char complaint[BCH_COMPLAINT_SIZE];
	struct bch_options o;
	int code = EX_OK;

	if (bch_options_parse(&o, argc, argv, complaint) < 0) {
		fprintf(stderr, "pccl-bench: %s\nTry 'pccl-bench --help'.\n", complaint);
		return EX_USAGE;
	}
	if (*complaint)
		fprintf(stderr, "pccl-bench: %s\n", complaint);
	if (o.todo != CC_OPTIONS_GO_ON)
		(void)cc_options_print(&bch_options_table, o.todo, stdout);
	else
		code = o.benchmark == BCH_QUANT ? bch_quant_run(&o) : bch_bench(&o);
	bch_options_clear(&o);
	if (code != EX_IOERR && (fflush(stdout) != 0 || ferror(stdout))) {
		perror("pccl-bench: standard output");
		return EX_IOERR;
	}
	return code;
}
