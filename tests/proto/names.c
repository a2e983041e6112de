/* SPDX-License-Identifier: MIT */
#include "proto/wire_names.h"

#include "libpccl-shim/include/pccl.h"
#include "proto/wire_sync.h"
#include "tests/common/testlib.h"
#include "tests/proto/suites.h"

START_TEST(numbers_have_names)
{
	ck_assert_str_eq(wire_dtype_name(pcclUint8), "uint8");
	ck_assert_str_eq(wire_dtype_name(pcclInt8), "int8");
	ck_assert_str_eq(wire_dtype_name(pcclInt16), "int16");
	ck_assert_str_eq(wire_dtype_name(pcclUint16), "uint16");
	ck_assert_str_eq(wire_dtype_name(pcclUint32), "uint32");
	ck_assert_str_eq(wire_dtype_name(pcclInt32), "int32");
	ck_assert_str_eq(wire_dtype_name(pcclUint64), "uint64");
	ck_assert_str_eq(wire_dtype_name(pcclInt64), "int64");
	ck_assert_str_eq(wire_dtype_name(pcclFloat16), "float16");
	ck_assert_str_eq(wire_dtype_name(pcclBFloat16), "bfloat16");
	ck_assert_str_eq(wire_dtype_name(pcclFloat), "float");
	ck_assert_str_eq(wire_dtype_name(pcclDouble), "double");
	ck_assert_str_eq(wire_op_name(pcclSum), "sum");
	ck_assert_str_eq(wire_op_name(pcclAvg), "avg");
	ck_assert_str_eq(wire_op_name(pcclProd), "prod");
	ck_assert_str_eq(wire_op_name(pcclMax), "max");
	ck_assert_str_eq(wire_op_name(pcclMin), "min");
	ck_assert_str_eq(wire_hint_name(pcclDistributionNormal), "normal");
	ck_assert_str_eq(wire_hint_name(pcclDistributionUniform), "uniform");
	ck_assert_str_eq(wire_strategy_name(PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR),
		"enforce-popular");
	ck_assert_str_eq(
		wire_strategy_name(PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY), "receive-only");
	ck_assert_str_eq(
		wire_strategy_name(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY), "send-only");
	ck_assert_str_eq(wire_hash_name(WM_HASH_SIMPLE), "simplehash");
	ck_assert_str_eq(wire_hash_name(WM_HASH_CRC32C), "crc32c");
}
END_TEST

START_TEST(unknown_numbers_are_called_unknown)
{
	ck_assert_str_eq(wire_dtype_name(pcclDouble + 1), "unknown");
	ck_assert_str_eq(wire_op_name(UINT32_MAX), "unknown");
	ck_assert_str_eq(wire_hint_name(pcclDistributionUniform + 1), "unknown");
	ck_assert_str_eq(
		wire_strategy_name(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY + 1), "unknown");
	ck_assert_str_eq(wire_hash_name(0), "unknown");
	ck_assert_str_eq(wire_hash_name(WIRE_HASH_TYPE_MAX), "unknown");
}
END_TEST

Suite *names_suite(void)
{
	Suite *s = suite_create("names");
	TCase *tc = tcase_create("names");

	tcase_add_test(tc, numbers_have_names);
	tcase_add_test(tc, unknown_numbers_are_called_unknown);
	suite_add_tcase(s, tc);
	return s;
}
