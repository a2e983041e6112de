/* SPDX-License-Identifier: MIT
 *
 * The examples of pcclInterrupt(3) in a program whose training steps are only votes.
 */
#include <signal.h>

#include "frame.h"

#include "example-1.inc"

static pcclResult_t train_one_step(pcclComm_t *c)
{
	pcclResult_t result = pcclUpdateTopology(c);

	if (result == pcclInterrupted)
		return result;
	must(result);
	compute(values);
	step_done();
	return result;
}

int main(int argc, char **argv)
{
	pcclResult_t r;

	join(argc > 1 ? argv[1] : "");
#include "example-2.inc"
	return 0;
}
