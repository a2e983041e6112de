/* SPDX-License-Identifier: MIT
 *
 * The example of pcclSynchronizeSharedState(3).
 */
#include "frame.h"

static void update_topology(pcclComm_t *communicator)
{
	must(pcclUpdateTopology(communicator));
}

static void train_one_step(void)
{
	compute(values);
	step_done();
}

int main(int argc, char **argv)
{
	static float weights[N_VALUES], momentum[N_VALUES];
	const size_t n = N_VALUES;
	int training = 1;
	pcclResult_t r;

	(void)training;
	join(argc > 1 ? argv[1] : "");
#include "example-1.inc"
	return 0;
}
