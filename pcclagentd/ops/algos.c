/* SPDX-License-Identifier: MIT
 *
 * The agent's all-reduce algorithms. An operation is done by the first one that can do it.
 */
#include "pcclagentd/ops/ops_internal.h"

const struct eng_algo *const op_algos[] = {&op_eager, &eng_on_host, &eng_ring, NULL};
