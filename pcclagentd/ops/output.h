/* SPDX-License-Identifier: MIT
 *
 * Chooses the memory for the sums and the result of a transfer, and announces it to the processes.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdint.h>

#include "pcclagentd/core/agt.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/local/local.h"

struct xfer;

struct op_output {
	enum shm_result_mode mode; /* NONE: no memory was taken */
	struct loc_result *result; /* result region, with the segment flags; or NULL */
	uint64_t flags_off;        /* bytes of the result region in front of the flags */
};

/* Chooses one of the `modes` (ENG_OUTPUT), takes memory for it into x->output, and completes `spec`
 * and `members`. x->members must be complete. WIRE_SUCCESS, or a code and text[WL_TEXT_MAX]. */
uint32_t op_output_take(struct xfer *x, const struct agt_xfer *t, uint32_t modes,
	struct eng_xfer_spec *spec, struct eng_member *members, char *text);
/* Announces the memory to the shims. From now on they may follow the segment flags. */
void op_output_announce(const struct xfer *x, const struct agt_xfer *t);
/* Takes the announcement back, because another attempt replaces this one. */
void op_output_withdraw(const struct xfer *x);
/* Gives the memory back. Shims may still copy the result from it. */
void op_output_give_back(struct op_output *out);

#endif
