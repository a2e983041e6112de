/* SPDX-License-Identifier: MIT
 *
 * Operands whose result is known exactly, in every type and for every order of combination: small
 * whole numbers. The value of an element depends on the peer, the operation and the element's
 * place. A buffer repeats a pattern of a prime number of elements. So filling and checking cost
 * only a copy and a comparison, but a piece in the wrong place is still noticed. Pure.
 */
#ifndef BCH_DATA_H
#define BCH_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <pccl.h>

#define BCH_PEERS_MAX     126u /* with more peers, sums would not be exact in 8 bits */
#define BCH_PATTERN_COUNT 8191u
#define BCH_PATTERN_BYTES (BCH_PATTERN_COUNT * 8)

struct bch_kind {
	pcclDataType_t type;
	pcclRedOp_t op;
};

/* The names of types and operators on the command line, indexed by pcclDataType_t and pcclRedOp_t,
 * with NULL at the end. */
extern const char *const bch_type_names[], *const bch_op_names[];
size_t bch_type_size(pcclDataType_t type);

/* Returns a number that looks random and depends only on x. */
uint64_t bch_mix(uint64_t x);

/* Writes the pattern that peer `rank` of n_peers contributes to operation number `round`. ret:
 * naturally aligned, BCH_PATTERN_COUNT elements. */
void bch_pattern_operand(
	void *ret, const struct bch_kind *kind, uint32_t n_peers, uint32_t rank, uint64_t round);
/* Writes the pattern of the result. */
void bch_pattern_result(void *ret, const struct bch_kind *kind, uint32_t n_peers, uint64_t round);

/* Fills count elements of `size` bytes. */
void bch_data_fill(void *buf, size_t count, size_t size, const void *pattern);
/* Returns the number of elements that differ from the pattern. */
uint64_t bch_data_wrong(const void *buf, size_t count, size_t size, const void *pattern);

#endif
