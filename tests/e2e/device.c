/* SPDX-License-Identifier: MIT */
#include "tests/e2e/device.h"

#include "tests/e2e/peer.h"

#ifdef HAVE_CUDA

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/driver.h"
#include "tests/cuda/double.h"

static const struct gpu_driver *gpu;
static CUcontext context;

/* Ends the process if a call of the driver has failed. */
static void need(CUresult error, const char *what)
{
	if (error != CUDA_SUCCESS)
		die(what, gpu_driver_error(gpu, error));
}

static void start(void)
{
	char why[GPU_TEXT];
	CUdevice device;
	int n;

	gpu = gpu_driver_start(why);
	if (!gpu)
		die("cuda", why);
	need(gpu->cuDeviceGetCount(&n), "cuDeviceGetCount");
	need(gpu->cuDeviceGet(&device, (int)(peer.id % (uint32_t)n)), "cuDeviceGet");
	need(gpu->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
}

static void enter(void)
{
	need(gpu->cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

static void leave(void)
{
	CUcontext popped;

	need(gpu->cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
}

static bool is_wanted(void)
{
	const char *which = getenv("E2E_MEMORY");
	static unsigned n;

	if (!which || !which[0])
		return false;
	if (strcmp(which, "mixed") == 0)
		return peer.id % 2 == 1;
	if (strcmp(which, "halves") == 0)
		return n++ % 2 == 0;
	if (strcmp(which, "cuda") != 0)
		die("E2E_MEMORY", which);
	return true;
}

static uint8_t *allocate(size_t size)
{
	CUdeviceptr at;

	enter();
	need(gpu->cuMemAlloc(&at, size), "cuMemAlloc");
	leave();
	return (uint8_t *)(uintptr_t)at;
}

/* Small buffers share allocations, as those of PyTorch do. They are kept for later buffers. */
#define SMALL   ((size_t)65536)
#define SHARED  (64 * SMALL)
#define CLASSES 17

static struct small {
	uint8_t *at;
	struct small *next;
} * kept[CLASSES]; /* by the power of two that is their size */

static unsigned class_of(size_t size)
{
	unsigned c = 8;

	while ((size_t)1 << c < size)
		c++;
	return c;
}

static uint8_t *allocate_small(size_t size)
{
	static uint8_t *rest;
	static size_t left;
	unsigned c = class_of(size);
	struct small *s = kept[c];
	uint8_t *at;

	if (s) {
		kept[c] = s->next;
		at = s->at;
		free(s);
		return at;
	}
	if (left < (size_t)1 << c) {
		rest = allocate(SHARED);
		left = SHARED;
	}
	at = rest;
	rest += (size_t)1 << c;
	left -= (size_t)1 << c;
	return at;
}

void *device_alloc(size_t size)
{
	if (!is_wanted())
		return NULL;
	if (!gpu)
		start();
	return size <= SMALL ? allocate_small(size) : allocate(size);
}

void device_free(void *device, size_t size)
{
	struct small *s;

	if (!device)
		return;
	if (size <= SMALL) {
		s = malloc(sizeof *s);
		if (!s)
			die("memory", "exhausted");
		*s = (struct small){.at = device, .next = kept[class_of(size)]};
		kept[class_of(size)] = s;
		return;
	}
	enter();
	need(gpu->cuMemFree((CUdeviceptr)(uintptr_t)device), "cuMemFree");
	leave();
}

void device_push(void *device, const void *host, size_t size)
{
	if (!device)
		return;
	enter();
	need(gpu->cuMemcpyHtoD((CUdeviceptr)(uintptr_t)device, host, size), "cuMemcpyHtoD");
	leave();
}

void device_pull(void *host, const void *device, size_t size)
{
	if (!device)
		return;
	enter();
	need(gpu->cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, size), "cuMemcpyDtoH");
	leave();
}

/* What do_cuda has ordered. */
static bool watched;
static uint64_t fail_at, calls;
static CUresult fail_error;
static uint64_t uses; /* of the buffer that a command has named */

/* Returns the functions of the double, or NULL if this is another driver. */
static const struct double_functions *look_for_double(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	return library ? dlsym(library, "double_functions") : NULL;
}

static const struct double_functions *find_double(void)
{
	const struct double_functions *f;

	if (!gpu)
		start();
	f = look_for_double();
	if (!f)
		die("cuda", "this is not the double of the driver");
	return f;
}

void *device_seen(const void *device)
{
	const struct double_functions *f = look_for_double();

	return f ? f->seen((CUdeviceptr)(uintptr_t)device) : NULL;
}

void do_cuda(void)
{
	const struct double_functions *f = find_double();

	fail_at = number("at", "0");
	fail_error = (CUresult)number("error", "0");
	watched = true;
	printf("cuda calls=%" PRIu64 " from=%" PRIu64 " to=%" PRIu64 " pins=%" PRIu64
	       " registered=%" PRIu64 " launches=%" PRIu64 " uses=%" PRIu64 "\n",
		calls, f->bytes(0), f->bytes(1), f->calls("cuMemHostRegister"), f->registered(),
		f->calls("cuLaunchKernel"), uses);
}

void device_begin(void *victim)
{
	if (watched)
		find_double()->fail_at(fail_at, fail_error);
	if (victim)
		find_double()->free_at((CUdeviceptr)(uintptr_t)victim, number("free", "0"));
}

bool device_end(void)
{
	uint64_t at = number("free", "0");

	if (watched) {
		calls = find_double()->count();
		find_double()->fail_at(0, CUDA_SUCCESS);
		watched = false;
	}
	if (!word("of", "")[0])
		return false;
	uses = find_double()->uses();
	find_double()->free_at(0, 0);
	return at > 0 && uses >= at;
}

#else

/* A build without CUDA. */

void device_begin(void *victim)
{
	(void)victim;
}

bool device_end(void)
{
	return false;
}

void *device_alloc(size_t size)
{
	(void)size;
	return NULL;
}

void device_free(void *device, size_t size)
{
	(void)device;
	(void)size;
}

void device_push(void *device, const void *host, size_t size)
{
	(void)device;
	(void)host;
	(void)size;
}

void device_pull(void *host, const void *device, size_t size)
{
	(void)device;
	(void)host;
	(void)size;
}

void *device_seen(const void *device)
{
	(void)device;
	return NULL;
}

void do_cuda(void)
{
	die("cuda", "this build has no CUDA");
}

#endif
