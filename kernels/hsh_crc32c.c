/* SPDX-License-Identifier: MIT */
#include "kernels/hsh_run.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Debian: libisal2. The library depends only on libc, and chooses its code for the CPU. */
#define LIBRARY "libisal.so.2"
#define SYMBOL  "crc32_iscsi"

/* The type of the library's function, from its crc.h. The function does not write to the buffer. */
typedef unsigned crc32c_fn(unsigned char *buffer, int bytes, unsigned init);

/* This is set once and does not change: threads that load the library at the same time find the
 * same function. */
static _Atomic(crc32c_fn *) crc32c;

static uint64_t leaf_crc32c(const void *data, size_t bytes, uint64_t index)
{
	crc32c_fn *f = atomic_load_explicit(&crc32c, memory_order_acquire);
	unsigned char *p;

	(void)index;
	memcpy(&p, &data, sizeof(p));
	return (uint32_t)~f(p, (int)bytes, ~0U);
}

bool hsh_crc32c_load_from(
	const char *library, hsh_leaf_fn **ret_leaf, char *error, size_t error_size)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	crc32c_fn *f;
	void *symbol;

	if (!handle) {
		snprintf(error, error_size, "crc32c needs the library ISA-L (Debian: libisal2): %s",
			dlerror());
		return false;
	}
	symbol = dlsym(handle, SYMBOL);
	dlclose(handle); /* RTLD_NODELETE keeps the library loaded */
	if (!symbol) {
		snprintf(error, error_size, "crc32c needs the library ISA-L: %s has no " SYMBOL,
			library);
		return false;
	}
	memcpy(&f, &symbol, sizeof(f)); /* ISO C does not permit this cast */
	atomic_store_explicit(&crc32c, f, memory_order_release);
	*ret_leaf = leaf_crc32c;
	return true;
}

bool hsh_crc32c_load(hsh_leaf_fn **ret_leaf, char *error, size_t error_size)
{
	return hsh_crc32c_load_from(LIBRARY, ret_leaf, error, error_size);
}
