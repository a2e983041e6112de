/* SPDX-License-Identifier: MIT */
/* Replaces NVIDIA's libcuda.so.1, without which the published library of PCCL 1.0 cannot be loaded.
 * Every call reports that there is no device, because the tensors of bench/compare are in memory.
 */
#define CUDA_ERROR_NO_DEVICE 100
#define NO_DEVICE(name)                                                                            \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		return CUDA_ERROR_NO_DEVICE;                                                       \
	}

NO_DEVICE(cuCtxSetCurrent)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDevicePrimaryCtxRetain)
NO_DEVICE(cuGetErrorName)
NO_DEVICE(cuGetErrorString)
NO_DEVICE(cuInit)
NO_DEVICE(cuMemAlloc_v2)
NO_DEVICE(cuMemFree_v2)
NO_DEVICE(cuMemcpyDtoH_v2)
NO_DEVICE(cuMemcpyHtoD_v2)
NO_DEVICE(cuPointerGetAttribute)
NO_DEVICE(cuStreamSynchronize)
