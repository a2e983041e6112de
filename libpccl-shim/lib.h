/* SPDX-License-Identifier: MIT
 *
 * Knows whether the library may be used in this process. Any thread; owns nothing.
 */
#ifndef PCCL_SHIM_LIB_H
#define PCCL_SHIM_LIB_H

#include "libpccl-shim/error.h"

/* If pcclInit was called in this process, returns pcclSuccess and sets no sentence. Otherwise
 * returns pcclNotInitialized, or pcclInvalidUsage in a forked child. */
pcclResult_t pccl_lib_check(void);
/* Records that pcclInit has succeeded. */
void pccl_lib_set_ready(void);
/* Resets the state in a forked child. */
void pccl_lib_after_fork(void);

#endif
