/* SPDX-License-Identifier: MIT */
#include "pccl-bench/data.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/krn_half.h"

/* Every type can represent this number and all smaller ones. */
#define NUMBER_MAX 127u
/* Each factor of a product is 1 or 2. At most this many factors are 2. */
#define TWOS_MAX 6u

const char *const bch_type_names[] = {
	[pcclUint8] = "uint8",
	[pcclInt8] = "int8",
	[pcclInt16] = "int16",
	[pcclUint16] = "uint16",
	[pcclUint32] = "uint32",
	[pcclInt32] = "int32",
	[pcclUint64] = "uint64",
	[pcclInt64] = "int64",
	[pcclFloat16] = "half",
	[pcclBFloat16] = "bfloat16",
	[pcclFloat] = "float",
	[pcclDouble] = "double",
	NULL,
};

static const uint8_t type_sizes[] = {
	[pcclUint8] = 1,
	[pcclInt8] = 1,
	[pcclInt16] = 2,
	[pcclUint16] = 2,
	[pcclUint32] = 4,
	[pcclInt32] = 4,
	[pcclUint64] = 8,
	[pcclInt64] = 8,
	[pcclFloat16] = 2,
	[pcclBFloat16] = 2,
	[pcclFloat] = 4,
	[pcclDouble] = 8,
};

const char *const bch_op_names[] = {
	[pcclSum] = "sum",
	[pcclAvg] = "avg",
	[pcclProd] = "prod",
	[pcclMax] = "max",
	[pcclMin] = "min",
	NULL,
};

size_t bch_type_size(pcclDataType_t type)
{
	return type_sizes[type];
}

uint64_t bch_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The values for one place, which all peers share: a base number, and how far the parts of the
 * peers are rotated at this place. */
struct place {
	uint32_t base, turn;
};

static struct place place_of(uint64_t round, uint32_t i, uint32_t least, uint32_t most, uint32_t n)
{
	uint64_t r = bch_mix(round * 0x9e3779b97f4a7c15u + i + 1);

	return (struct place){
		.base = least + (uint32_t)(r >> 32) % (most - least + 1), .turn = (uint32_t)r % n};
}

/* Returns a part of a sum. Half of the parts are one more than the base, half are one less; an odd
 * last part is the base. */
static uint32_t summand(const struct place *p, uint32_t part, uint32_t n)
{
	if (part == n - 1 && n % 2)
		return p->base;
	return part % 2 ? p->base - 1 : p->base + 1;
}

static struct place place_for(pcclRedOp_t op, uint64_t round, uint32_t i, uint32_t n)
{
	uint32_t most = NUMBER_MAX / n < 15 ? NUMBER_MAX / n : 15;

	switch (op) {
	case pcclProd:
		return place_of(round, i, 0, n < TWOS_MAX ? n : TWOS_MAX, n);
	case pcclMax:
	case pcclMin:
		return place_of(round, i, 0, NUMBER_MAX - (n - 1), n);
	case pcclSum:
	case pcclAvg:
		break;
	}
	return place_of(round, i, 1, most, n);
}

static uint32_t operand(pcclRedOp_t op, const struct place *p, uint32_t rank, uint32_t n)
{
	uint32_t part = (rank + p->turn) % n;

	switch (op) {
	case pcclProd:
		return part < p->base ? 2 : 1;
	case pcclMax:
	case pcclMin:
		return p->base + part;
	case pcclSum:
	case pcclAvg:
		break;
	}
	return summand(p, part, n);
}

static uint32_t result(pcclRedOp_t op, const struct place *p, uint32_t n)
{
	switch (op) {
	case pcclProd:
		return 1u << p->base;
	case pcclMax:
		return p->base + n - 1;
	case pcclAvg:
	case pcclMin:
		return p->base;
	case pcclSum:
		break;
	}
	return p->base * n;
}

static void store(void *at, pcclDataType_t type, uint32_t i, uint32_t number)
{
	float single = (float)number;
	double twice = number;
	/* little endian: the first bytes are the value in the smaller types */
	uint64_t integer = number;
	uint16_t half;
	const void *from = &integer;

	if (type == pcclFloat16) {
		half = krn_f32_to_f16(single);
		from = &half;
	} else if (type == pcclBFloat16) {
		half = krn_f32_to_bf16(single);
		from = &half;
	} else if (type == pcclFloat) {
		from = &single;
	} else if (type == pcclDouble) {
		from = &twice;
	}
	memcpy((uint8_t *)at + (size_t)i * type_sizes[type], from, type_sizes[type]);
}

void bch_pattern_operand(
	void *ret, const struct bch_kind *kind, uint32_t n_peers, uint32_t rank, uint64_t round)
{
	for (uint32_t i = 0; i < BCH_PATTERN_COUNT; i++) {
		struct place p = place_for(kind->op, round, i, n_peers);

		store(ret, kind->type, i, operand(kind->op, &p, rank, n_peers));
	}
}

void bch_pattern_result(void *ret, const struct bch_kind *kind, uint32_t n_peers, uint64_t round)
{
	for (uint32_t i = 0; i < BCH_PATTERN_COUNT; i++) {
		struct place p = place_for(kind->op, round, i, n_peers);

		store(ret, kind->type, i, result(kind->op, &p, n_peers));
	}
}

void bch_data_fill(void *buf, size_t count, size_t size, const void *pattern)
{
	for (size_t at = 0; at < count; at += BCH_PATTERN_COUNT) {
		size_t n = count - at < BCH_PATTERN_COUNT ? count - at : BCH_PATTERN_COUNT;

		memcpy((uint8_t *)buf + at * size, pattern, n * size);
	}
}

static uint64_t differing(const uint8_t *a, const uint8_t *b, size_t n, size_t size)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += memcmp(a + i * size, b + i * size, size) != 0;
	return wrong;
}

uint64_t bch_data_wrong(const void *buf, size_t count, size_t size, const void *pattern)
{
	uint64_t wrong = 0;

	for (size_t at = 0; at < count; at += BCH_PATTERN_COUNT) {
		size_t n = count - at < BCH_PATTERN_COUNT ? count - at : BCH_PATTERN_COUNT;
		const uint8_t *from = (const uint8_t *)buf + at * size;

		if (memcmp(from, pattern, n * size) != 0)
			wrong += differing(from, pattern, n, size);
	}
	return wrong;
}
