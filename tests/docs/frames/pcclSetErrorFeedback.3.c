/* SPDX-License-Identifier: MIT
 *
 * The example of pcclSetErrorFeedback(3), in a loop that lets newcomers in.
 */
#include "frame.h"

int main(int argc, char **argv)
{
	const size_t n = N_VALUES;

	join(argc > 1 ? argv[1] : "");
#include "example-1.inc"
	for (;;) {
		pcclResult_t result;

		must(pcclUpdateTopology(comm));
		compute(values);
		do
			result = pcclAllReduce(values, values, &sum, comm, NULL);
		while (result == pcclRankConnectionLost);
		if (result != pcclTooFewPeers)
			must(result);
		step_done();
	}
}
