/* SPDX-License-Identifier: MIT
 *
 * Hashes of functions that are known, or that gpu-check has printed on other hosts.
 */
#ifndef CTL_GPU_TABLE_H
#define CTL_GPU_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl_gpu_table {
	struct ctl_gpu_row {
		char function[32];
		char architecture[16]; /* "*": all */
		uint64_t hash;
	} * row;
	size_t n, cap;
};

enum ctl_gpu_match {
	CTL_GPU_UNKNOWN, /* there is nothing to compare with */
	CTL_GPU_EQUAL,
	CTL_GPU_DIFFERS,
};

/* Parses the output of gpu-check, text or JSON, or known.txt. Returns 0; or the number of the line
 * that is wrong, with -1 for wrong JSON. The caller clears the table in any case. */
int ctl_gpu_table_parse(const char *text, struct ctl_gpu_table *ret);
void ctl_gpu_table_clear(struct ctl_gpu_table *t);

/* Compares a hash with all rows for this function that are for the architecture or for all. NULL:
 * for any architecture. */
enum ctl_gpu_match ctl_gpu_table_compare(const struct ctl_gpu_table *t, const char *function,
	const char *architecture, uint64_t hash);

#endif
