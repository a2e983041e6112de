/* SPDX-License-Identifier: MIT
 *
 * Where the sums and the result of a transfer go, and what its processes are told of it.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdint.h>

#include "pcclagentd/core/agt.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/local/local.h"

struct xfer;

struct op_output {
	enum shm_result_mode mode; /* NONE: nothing was taken */
	struct loc_result *result; /* NULL, or where flags are, and in some modes more */
	uint64_t flags_off;        /* bytes of the result region before the flags */
};

/* Chooses one of the modes (ENG_OUTPUT), takes its memory into x->output, and completes spec and
 * members. The members of x are there. WIRE_SUCCESS, or a code and text[WL_TEXT_MAX]. */
uint32_t op_output_take(struct xfer *x, const struct agt_xfer *t, uint32_t modes,
	struct eng_xfer_spec *spec, struct eng_member *members, char *text);
/* From here on the shims may follow the segment flags. */
void op_output_announce(const struct xfer *x, const struct agt_xfer *t);
/* The shims forget what was announced: another attempt takes its place. */
void op_output_withdraw(const struct xfer *x);
/* Shims may still copy out of it. */
void op_output_give_back(struct op_output *out);

#endif
