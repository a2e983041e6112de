/* SPDX-License-Identifier: MIT
 *
 * The command line of fashion-mnist.
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <pccl.h>
#include <stdbool.h>
#include <stdint.h>

struct options {
	pcclCommCreateParams_t params; /* with the master's address */
	const char *data;              /* folder of the images */
	const char *report;            /* file for the lines of progress; NULL: standard output */
	uint64_t seed;                 /* equal on all trainers */
	float rate;                    /* learning rate */
	unsigned steps, batch;
	unsigned id;                            /* different on all trainers */
	unsigned wait_for;                      /* trainers with which a fresh run begins */
	pcclQuantizationOptions_t quantization; /* of the gradients; equal on all trainers */
	pcclDistributionHint_t hint;            /* likewise */
	bool error_feedback;                    /* likewise */
	const char *gradient;                   /* file for gradients; NULL: none */
};

/* Fills *opt, or ends the program with a message (or with help). */
void options_parse(struct options *opt, int argc, char **argv);

#endif
