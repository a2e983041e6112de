/* SPDX-License-Identifier: MIT
 *
 * The examples of pcclAllReduce(3), in a loop that lets newcomers in.
 */
#include "frame.h"

enum { N = 4 };

static void judge(pcclResult_t result)
{
	if (result != pcclTooFewPeers)
		must(result);
}

int main(int argc, char **argv)
{
	static float layer[N][N_VALUES];
	const size_t size[N] = {N_VALUES, 10, 1, 500}, n = N_VALUES;
	float *gradient = values;

	join(argc > 1 ? argv[1] : "");
	for (;;) {
		must(pcclUpdateTopology(comm));
		compute(gradient);
#include "example-1.inc"
		judge(result);
#include "example-2.inc"
#include "example-3.inc"
		judge(result);
		step_done();
	}
}
