/* SPDX-License-Identifier: MIT
 *
 * Random valid messages of every kind, and whether two of them are equal field by field: for the
 * codec tests, the fuzz targets and the generator of their corpora.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/wire_link.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"
#include "tests/common/testlib.h"

extern const enum wm_type sample_master_types[];
extern const size_t sample_master_n_types;

struct cc_id sample_id(struct tl_rng *r); /* never zero */
/* Clean UTF-8 that fills at most size bytes with its NUL; sometimes empty, sometimes full. */
void sample_text(struct tl_rng *r, char *ret, size_t size);
/* port >= port_min. */
struct cc_addr sample_addr(struct tl_rng *r, uint16_t port_min);

/* Fills *ret, which wire_master_clear frees. */
void sample_master(struct tl_rng *r, enum wm_type type, struct wm_msg *ret);
bool same_master(const struct wm_msg *a, const struct wm_msg *b);

#endif
