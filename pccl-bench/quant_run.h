/* SPDX-License-Identifier: MIT
 *
 * The benchmark `quant`: reads the gradient, measures speeds and prints the report.
 */
#ifndef BCH_QUANT_RUN_H
#define BCH_QUANT_RUN_H

#include "pccl-bench/options.h"

/* Returns the exit status: 0; EX_NOINPUT or EX_DATAERR, after a message, if the file of the
 * gradient cannot be used; or EX_OSERR. */
int bch_quant_run(const struct bch_options *o);

#endif
