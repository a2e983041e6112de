/* SPDX-License-Identifier: MIT
 *
 * The example of pcclGetLastError(3) in a program that connects, and whose training steps are only
 * votes.
 */
#include "frame.h"

int main(int argc, char **argv)
{
	pcclCommCreateParams_t params = params_of(argc > 1 ? argv[1] : "");
	pcclResult_t result;

	must(pcclInit());
	must(pcclCreateCommunicator(&params, &comm));
#include "example-1.inc"
	for (;;) {
		must(pcclUpdateTopology(comm));
		compute(values);
		step_done();
	}
}
