/* SPDX-License-Identifier: MIT
 *
 * Memory of CUDA devices for the benchmark. A function that fails returns a sentence, or else NULL.
 */
#ifndef BCH_DEVICE_H
#define BCH_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/* Allocates memory on a device. Peers use the devices in the order of their ranks. */
const char *bch_device_alloc(uint32_t rank, size_t size, uint8_t **ret);
/* NULL is fine, here and below. */
const char *bch_device_free(uint8_t *device);
/* Copy to the device, or back. */
const char *bch_device_push(uint8_t *device, const void *host, size_t size);
const char *bch_device_pull(void *host, const uint8_t *device, size_t size);

#endif
