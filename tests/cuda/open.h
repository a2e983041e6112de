/* SPDX-License-Identifier: MIT
 *
 * The driver of CUDA for a test: the double (double.h), or, if the environment variable E2E_GPU is
 * set, the driver of this machine. A function that fails ends the test.
 */
#ifndef TESTS_CUDA_OPEN_H
#define TESTS_CUDA_OPEN_H

#include "kernels/cuda/driver.h"
#include "tests/cuda/double.h"

/* Opens and starts the driver, makes the primary context of this device, and lets it be current in
 * the calling thread. Returns the driver. */
const struct gpu_driver *open_device(int device);
/* Returns the functions of the double, or NULL if the driver is that of the machine. */
const struct double_functions *open_double(void);

#endif
