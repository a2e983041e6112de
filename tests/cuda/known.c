/* SPDX-License-Identifier: MIT */
/*
 * usage: known
 *
 * Prints the lines of kernels/cuda/known.txt that need no GPU: the functions whose results IEEE 754
 * defines, computed by the CPU for all arguments. Takes a minute or two.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "kernels/cuda/check_cpu.h"

int main(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t hash;

	for (size_t i = 0; i < gpu_check_function_count; i++) {
		const struct gpu_check_function *f = &gpu_check_functions[i];

		if (!f->on_cpu)
			continue;
		if (!gpu_check_on_cpu(
			    f, gpu_check_arguments(f), cpus > 0 ? (unsigned)cpus : 1, &hash)) {
			fputs("known: no memory\n", stderr);
			return 1;
		}
		printf("%-12s *      %016" PRIx64 "\n", f->name, hash);
		fflush(stdout);
	}
	return 0;
}
