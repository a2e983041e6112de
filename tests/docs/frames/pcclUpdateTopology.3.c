/* SPDX-License-Identifier: MIT
 *
 * The example of pcclUpdateTopology(3) in a program that waits for other peers before each step.
 */
#include "frame.h"

static void wait_for_company(void)
{
	int world;

#include "example-1.inc"
}

int main(int argc, char **argv)
{
	join(argc > 1 ? argv[1] : "");
	for (;;) {
		wait_for_company();
		must(pcclUpdateTopology(comm));
		compute(values);
		step_done();
	}
}
