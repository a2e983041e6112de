/* SPDX-License-Identifier: MIT */
#include "tests/cuda/suites.h"

int main(int argc, char **argv)
{
	static const struct runner_suite suites[] = {SUITES(RUNNER_ENTRY)};

	return runner_main(argc, argv, suites, sizeof suites / sizeof suites[0]);
}
