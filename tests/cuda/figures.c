/* SPDX-License-Identifier: MIT
 *
 * usage: figures [MIB]
 *
 * Measures the library's copies from and to a CUDA device, and its hash, beside what the device can
 * do. Works on MIB (default 1024) MiB of memory of the first device, or on less if the device has
 * less. Both sides of a figure are measured in pairs, with the order changed from pair to pair. A
 * rate is the median of all pairs, and a ratio the median of the ratios of pairs. A figure that
 * misses its goal is printed and is no failure.
 *
 * Copies go the way of a staged operand and a staged result: through the library's own code
 * (libpccl-shim/buf.h), in pieces, on its two streams, and to host memory that the library has
 * registered.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cc_sys.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/gpu_hash.h"
#include "libpccl-shim/buf.h"

enum { PAIRS = 9, LAUNCHES = 10, USAGE = 64 };

#define MIB ((size_t)1 << 20)

static struct {
	const struct gpu_driver *gpu;
	CUstream stream;
	size_t bytes;
	CUdeviceptr memory, other; /* on the device */
	struct pccl_map host;
	struct pccl_buf_call call;
	struct pccl_buf buf; /* `memory`, for the library */
	CUfunction kernel;
	struct gpu_hash_args args;
	unsigned grid;
	struct hsh_tensor_work tensor;
} card;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("figures: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void need(CUresult error, const char *function)
{
	if (error != CUDA_SUCCESS)
		die("%s failed with %s", function, gpu_driver_error(card.gpu, error));
}

#define CALL(function, ...) need(card.gpu->function(__VA_ARGS__), #function)

/* The function is one of the library, and has set the sentence. */
static void need_library(pcclResult_t r)
{
	char text[PCCL_TEXT_MAX];

	if (r == pcclSuccess)
		return;
	pccl_fail_text(text);
	die("%s", text);
}

/* ---- what is measured; each function returns when its work is over */

static void synchronize(void)
{
	CALL(cuStreamSynchronize, card.stream);
}

/* Copies the operand as the library does before and while it is sent (submit.c). */
static void read_pieces(void)
{
	const size_t piece = pccl_buf_cuda.piece, n = card.bytes / piece;
	size_t begun = 0;

	for (size_t done = 0; done < n; done++) {
		for (; begun < n && begun < done + PCCL_BUF_LANES; begun++)
			need_library(pccl_buf_start_in(&card.buf, begun * piece,
				card.host.base + begun * piece, piece,
				(unsigned)(begun % PCCL_BUF_LANES)));
		need_library(pccl_buf_finish_in(&card.buf, (unsigned)(done % PCCL_BUF_LANES)));
	}
}

static void read_at_once(void)
{
	CALL(cuMemcpyDtoHAsync, card.host.base, card.memory, card.bytes, card.stream);
	synchronize();
}

static void write_pieces(void)
{
	const size_t piece = pccl_buf_cuda.piece;

	for (size_t off = 0; off < card.bytes; off += piece)
		need_library(pccl_buf_start_out(
			&card.buf, off, card.host.base + off, piece, card.bytes));
	need_library(pccl_buf_finish_out(&card.buf));
}

static void write_at_once(void)
{
	CALL(cuMemcpyHtoDAsync, card.memory, card.host.base, card.bytes, card.stream);
	synchronize();
}

static void launch_hashes(void)
{
	void *parameters[] = {&card.args};

	for (unsigned i = 0; i < LAUNCHES; i++)
		CALL(cuLaunchKernel, card.kernel, card.grid, 1, 1, GPU_HASH_THREADS, 1, 1,
			GPU_HASH_SHARED, card.stream, parameters, NULL);
	synchronize();
}

static void hash_by_library(void)
{
	for (unsigned i = 0; i < LAUNCHES; i++)
		need_library(pccl_buf_hash(&card.buf, hsh_leaf, &card.tensor, 1, 1));
}

static void copy_on_device(void)
{
	for (unsigned i = 0; i < LAUNCHES; i++)
		CALL(cuMemcpyDtoDAsync, card.other, card.memory, card.bytes, card.stream);
	synchronize();
}

/* A figure. Each function works on card.bytes so many times, and the device moves this multiple of
 * them. */
struct figure {
	const char *name, *of_ours, *of_other;
	void (*ours)(void), (*other)(void);
	unsigned times, moved_ours, moved_other;
	double goal; /* 0: none */
};

static const struct figure figures[] = {
	{"device to host", "in pieces", "in one copy", read_pieces, read_at_once, 1, 1, 1, 0.9},
	{"host to device", "in pieces", "in one copy", write_pieces, write_at_once, 1, 1, 1, 0.9},
	{"hash", "by the kernel", "by copies on the device", launch_hashes, copy_on_device,
		LAUNCHES, 1, 2, 0.7},
	{"hash with its call", "by the library", "by copies on the device", hash_by_library,
		copy_on_device, LAUNCHES, 1, 2, 0},
};

/* ---- set up */

static CUresult allocate_both(void)
{
	CUresult error = card.gpu->cuMemAlloc(&card.memory, card.bytes);

	if (error != CUDA_SUCCESS)
		return error;
	error = card.gpu->cuMemAlloc(&card.other, card.bytes);
	if (error != CUDA_SUCCESS)
		CALL(cuMemFree, card.memory);
	return error;
}

static void allocate(void)
{
	CUresult error = allocate_both();

	while (error == CUDA_ERROR_OUT_OF_MEMORY && card.bytes > MIB) {
		card.bytes = card.bytes / 2 / MIB * MIB;
		error = allocate_both();
	}
	need(error, "cuMemAlloc");
}

/* Prints the name of the device. Returns the number of its multiprocessors. */
static unsigned start(void)
{
	int major, minor, processors, version;
	char why[GPU_TEXT], name[128];
	CUcontext context;
	CUdevice device;

	card.gpu = gpu_driver_start(why);
	if (!card.gpu)
		die("%s", why);
	CALL(cuDriverGetVersion, &version);
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDeviceGetName, name, sizeof name, device);
	CALL(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	CALL(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	CALL(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxPushCurrent, context);
	CALL(cuStreamCreate, &card.stream, CU_STREAM_NON_BLOCKING);
	allocate();
	printf("%s (sm_%d%d), driver of CUDA %d.%d, %zu MiB, %d pairs\n", name, major, minor,
		version / 1000, version % 1000 / 10, card.bytes / MIB, PAIRS);
	return processors > 0 ? (unsigned)processors : 1;
}

/* Opens `memory` for the library, which registers the host memory, too. */
static void open_buffer(void)
{
	void *at;

	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	at = mmap(NULL, card.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		die("there is no memory for %zu bytes", card.bytes);
	card.host = (struct pccl_map){.base = at, .size = card.bytes};
	card.buf =
		(struct pccl_buf){.kind = &pccl_buf_cuda, .at = (uint8_t *)(uintptr_t)card.memory};
	need_library(pccl_buf_open(&card.buf, card.bytes, "the buffer", &card.call));
	pccl_buf_pin(&card.buf, &card.host);
	if (!card.host.unpin)
		die("cuMemHostRegister failed: %zu bytes of host memory cannot be registered",
			card.bytes);
}

static void load_kernel(unsigned multiprocessors)
{
	CUdeviceptr leaves;
	CUmodule module;

	CALL(cuModuleLoadData, &module, pccl_gpu_fatbin);
	CALL(cuModuleGetFunction, &card.kernel, module, GPU_HASH_KERNEL);
	CALL(cuMemAlloc, &leaves, hsh_leaf_count(card.bytes) * sizeof(uint64_t));
	card.args.leaves = leaves;
	gpu_hash_add(&card.args, card.memory, card.bytes, 0);
	card.grid = gpu_hash_grid(card.args.n_leaves, multiprocessors);
	card.tensor = (struct hsh_tensor_work){.data = (void *)(uintptr_t)card.memory,
		.bytes = card.bytes,
		.leaves = calloc(hsh_leaf_count(card.bytes), sizeof(uint64_t))};
	if (!card.tensor.leaves)
		die("there is no memory for the hashes of leaves");
}

static uint64_t hash_of_host(void)
{
	struct hsh_tensor_work t = card.tensor;

	t.data = card.host.base;
	hsh_tensors(hsh_leaf, &t, 1, 4);
	return t.hash;
}

/* Copies numbers to the device and back. All copies, and the hashes, must see the same bytes. */
static void check_bytes(void)
{
	uint64_t x = 1, hash;

	for (size_t at = 0; at < card.bytes; at += sizeof x) {
		memcpy(card.host.base + at, &x, sizeof x);
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	}
	hash = hash_of_host();
	write_pieces();
	hash_by_library();
	memset(card.host.base, 0, card.bytes);
	read_pieces();
	if (card.tensor.hash != hash || hash_of_host() != hash)
		die("the bytes were not copied, or the hash of the device is not that of the CPU");
}

/* ---- measure */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double values[PAIRS])
{
	qsort(values, PAIRS, sizeof *values, compare);
	return values[PAIRS / 2];
}

/* Returns the rate in bytes per nanosecond, which are GB/s. */
static double rate_of(const struct figure *f, void (*work)(void), unsigned moved)
{
	uint64_t begin = cc_now_ns(), ns;

	work();
	ns = cc_now_ns() - begin;
	return (double)card.bytes * f->times * moved / (double)(ns > 0 ? ns : 1);
}

static void measure(const struct figure *f)
{
	double ours[PAIRS], other[PAIRS], ratios[PAIRS], ratio;

	f->ours();
	f->other();
	for (unsigned i = 0; i < PAIRS; i++) {
		if (i % 2 == 1)
			other[i] = rate_of(f, f->other, f->moved_other);
		ours[i] = rate_of(f, f->ours, f->moved_ours);
		if (i % 2 == 0)
			other[i] = rate_of(f, f->other, f->moved_other);
		ratios[i] = ours[i] / other[i];
	}
	ratio = median(ratios);
	printf("%s: %.4g GB/s %s, %.4g GB/s %s, ratio %.3f (%.3f-%.3f), ", f->name, median(ours),
		f->of_ours, median(other), f->of_other, ratio, ratios[0], ratios[PAIRS - 1]);
	if (f->goal > 0)
		printf("goal %.2f: %s\n", f->goal, ratio >= f->goal ? "met" : "missed");
	else
		printf("no goal\n");
}

int main(int argc, char **argv)
{
	unsigned long mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
	unsigned processors;

	if (argc > 2 || mib < 1 || mib > 8192) {
		(void)fprintf(stderr, "usage: figures [MIB], from 1 to 8192\n");
		return USAGE;
	}
	card.bytes = mib * MIB;
	processors = start();
	open_buffer();
	load_kernel(processors);
	check_bytes();
	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
		measure(&figures[i]);
	pccl_buf_close(&card.call);
	pccl_map_drop(&card.host);
	free(card.tensor.leaves);
	return 0;
}
