/* SPDX-License-Identifier: MIT */
#include "kernels/cuda/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"
/* So begin the names of all files that are this library. */
#define SIMILAR "libcuda"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `functions` until it is shown */
static struct gpu_driver functions;
static const struct gpu_driver *_Atomic shown; /* &functions once it is complete */
/* cuPointerGetAttributes once the driver is loaded, even if other functions are missing. */
static gpu_driver_ask *_Atomic shown_ask;
/* The number of libraries that the process had loaded so far when it was last seen without a
 * complete driver, or 0. */
static _Atomic uint64_t seen_without;

#define STRING_OF(name) #name
#define STRING(name)    STRING_OF(name)

/* Finds one function. POSIX lets a pointer from dlsym be copied into a pointer to a function. */
static bool find(void *library, const char *name, void *ret)
{
	void *at = dlsym(library, name);

	if (at)
		*(void **)ret = at;
	return at;
}

/* With the lock held: finds all functions. Returns the name of the first one that is missing, or
 * NULL. */
static const char *fill(void *library)
{
	const char *missing = NULL;

#define FIND(name)                                                                                 \
	if (!missing && !find(library, STRING(name), (void *)&functions.name))                     \
		missing = STRING(name);
	GPU_DRIVER_FUNCTIONS(FIND)
#undef FIND
#define FIND(name) (void)find(library, STRING(name), (void *)&functions.name);
	GPU_DRIVER_OPTIONAL(FIND)
#undef FIND
	return missing;
}

/* With the lock held: shows cuPointerGetAttributes, if the library has it. */
static void show_ask(void *library)
{
	gpu_driver_ask *ask = NULL;

	if (find(library, STRING(cuPointerGetAttributes), (void *)&ask))
		atomic_store_explicit(&shown_ask, ask, memory_order_release);
}

/* Opens the library with these flags of dlopen, which keep it loaded. */
static const struct gpu_driver *open_with(int flags, char why[GPU_TEXT])
{
	const struct gpu_driver *gpu = NULL;
	const char *missing;
	void *library;

	pthread_mutex_lock(&lock);
	library = dlopen(LIBRARY, flags);
	if (!library) {
		const char *error = dlerror();

		(void)snprintf(why, GPU_TEXT,
			"the driver of CUDA cannot be opened: %s; install the driver of this GPU",
			error ? error : LIBRARY " is not loaded");
	} else if ((missing = fill(library)) != NULL) {
		(void)snprintf(why, GPU_TEXT,
			"the driver of CUDA lacks %s; install a driver of CUDA 11.0 or later",
			missing);
		show_ask(library);
		dlclose(library);
	} else {
		gpu = &functions;
		show_ask(library);
		atomic_store_explicit(&shown, gpu, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return gpu;
}

const struct gpu_driver *gpu_driver_open(char why[GPU_TEXT])
{
	const struct gpu_driver *gpu = atomic_load_explicit(&shown, memory_order_acquire);

	return gpu ? gpu : open_with(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, why);
}

const struct gpu_driver *gpu_driver_start(char why[GPU_TEXT])
{
	const struct gpu_driver *gpu = gpu_driver_open(why);
	CUresult error;

	if (!gpu)
		return NULL;
	error = gpu->cuInit(0);
	if (error == CUDA_SUCCESS)
		return gpu;
	(void)snprintf(why, GPU_TEXT,
		"the driver of CUDA cannot start: cuInit returned %s; look at nvidia-smi",
		gpu_driver_error(gpu, error));
	return NULL;
}

/* Stores how many libraries the process has loaded so far, and stops. */
static int count_loaded(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uint64_t *)ret = info->dlpi_adds;
	return 1;
}

/* Looks for a library with a name like that of the driver, and stops if there is one. */
static int find_similar(struct dl_phdr_info *info, size_t size, void *ret)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	name = name ? name + 1 : info->dlpi_name;
	*(bool *)ret = name && strncmp(name, SIMILAR, strlen(SIMILAR)) == 0;
	return *(bool *)ret;
}

const struct gpu_driver *gpu_driver_loaded(void)
{
	const struct gpu_driver *gpu = atomic_load_explicit(&shown, memory_order_acquire);
	char why[GPU_TEXT];
	bool similar = false;
	uint64_t adds = 0;

	if (gpu)
		return gpu;
	(void)dl_iterate_phdr(count_loaded, &adds);
	if (adds == atomic_load_explicit(&seen_without, memory_order_acquire))
		return NULL;
	/* To find out whether a library is loaded, dlopen opens the file of one that is not. */
	(void)dl_iterate_phdr(find_similar, &similar);
	if (similar)
		gpu = open_with(RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE, why);
	if (!gpu)
		/* A thread that reads this number also sees shown_ask. */
		atomic_store_explicit(&seen_without, adds, memory_order_release);
	return gpu;
}

gpu_driver_ask *gpu_driver_loaded_ask(void)
{
	gpu_driver_ask *ask = atomic_load_explicit(&shown_ask, memory_order_acquire);

	if (ask)
		return ask;
	(void)gpu_driver_loaded();
	return atomic_load_explicit(&shown_ask, memory_order_acquire);
}

const char *gpu_driver_error(const struct gpu_driver *gpu, CUresult error)
{
	const char *name = NULL;

	if (gpu->cuGetErrorName(error, &name) != CUDA_SUCCESS || !name)
		return "an unknown error";
	return name;
}
