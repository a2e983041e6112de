/* SPDX-License-Identifier: MIT
 *
 * The coordinator: has everything started, and tells what comes out.
 */
#ifndef BCH_BENCH_H
#define BCH_BENCH_H

#include "pccl-bench/options.h"

/* Returns the exit status: 0, EX_SOFTWARE when there were errors, EX_UNAVAILABLE when it did not
 * work, EX_OSERR, EX_IOERR when results could not be written, which it has said, or 128 and the
 * number of the signal that ended it. */
int bch_bench(const struct bch_options *o);

#endif
