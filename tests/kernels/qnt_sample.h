/* SPDX-License-Identifier: MIT */
#ifndef QNT_SAMPLE_H
#define QNT_SAMPLE_H

#include "kernels/qnt.h"

/* Formats, numbers and segments for the tests of quantization. */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* All schemes with their codes. */
struct qnt_family {
	enum qnt_scheme scheme;
	enum qnt_code code;
};
#define FAMILIES 15
extern const struct qnt_family families[FAMILIES];

/* The types of elements that can be quantized. */
extern const enum krn_dtype float_dtypes[4];

/* Lists the valid formats with this scheme and code. Returns their number. */
#define MAX_FORMATS 512
unsigned list_formats(const struct qnt_family *family, struct qnt_format *formats);

struct qnt_format block_format(enum qnt_code code, uint32_t block, enum qnt_hint hint);
struct qnt_format linear_format(enum qnt_scheme scheme, enum qnt_code code);

/* Returns whether the format does the same as a format of another dtype with the same accumulator
 * type. */
bool is_twin(const struct qnt_format *f);

/* Returns the bytes of a number of the accumulator type. */
size_t acc_size(const struct qnt_format *f);

/* Returns element i of an array of the accumulator type. */
double number(const struct qnt_format *f, const void *acc, size_t i);

enum flavour {
	NORMAL,    /* standard normal */
	OFFSET,    /* close to each other and far from 0 */
	SPRINKLED, /* normal, with zeros, NaN and infinity */
	BITS,      /* any finite number */
	LARGE,     /* of the order of the largest number */
	SUBNORMAL, /* the smallest numbers */
	EQUAL,     /* the same number */
	SPARSE,    /* zeros of both signs, with groups of normal numbers */
	RAW,       /* any bits */
	FLAVOUR_COUNT
};

double random_normal(uint64_t *seed);

/* Returns the bits of element i of an array of the accumulator type t. */
uint64_t random_number(enum krn_dtype t, enum flavour flavour, size_t i, uint64_t *seed);

/* Returns memory of at least one byte, or fails. */
void *allocate(size_t bytes);

/* A segment, its bytes, and what must be decoded. */
struct sample {
	struct qnt_format f;
	struct qnt_noise noise;
	size_t n;
	void *acc, *decoded;
	unsigned char *wire;
	size_t bytes;
};

void sample_init(struct sample *s, const struct qnt_format *f, size_t n);
void sample_free(struct sample *s);

/* Writes random numbers, and the results that the reference computes from them. */
void sample_fill(struct sample *s, enum flavour flavour, uint64_t *seed);

/* Writes only the results of the reference. The caller has written the numbers. */
void sample_expect(struct sample *s);

#endif
