/* SPDX-License-Identifier: MIT */
#include "proto/wire_names.h"

#include "proto/wire_limits.h"
#include "proto/wire_quant.h"
#include "proto/wire_sync.h"

#define COUNT(names) (sizeof(names) / sizeof(names)[0])

static const char *const dtypes[] = {"uint8", "int8", "int16", "uint16", "uint32", "int32",
	"uint64", "int64", "float16", "bfloat16", "float", "double"};
static const char *const ops[] = {"sum", "avg", "prod", "max", "min"};
static const char *const hints[] = {"none", "normal", "uniform"};
static const char *const strategies[] = {"enforce-popular", "receive-only", "send-only"};

_Static_assert(COUNT(dtypes) == WIRE_DTYPE_MAX + 1, "a name for every type");
_Static_assert(COUNT(ops) == WIRE_OP_MAX + 1, "a name for every operator");
_Static_assert(COUNT(hints) == WIRE_HINT_MAX + 1, "a name for every hint");
_Static_assert(COUNT(strategies) == WM_STRATEGY_SEND_ONLY + 1, "a name for every strategy");

static const char *name(const char *const *names, uint32_t n, uint32_t number)
{
	return number < n ? names[number] : "unknown";
}

const char *wire_dtype_name(uint32_t dtype)
{
	return name(dtypes, COUNT(dtypes), dtype);
}

const char *wire_op_name(uint32_t op)
{
	return name(ops, COUNT(ops), op);
}

const char *wire_hint_name(uint32_t hint)
{
	return name(hints, COUNT(hints), hint);
}

const char *wire_strategy_name(uint32_t strategy)
{
	return name(strategies, COUNT(strategies), strategy);
}

const char *wire_hash_name(uint32_t hash_type)
{
	switch (hash_type) {
	case WM_HASH_SIMPLE:
		return "simplehash";
	case WM_HASH_CRC32C:
		return "crc32c";
	default:
		return "unknown";
	}
}
