/* SPDX-License-Identifier: MIT
 *
 * A driver that is older than CUDA 11.0: it lacks all functions but one, and knows only the
 * attributes of CUDA 7. Memory of a device is at the lowest addresses, where no process has memory.
 */
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define DEVICE_END 65536u

CUresult cuPointerGetAttributes(
	unsigned n, CUpointer_attribute *attributes, void **data, CUdeviceptr at)
{
	for (unsigned i = 0; i < n; i++)
		switch ((int)attributes[i]) {
		case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
			*(unsigned *)data[i] = at < DEVICE_END ? CU_MEMORYTYPE_DEVICE : 0;
			break;
		case CU_POINTER_ATTRIBUTE_IS_MANAGED:
			*(unsigned *)data[i] = 0;
			break;
		default:
			return CUDA_ERROR_INVALID_VALUE;
		}
	return CUDA_SUCCESS;
}
