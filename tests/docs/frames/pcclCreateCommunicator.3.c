/* SPDX-License-Identifier: MIT
 *
 * The example of pcclCreateCommunicator(3). The test runs a master at the address in the example.
 */
#include "frame.h"

static pcclComm_t *created(void)
{
	must(pcclInit());
#include "example-1.inc"
	return comm;
}

int main(void)
{
	pcclReduceDescriptor_t sum = {
		.count = N_VALUES, .op = pcclSum, .src_descriptor.datatype = pcclFloat};

	comm = created();
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
