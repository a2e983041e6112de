/* SPDX-License-Identifier: MIT */
#include "tests/e2e/data.h"

#include <math.h>
#include <string.h>

#define N_TYPES 12
#define N_OPS   5

static const struct type {
	const char *name;
	uint8_t size;
	bool is_float, is_signed;
	uint8_t mantissa; /* stored bits */
	uint8_t exponent; /* bits */
} types[N_TYPES] = {
	[pcclUint8] = {"u8", 1, false, false, 0, 0},
	[pcclInt8] = {"i8", 1, false, true, 0, 0},
	[pcclInt16] = {"i16", 2, false, true, 0, 0},
	[pcclUint16] = {"u16", 2, false, false, 0, 0},
	[pcclUint32] = {"u32", 4, false, false, 0, 0},
	[pcclInt32] = {"i32", 4, false, true, 0, 0},
	[pcclUint64] = {"u64", 8, false, false, 0, 0},
	[pcclInt64] = {"i64", 8, false, true, 0, 0},
	[pcclFloat16] = {"f16", 2, true, true, 10, 5},
	[pcclBFloat16] = {"bf16", 2, true, true, 7, 8},
	[pcclFloat] = {"f32", 4, true, true, 23, 8},
	[pcclDouble] = {"f64", 8, true, true, 52, 11},
};

static const char *const ops[N_OPS] = {
	[pcclSum] = "sum",
	[pcclAvg] = "avg",
	[pcclProd] = "prod",
	[pcclMax] = "max",
	[pcclMin] = "min",
};

int data_type_parse(const char *name)
{
	for (int i = 0; i < N_TYPES; i++)
		if (strcmp(name, types[i].name) == 0)
			return i;
	return -1;
}

int data_op_parse(const char *name)
{
	for (int i = 0; i < N_OPS; i++)
		if (strcmp(name, ops[i]) == 0)
			return i;
	return -1;
}

size_t data_type_size(pcclDataType_t type)
{
	return types[type].size;
}

/* ---- contributions */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t float_bits(const struct type *t, uint64_t r, bool special)
{
	uint64_t mantissa_max = ((uint64_t)1 << t->mantissa) - 1;
	uint64_t exponent_max = ((uint64_t)1 << t->exponent) - 1;
	uint64_t sign = r >> 63, mantissa = r & mantissa_max;
	uint64_t exponent = exponent_max / 2 - (r >> 62 & 1);

	if (special && (r >> 58 & 3) == 0) {
		switch (r >> 55 & 7) {
		case 0: /* NaN with any payload */
			exponent = exponent_max;
			mantissa |= 1;
			break;
		case 1:
			exponent = exponent_max;
			mantissa = 0;
			break;
		case 2:
		case 3:
			exponent = 0;
			mantissa = 0;
			break;
		case 4:
		case 5: /* subnormal */
			exponent = 0;
			break;
		case 6: /* close to overflow */
			exponent = exponent_max - 1;
			break;
		default:
			exponent = 1;
		}
	}
	return sign << (t->mantissa + t->exponent) | exponent << t->mantissa | mantissa;
}

/* Returns the value that is the same for all elements of one contribution. */
static uint64_t stream_of(const struct data_spec *s, uint32_t id)
{
	return mix(s->seed * 0x9e3779b97f4a7c15u + id + 1);
}

static uint64_t element(const struct data_spec *s, uint64_t stream, size_t i)
{
	const struct type *t = &types[s->type];
	uint64_t r = mix(stream + i * 0x9e3779b97f4a7c15u);

	if (t->is_float)
		return float_bits(t, r, s->special);
	return t->size == 8 ? r : r & (((uint64_t)1 << (8 * t->size)) - 1);
}

/* All supported machines are little endian. */
static uint64_t load(const void *buf, size_t i, size_t size)
{
	const uint8_t *p = (const uint8_t *)buf + i * size;
	uint64_t v = 0;

	switch (size) { /* a memcpy of a constant size is a single instruction */
	case 1:
		return *p;
	case 2:
		memcpy(&v, p, 2);
		return v;
	case 4:
		memcpy(&v, p, 4);
		return v;
	default:
		memcpy(&v, p, 8);
		return v;
	}
}

static void store(void *buf, size_t i, size_t size, uint64_t v)
{
	uint8_t *p = (uint8_t *)buf + i * size;

	switch (size) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		memcpy(p, &v, 2);
		break;
	case 4:
		memcpy(p, &v, 4);
		break;
	default:
		memcpy(p, &v, 8);
		break;
	}
}

void data_fill(void *buf, const struct data_spec *s, uint32_t id)
{
	size_t size = types[s->type].size;
	uint64_t stream = stream_of(s, id);

	for (size_t i = 0; i < s->count; i++)
		store(buf, i, size, element(s, stream, i));
}

int64_t data_differs(const void *buf, const struct data_spec *s, uint32_t id)
{
	size_t size = types[s->type].size;
	uint64_t stream = stream_of(s, id);

	for (size_t i = 0; i < s->count; i++)
		if (load(buf, i, size) != element(s, stream, i))
			return (int64_t)i;
	return -1;
}

/* ---- results */

static int64_t extend(const struct type *t, uint64_t v)
{
	int unused = 64 - 8 * t->size;

	return (int64_t)(v << unused) >> unused;
}

static bool less(const struct type *t, uint64_t a, uint64_t b)
{
	return t->is_signed ? extend(t, a) < extend(t, b) : a < b;
}

static bool integer_right(
	const struct type *t, pcclRedOp_t op, const uint64_t *v, uint32_t n, uint64_t got)
{
	uint64_t mask = t->size == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * t->size)) - 1;
	uint64_t acc = v[0];

	for (uint32_t k = 1; k < n; k++) {
		if (op == pcclSum || op == pcclAvg)
			acc += v[k];
		else if (op == pcclProd)
			acc *= v[k];
		else if (op == pcclMax ? less(t, acc, v[k]) : less(t, v[k], acc))
			acc = v[k];
	}
	acc &= mask;
	if (op == pcclAvg)
		acc = t->is_signed ? (uint64_t)(extend(t, acc) / (int64_t)n) & mask : acc / n;
	return acc == got;
}

static double small_value(const struct type *t, uint64_t bits)
{
	uint64_t mantissa = bits & (((uint64_t)1 << t->mantissa) - 1);
	int exponent_max = (1 << t->exponent) - 1;
	int exponent = (int)(bits >> t->mantissa) & exponent_max;
	uint32_t b = (uint32_t)bits;
	float single;
	double v;

	if (t->size == 4) {
		memcpy(&single, &b, sizeof single);
		return (double)single;
	}
	if (exponent == exponent_max)
		v = mantissa ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp((double)mantissa, 1 - exponent_max / 2 - t->mantissa);
	else
		v = ldexp((double)(mantissa | (uint64_t)1 << t->mantissa),
			exponent - exponent_max / 2 - t->mantissa);
	return bits >> (t->mantissa + t->exponent) & 1 ? -v : v;
}

static long double large_value(const struct type *t, uint64_t bits)
{
	double v;

	(void)t;
	memcpy(&v, &bits, sizeof v);
	return v;
}

/* Defines a function that returns the result without roundings that matter. *bound gets the largest
 * error of n + 1 roundings: half a unit in the last place for each, and a tenth more for their
 * products. `real` needs many more bits than the type. Only pcclDouble uses long double, because
 * long double takes ten times as long as double. */
#define DEFINE_RESULT(name, real, value)                                                           \
	static real name(const struct type *t, pcclRedOp_t op, const uint64_t *bits, uint32_t n,   \
		real *bound) /* NOLINT(bugprone-macro-parentheses): a type */                      \
	{                                                                                          \
		real unit = (real)1.1 * (real)(n + 1) / (real)((uint64_t)2 << t->mantissa);        \
		real sum = 0, magnitude = 0, product = 1, low = INFINITY, high = -INFINITY;        \
                                                                                                   \
		for (uint32_t k = 0; k < n; k++) {                                                 \
			real v = value(t, bits[k]);                                                \
                                                                                                   \
			sum += v;                                                                  \
			magnitude += v < 0 ? -v : v;                                               \
			product *= v;                                                              \
			low = v < low ? v : low;                                                   \
			high = v > high ? v : high;                                                \
		}                                                                                  \
		switch (op) {                                                                      \
		case pcclSum:                                                                      \
			*bound = unit * magnitude;                                                 \
			return sum;                                                                \
		case pcclAvg:                                                                      \
			*bound = unit * magnitude / (real)n;                                       \
			return sum / (real)n;                                                      \
		case pcclProd:                                                                     \
			*bound = unit * (product < 0 ? -product : product);                        \
			return product;                                                            \
		default:                                                                           \
			*bound = 0;                                                                \
			return op == pcclMax ? high : low;                                         \
		}                                                                                  \
	}
DEFINE_RESULT(small_result, double, small_value)
DEFINE_RESULT(large_result, long double, large_value)

static bool float_right(
	const struct type *t, pcclRedOp_t op, const uint64_t *bits, uint32_t n, uint64_t got)
{
	long double large_bound, large;
	double bound, want;

	if (t->size < 8) {
		want = small_result(t, op, bits, n, &bound);
		return fabs(small_value(t, got) - want) <= bound;
	}
	large = large_result(t, op, bits, n, &large_bound);
	return fabsl(large_value(t, got) - large) <= large_bound;
}

double data_error(const void *result, const struct data_spec *s, pcclRedOp_t op,
	const uint32_t *ids, uint32_t n_ids)
{
	const struct type *t = &types[s->type];
	uint64_t v[DATA_IDS_MAX] = {0}, streams[DATA_IDS_MAX], bits;
	long double got, want, large_bound, errors = 0, all = 0;
	double bound;

	for (uint32_t k = 0; k < n_ids; k++)
		streams[k] = stream_of(s, ids[k]);
	for (size_t i = 0; i < s->count; i++) {
		bits = load(result, i, t->size);
		for (uint32_t k = 0; k < n_ids; k++)
			v[k] = element(s, streams[k], i);
		got = t->size < 8 ? small_value(t, bits) : large_value(t, bits);
		want = t->size < 8 ? small_result(t, op, v, n_ids, &bound)
				   : large_result(t, op, v, n_ids, &large_bound);
		errors += (got - want) * (got - want);
		all += want * want;
	}
	return (double)sqrtl(errors / all);
}

int64_t data_wrong(const void *result, const struct data_spec *s, pcclRedOp_t op,
	const uint32_t *ids, uint32_t n_ids)
{
	const struct type *t = &types[s->type];
	uint64_t v[DATA_IDS_MAX] = {0}, streams[DATA_IDS_MAX];

	if ((t->is_float && s->special) || n_ids < 1 || n_ids > DATA_IDS_MAX)
		return -1;
	for (uint32_t k = 0; k < n_ids; k++)
		streams[k] = stream_of(s, ids[k]);
	for (size_t i = 0; i < s->count; i++) {
		uint64_t got = load(result, i, t->size);

		for (uint32_t k = 0; k < n_ids; k++)
			v[k] = element(s, streams[k], i);
		if (t->is_float ? !float_right(t, op, v, n_ids, got)
				: !integer_right(t, op, v, n_ids, got))
			return (int64_t)i;
	}
	return -1;
}

uint64_t data_hash(const void *buf, size_t len)
{
	uint64_t h = len, word;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		memcpy(&word, (const uint8_t *)buf + i, 8);
		h = mix(h ^ word) + 0x9e3779b97f4a7c15u;
	}
	for (; i < len; i++)
		h = mix(h ^ ((const uint8_t *)buf)[i]) + 1;
	return h;
}
