/* SPDX-License-Identifier: MIT
 *
 * The modes of quantization. Each valid mode is decoded and written in one form. Every other mode
 * is refused with a sentence that names what does not fit.
 */
#include "proto/wire_quant.h"

#include <check.h>
#include <string.h>

#include "common/cc_err.h"
#include "libpccl-shim/include/pccl.h"
#include "tests/proto/suites.h"

static struct wire_quant got(uint32_t from, uint32_t algo, uint32_t to, uint32_t hint)
{
	struct wire_quant_numbers n = {algo, to, hint};
	char why[WIRE_QUANT_TEXT] = "";
	struct wire_quant q;

	ck_assert_msg(
		wire_quant_get(from, &n, &q, why) == 0, "%u to %u by %u: %s", from, to, algo, why);
	return q;
}

static void refused(uint32_t from, uint32_t algo, uint32_t to, uint32_t hint, const char *words)
{
	struct wire_quant_numbers n = {algo, to, hint};
	char why[WIRE_QUANT_TEXT] = "";
	struct wire_quant q;

	ck_assert_int_eq(wire_quant_get(from, &n, &q, why), CC_ERR_INVAL);
	ck_assert_msg(strstr(why, words) != NULL, "\"%s\" does not say \"%s\"", why, words);
}

/* The numbers of the public header are those of the wire. */
START_TEST(numbers_are_those_of_the_public_header)
{
	ck_assert_uint_eq(pcclQuantNone, WIRE_QUANT_NONE);
	ck_assert_uint_eq(pcclQuantMinMax, WIRE_QUANT_MIN_MAX);
	ck_assert_uint_eq(pcclQuantZeroPointScale, WIRE_QUANT_ZERO_POINT);
	ck_assert_uint_eq(pcclQuantBlockwise, WIRE_QUANT_BLOCKWISE);
	ck_assert_uint_eq(PCCL_QUANT_BF16_SCALES, WIRE_QUANT_BF16_SCALE);
	ck_assert_uint_eq(PCCL_QUANT_STOCHASTIC, WIRE_QUANT_STOCHASTIC);
	ck_assert_uint_eq(PCCL_QUANT_MIXED, WIRE_QUANT_MIXED);
	ck_assert_uint_eq(pcclInt4, WIRE_DTYPE_INT4);
	ck_assert_uint_eq(pcclFloat8E4M3, WIRE_DTYPE_F8E4M3);
	ck_assert_uint_eq(pcclFloat8E5M2, WIRE_DTYPE_F8E5M2);
	ck_assert_uint_eq(got(pcclFloat, PCCL_QUANT_BLOCKWISE(7, 0), pcclInt8, 0).block, 128);
}
END_TEST

/* Returns whether elements of type `from` can be quantized to `to`, by the text of pccl.h. */
static bool is_pair(uint32_t kind, uint32_t from, uint32_t to)
{
	bool floats = from == pcclFloat16 || from == pcclBFloat16 || from == pcclFloat ||
		      from == pcclDouble;
	bool wide = from == pcclFloat || from == pcclDouble;

	if (kind == pcclQuantBlockwise)
		return floats && (to == pcclInt8 || to == pcclInt4 || to == pcclFloat8E4M3 ||
					 to == pcclFloat8E5M2);
	return (floats && (to == pcclUint8 || to == pcclInt8 || to == pcclUint16 ||
				  to == pcclInt16)) ||
	       (wide && (to == pcclFloat16 || to == pcclBFloat16));
}

START_TEST(only_pairs_of_the_public_header_are_valid)
{
	static const uint32_t kinds[] = {
		pcclQuantMinMax, pcclQuantZeroPointScale, pcclQuantBlockwise};

	for (size_t k = 0; k < 3; k++)
		for (uint32_t from = 0; from <= 11; from++)
			for (uint32_t to = 0; to <= 70; to++)
				if (is_pair(kinds[k], from, to))
					ck_assert_uint_eq(got(from, kinds[k], to, 0).dtype, to);
				else
					refused(from, kinds[k], to, 0, "cannot be quantized to");
}
END_TEST

START_TEST(defaults_are_written_out)
{
	struct wire_quant q = got(pcclFloat, pcclQuantBlockwise, pcclInt8, pcclDistributionNormal);
	struct wire_quant_numbers n = wire_quant_put(&q);

	ck_assert_uint_eq(q.block, 256);
	ck_assert_uint_eq(n.algo, PCCL_QUANT_BLOCKWISE(8, 0));
	ck_assert_uint_eq(n.hint, pcclDistributionNormal);
	q = got(pcclFloat, pcclQuantBlockwise, pcclInt4, 0);
	ck_assert_uint_eq(q.block, 32);
	q = got(pcclDouble,
		PCCL_QUANT_BLOCKWISE(
			10, PCCL_QUANT_MIXED | PCCL_QUANT_BF16_SCALES | PCCL_QUANT_STOCHASTIC),
		pcclInt4, 0);
	ck_assert(q.mixed && q.bf16_scale && q.stochastic && q.block == 1024);
	n = wire_quant_put(&q);
	ck_assert_uint_eq(
		n.algo, PCCL_QUANT_BLOCKWISE(10,
				PCCL_QUANT_MIXED | PCCL_QUANT_BF16_SCALES | PCCL_QUANT_STOCHASTIC));
	q = got(pcclFloat, pcclQuantMinMax | WIRE_QUANT_FEEDBACK, pcclUint8, 0);
	ck_assert(q.feedback && !q.stochastic);
	ck_assert_uint_eq(wire_quant_put(&q).algo, pcclQuantMinMax | WIRE_QUANT_FEEDBACK);
	/* Numbers that have no effect are written as 0. */
	q = got(pcclFloat, pcclQuantMinMax, pcclUint8, 77);
	ck_assert_uint_eq(wire_quant_put(&q).hint, 0);
	q = got(pcclInt32, pcclQuantNone, 99, 99);
	n = wire_quant_put(&q);
	ck_assert(n.algo == 0 && n.dtype == 0 && n.hint == 0);
}
END_TEST

START_TEST(invalid_algorithms_are_refused)
{
	static const uint32_t algos[] = {3, 63, 65, 127, 1 | 1u << 8, 2 | PCCL_QUANT_MIXED,
		1 | PCCL_QUANT_BF16_SCALES, 1u << 15, 1u << 16, 64 | 1u << 16, 1u << 8, UINT32_MAX};

	for (size_t i = 0; i < sizeof algos / sizeof *algos; i++)
		refused(pcclFloat, algos[i], pcclInt8, 0, "there is no quantization algorithm");
	refused(pcclFloat, PCCL_QUANT_BLOCKWISE(4, 0), pcclInt8, 0, "must be 2^5 to 2^10");
	refused(pcclFloat, PCCL_QUANT_BLOCKWISE(11, 0), pcclInt8, 0, "must be 2^5 to 2^10");
	refused(pcclFloat, pcclQuantBlockwise | PCCL_QUANT_MIXED, pcclInt8, 0, "only for int4");
	refused(pcclFloat, pcclQuantBlockwise | PCCL_QUANT_STOCHASTIC, pcclFloat8E4M3, 0,
		"only for integers, not for float8 e4m3");
	refused(pcclFloat, pcclQuantMinMax | PCCL_QUANT_STOCHASTIC, pcclFloat16, 0,
		"only for integers");
	refused(pcclFloat, pcclQuantBlockwise, pcclInt8, 3, "no distribution hint 3");
}
END_TEST

START_TEST(names_show_all_options)
{
	char name[WIRE_QUANT_NAME];

	ck_assert_str_eq(wire_quant_name(pcclQuantNone, name), "none");
	ck_assert_str_eq(wire_quant_name(pcclQuantMinMax, name), "minmax");
	ck_assert_str_eq(wire_quant_name(pcclQuantZeroPointScale, name), "zero-point-scale");
	ck_assert_str_eq(wire_quant_name(3, name), "unknown");
	ck_assert_str_eq(
		wire_quant_name(PCCL_QUANT_BLOCKWISE(5, PCCL_QUANT_MIXED | PCCL_QUANT_BF16_SCALES |
								PCCL_QUANT_STOCHASTIC),
			name),
		"blockwise of 32, bf16 scales, stochastic, mixed");
	ck_assert_str_eq(wire_quant_name((WIRE_QUANT_MAX & ~0xffu) | pcclQuantBlockwise, name),
		"blockwise of 32768, bf16 scales, stochastic, mixed, error feedback");
	ck_assert_str_eq(wire_quant_dtype_name(pcclInt4), "int4");
	ck_assert_str_eq(wire_quant_dtype_name(pcclFloat8E5M2), "float8 e5m2");
	ck_assert_str_eq(wire_quant_dtype_name(pcclInt16), "int16");
	ck_assert_str_eq(wire_quant_dtype_name(67), "unknown");
}
END_TEST

Suite *quant_suite(void)
{
	Suite *s = suite_create("quant");
	TCase *tc = tcase_create("modes");

	tcase_add_test(tc, numbers_are_those_of_the_public_header);
	tcase_add_test(tc, only_pairs_of_the_public_header_are_valid);
	tcase_add_test(tc, defaults_are_written_out);
	tcase_add_test(tc, invalid_algorithms_are_refused);
	tcase_add_test(tc, names_show_all_options);
	suite_add_tcase(s, tc);
	return s;
}
