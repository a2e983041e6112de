/* SPDX-License-Identifier: MIT */
#ifndef QNT_REF_H
#define QNT_REF_H

#include "kernels/qnt.h"

/*
 * A second implementation of qnt.h, written from its text. It shares with the kernels only the
 * enums and the tables of qnt_normal_levels and qnt_clip. It is slow: it searches codes and scales.
 */

void ref_qnt_encode(const struct qnt_format *f, unsigned char *wire, const void *acc, size_t n,
	const struct qnt_noise *noise);
void ref_qnt_decode(const struct qnt_format *f, void *acc, const unsigned char *wire, size_t n);

/* Returns the number of elements with the same scale: a block of QNT_BLOCK, or all. */
size_t ref_qnt_group(const struct qnt_format *f, size_t n);

/* Returns the noise of qnt_noise_at. */
double ref_qnt_noise(uint64_t key, uint64_t index);

#endif
