/* SPDX-License-Identifier: MIT
 *
 * The coordinator: starts all processes and prints the results.
 */
#ifndef BCH_BENCH_H
#define BCH_BENCH_H

#include "pccl-bench/options.h"

/* Runs the benchmark. Returns the exit status: 0; EX_SOFTWARE if there were errors; EX_UNAVAILABLE
 * if it failed; EX_OSERR; EX_IOERR if results could not be written, after a message; or 128 and the
 * number of the signal that ended it. */
int bch_bench(const struct bch_options *o);

#endif
