/* SPDX-License-Identifier: MIT
 *
 * The command gpu-check: do the GPUs of different hosts compute the same bits?
 */
#ifndef CTL_GPU_H
#define CTL_GPU_H

#include <stdbool.h>
#include <stdint.h>

struct ctl_gpu {
	char function[32]; /* "": all */
	uint32_t device;
	char *compare; /* path of a file, or NULL */
};

/* Prints a line for each function as soon as it is evaluated. Returns an exit status, after all
 * messages were printed: 0 if nothing differs, 1 if something differs. */
int ctl_gpu_check(const struct ctl_gpu *c, bool json);

#endif
