/* SPDX-License-Identifier: MIT
 *
 * The agent's all-reduce algorithms. The first algorithm that can do an operation is used.
 */
#include "pcclagentd/ops/ops_internal.h"

const struct eng_algo *const op_algos[] = {&op_eager, &eng_on_host, &eng_routed, NULL};
