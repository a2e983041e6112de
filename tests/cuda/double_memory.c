/* SPDX-License-Identifier: MIT */
#include "tests/cuda/double_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGN ((size_t)256)

static struct dbl_memory *memory;
static struct dbl_memory *freed; /* whose addresses may be used again */
static bool reuse, opened;
static unsigned long long last_id;

struct host_range {
	uint8_t *at;
	size_t n;
	struct host_range *next;
};
static struct host_range *registered;

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Returns addresses of this size with a page behind them, all of which nobody can access. */
static uint8_t *reserve(size_t mapped)
{
	struct dbl_memory **at = &freed, *m;
	uint8_t *base;

	while (reuse && *at && (*at)->mapped != mapped)
		at = &(*at)->next;
	if (reuse && *at) {
		m = *at;
		*at = m->next;
		base = m->base;
		free(m);
		return base;
	}
	base = mmap(NULL, mapped + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		-1, 0);
	return base == MAP_FAILED ? NULL : base;
}

static bool map(struct dbl_memory *m)
{
	int fd = memfd_create("device", MFD_CLOEXEC);
	int prot = m->managed || opened ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)m->mapped) < 0) {
		close(fd);
		return false;
	}
	m->seen = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->seen != MAP_FAILED &&
		/* cppcheck-suppress leakReturnValNotUsed ; the address is known */
		mmap(m->base, m->mapped, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(m->seen, m->mapped);
		m->seen = MAP_FAILED;
	}
	close(fd);
	if (m->seen == MAP_FAILED)
		return false;
	madvise(m->seen, m->mapped, MADV_DONTFORK);
	madvise(m->base, m->mapped, MADV_DONTFORK);
	return true;
}

struct dbl_memory *dbl_memory_new(struct dbl_context *ctx, size_t size, bool managed)
{
	struct dbl_memory *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->ctx = ctx;
	m->size = size;
	m->managed = managed;
	m->mapped = round_up(round_up(size, ALIGN), page());
	m->base = reserve(m->mapped);
	if (!m->base || !map(m)) {
		free(m);
		return NULL;
	}
	m->at = m->base + m->mapped - round_up(size, ALIGN);
	m->id = ++last_id;
	m->next = memory;
	memory = m;
	return m;
}

struct dbl_memory *dbl_memory_find(CUdeviceptr at, size_t n)
{
	struct dbl_memory *m;

	for (m = memory; m; m = m->next) {
		CUdeviceptr start = (CUdeviceptr)(uintptr_t)m->at;

		if (!m->freed && at >= start && at - start < m->size && n <= m->size - (at - start))
			break;
	}
	return m;
}

void dbl_memory_free(struct dbl_memory *m)
{
	struct dbl_memory **at = &memory;

	m->freed = true;
	dbl_streams_drain(m->ctx);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	munmap(m->seen, m->mapped);
	/* cppcheck-suppress leakReturnValNotUsed ; the address is known */
	if (mmap(m->base, m->mapped, PROT_NONE,
		    /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	m->next = freed;
	freed = m;
}

void dbl_memory_open(bool open)
{
	opened = open;
	for (struct dbl_memory *m = memory; m; m = m->next)
		if (!m->managed &&
			mprotect(m->base, m->mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE) < 0)
			abort();
}

void dbl_memory_reuse(bool on)
{
	reuse = on;
}

/* ---- host memory */

static uint64_t limit(void)
{
	const char *text = getenv("DOUBLE_REGISTER_LIMIT");

	return text ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Are all pages of [at, at + n) mapped, and writable if `write`? */
static bool is_mapped(const uint8_t *at, size_t n, bool write)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t next = (uintptr_t)at, end = next + n;
	unsigned long from, to;
	char line[512], rights[8];

	if (!f)
		return false;
	while (next < end && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && from <= next &&
			next < to && (!write || rights[1] == 'w'))
			next = to;
	(void)fclose(f);
	return next >= end;
}

bool dbl_host_is_registered(const void *at, size_t n, bool *ret_all)
{
	const uint8_t *p = at;

	for (struct host_range *r = registered; r; r = r->next) {
		if (p < r->at || p >= r->at + r->n)
			continue;
		*ret_all = n <= (size_t)(r->at + r->n - p);
		return true;
	}
	*ret_all = false;
	return false;
}

uint64_t dbl_host_registered(void)
{
	uint64_t sum = 0;

	for (struct host_range *r = registered; r; r = r->next)
		sum += r->n;
	return sum;
}

CUresult dbl_host_register(void *at, size_t n, unsigned flags)
{
	struct host_range *r;
	uint8_t *p = at;

	if (!p || n == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (r = registered; r; r = r->next)
		if (p < r->at + r->n && r->at < p + n)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!is_mapped(p, n, !(flags & CU_MEMHOSTREGISTER_READ_ONLY)))
		return CUDA_ERROR_INVALID_VALUE;
	if (n > limit() || dbl_host_registered() > limit() - n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = malloc(sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = (struct host_range){.at = p, .n = n, .next = registered};
	registered = r;
	return CUDA_SUCCESS;
}

CUresult dbl_host_unregister(void *at)
{
	struct host_range **p = &registered, *r;

	while (*p && (*p)->at != at)
		p = &(*p)->next;
	r = *p;
	if (!r)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (dbl_streams_use(r->at, r->n)) {
		(void)fprintf(stderr, "host memory is unregistered during a copy\n");
		abort();
	}
	*p = r->next;
	free(r);
	return CUDA_SUCCESS;
}
