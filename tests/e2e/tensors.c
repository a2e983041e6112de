/* SPDX-License-Identifier: MIT
 *
 * The shared state of a peer: its tensors, and their synchronization.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/data.h"
#include "tests/e2e/device.h"
#include "tests/e2e/peer.h"

#define GUARD      256u
#define GUARD_BYTE 0xa5

/* A tensor between guards. */
struct tensor {
	char *name;
	uint8_t *base, *data;
	uint8_t *device;    /* the memory that the library uses instead of `base`, or NULL */
	size_t bytes, size; /* bytes of data; bytes of the whole area */
	bool shared;
};

static pcclSharedState_t state; /* infos: as given to the call */
static struct tensor *tensors;  /* in the same order */

/* ---- memory */

static void tensor_make(struct tensor *t, size_t bytes, size_t shift, bool shared)
{
	void *base;

	t->bytes = bytes;
	t->size = GUARD + shift + bytes + GUARD;
	t->shared = shared;
	if (shared) {
		if (pcclMemAlloc(t->size, &base) != pcclSuccess)
			die("pcclMemAlloc", pcclGetLastError());
	} else if (posix_memalign(&base, 4096, t->size) != 0) {
		die("memory", "exhausted");
	}
	t->base = base;
	t->data = t->base + GUARD + shift;
	memset(t->base, GUARD_BYTE, GUARD + shift);
	memset(t->data + bytes, GUARD_BYTE, GUARD);
	/* The library cannot be stopped at a write that a device makes. */
	t->device = shared || number("freeze", "0") ? NULL : device_alloc(t->size);
}

/* Returns the memory that the library gets. */
static uint8_t *tensor_given(const struct tensor *t)
{
	return t->device ? t->device + (t->data - t->base) : t->data;
}

/* Returns the address of the contents that the library reads, or NULL if no CPU can access them. */
static uint8_t *tensor_seen(const struct tensor *t)
{
	return t->device ? device_seen(tensor_given(t)) : t->data;
}

static bool tensor_intact(const struct tensor *t)
{
	for (const uint8_t *p = t->base; p < t->base + t->size; p++) {
		if (p == t->data)
			p += t->bytes;
		if (*p != GUARD_BYTE)
			return false;
	}
	return true;
}

static void tensor_free(struct tensor *t)
{
	device_free(t->device, t->size);
	if (!t->shared)
		free(t->base);
	else if (pcclMemFree(t->base) != pcclSuccess)
		die("pcclMemFree", pcclGetLastError());
	free(t->name);
}

static void *grow(void *p, size_t n, size_t size)
{
	p = realloc(p, (n ? n : 1) * size);
	if (!p)
		die("memory", "exhausted");
	return p;
}

/* ---- commands */

void do_state(void)
{
	for (size_t i = 0; i < state.count; i++)
		tensor_free(&tensors[i]);
	state.count = 0;
	state.revision = number("revision", "0");
	puts("state");
}

/* Returns the name T, T0, T1, ..., followed by x up to pad= bytes. */
static char *name_make(uint64_t i, bool several)
{
	const char *prefix = word("name", "t");
	size_t pad = number("pad", "0"), size = strlen(prefix) + 24 + pad, len;
	char *name = grow(NULL, size, 1);

	snprintf(name, size, several ? "%s%" PRIu64 : "%s", prefix, i);
	len = strlen(name);
	if (len < pad) {
		memset(name + len, 'x', pad - len);
		name[pad] = '\0';
	}
	return name;
}

void do_tensors(void)
{
	int type = data_type_parse(word("type", "f32"));
	struct data_spec s = {.type = (pcclDataType_t)type, .count = number("count", NULL)};
	uint64_t n = number("n", "1"), seed = number("seed", "0");
	bool shared = strcmp(word("mem", "own"), "shared") == 0;
	bool claimed = strcmp(word("device", ""), "cuda") == 0; /* although it is host memory */

	if (type < 0)
		die("no such type", word("type", "f32"));
	tensors = grow(tensors, state.count + n, sizeof *tensors);
	state.infos = grow(state.infos, state.count + n, sizeof *state.infos);
	for (uint64_t i = 0; i < n; i++) {
		struct tensor *t = &tensors[state.count];

		t->name = name_make(i, n > 1);
		tensor_make(t, s.count * data_type_size(s.type), number("shift", "0"), shared);
		s.seed = seed + i;
		data_fill(t->data, &s, (uint32_t)number("like", "0"));
		device_push(t->device, t->base, t->size);
		if (number("freeze", "0"))
			freeze(t->data, t->bytes, PROT_READ);
		state.infos[state.count++] = (pcclTensorInfo_t){
			.name = t->name,
			.data = tensor_given(t),
			.count = s.count,
			.datatype = s.type,
			.device_type = t->device || claimed ? pcclDeviceCuda : pcclDeviceCpu,
			.allow_content_inequality = number("differ", "0") != 0,
		};
	}
	printf("tensors n=%zu at=%" PRIuPTR "\n", state.count,
		state.count ? (uintptr_t)tensor_seen(&tensors[state.count - 1]) : 0);
}

void do_spoil(void)
{
	const char *name = word("name", "");
	uint64_t at = number("at", "0"), n = number("n", "1");
	size_t spoiled = 0;

	for (size_t i = 0; i < state.count; i++) {
		struct tensor *t = &tensors[i];

		if (name[0] && strcmp(t->name, name) != 0)
			continue;
		for (uint64_t k = at; k < at + n && k < t->bytes; k++, spoiled++)
			t->data[k] ^= 0x55;
		device_push(t->device, t->base, t->size);
	}
	printf("spoil bytes=%zu\n", spoiled);
}

/* Returns the hash of all tensors that must be equal, whatever their order, or of the tensor
 * `name`. */
static uint64_t digest(const char *name)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < state.count; i++)
		if (name[0] ? strcmp(name, tensors[i].name) == 0
			    : !state.infos[i].allow_content_inequality)
			sum += data_hash(tensors[i].name, strlen(tensors[i].name)) ^
			       data_hash(tensors[i].data, tensors[i].bytes) * 3;
	return sum;
}

void do_digest(void)
{
	printf("digest hash=%016" PRIx64 "\n", digest(word("name", "")));
}

static pcclSharedStateSyncStrategy_t parse_strategy(const char *text)
{
	static const char *const names[] = {"popular", "receive", "send"};

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0)
			return (pcclSharedStateSyncStrategy_t)i;
	if (text[0] >= '0' && text[0] <= '9') /* may be a number that is no strategy */
		return (pcclSharedStateSyncStrategy_t)atoi(text);
	die("no such strategy", text);
}

static const char *judge(void)
{
	for (size_t i = 0; i < state.count; i++) {
		device_pull(tensors[i].base, tensors[i].device, tensors[i].size);
		if (!tensor_intact(&tensors[i]))
			return "guards";
		if (state.infos[i].data != tensor_given(&tensors[i]) ||
			state.infos[i].name != tensors[i].name)
			return "infos";
	}
	return "ok";
}

void do_sync(void)
{
	pcclSharedStateSyncStrategy_t strategy = parse_strategy(word("strategy", "popular"));
	pcclSharedStateSyncInfo_t info = {0};
	uint64_t begin, at, end, tries = number("retry", "0"), lost = 0, longest = 0;
	struct tensor *victim = NULL;
	pcclResult_t r;

	for (size_t i = 0; i < state.count; i++)
		if (strcmp(tensors[i].name, word("of", "")) == 0)
			victim = &tensors[i];
	if (word("revision", "")[0])
		state.revision = number("revision", NULL);
	device_begin(victim ? victim->device : NULL);
	begin = now();
	do {
		at = now();
		r = pcclSynchronizeSharedState(peer.comm, &state, strategy, &info);
		end = now();
		longest = end - at > longest ? end - at : longest;
		lost += r == pcclRankConnectionLost;
	} while (r == pcclRankConnectionLost && lost <= tries);
	if (device_end()) {
		victim->device = NULL;
		state.infos[victim - tensors].data = tensor_given(victim);
		state.infos[victim - tensors].device_type = pcclDeviceCpu;
	}
	printf("sync revision=%" PRIu64 " tx=%" PRIu64 " rx=%" PRIu64 " losses=%" PRIu64
	       " longest=%" PRIu64 " check=%s",
		state.revision, info.tx_bytes, info.rx_bytes, lost, longest, judge());
	if (number("hash", "1") != 0)
		printf(" hash=%016" PRIx64, digest(""));
	say_outcome(r, begin, end);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Measures the memory: copies this many bytes from one place to another. */
void do_memcpy(void)
{
	size_t bytes = number("bytes", NULL);
	uint64_t n = number("n", "5"), begin, *times = grow(NULL, n, sizeof *times);
	uint8_t *from = grow(NULL, bytes, 1), *to = grow(NULL, bytes, 1);

	memset(from, 1, bytes);
	memset(to, 2, bytes);
	for (uint64_t i = 0; i < n; i++) {
		begin = now();
		memcpy(to, from, bytes);
		times[i] = now() - begin;
		from[i % bytes] = to[bytes / 2]; /* so that the copy is not left out */
	}
	qsort(times, n, sizeof *times, compare);
	printf("memcpy median=%" PRIu64 " min=%" PRIu64 "\n", times[n / 2], times[0]);
	free(from);
	free(to);
	free(times);
}
