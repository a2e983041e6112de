/* SPDX-License-Identifier: MIT
 *
 * The example of pcclOptimizeTopology(3) in a program that optimizes before each step.
 */
#include "frame.h"

static int optimized;

static void optimize(void)
{
	pcclResult_t result;
	int world;

#include "example-1.inc"
}

int main(int argc, char **argv)
{
	join(argc > 1 ? argv[1] : "");
	for (;;) {
		optimize();
		compute(values);
		must(pcclUpdateTopology(comm));
		step_done();
	}
}
