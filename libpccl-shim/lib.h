/* SPDX-License-Identifier: MIT
 *
 * Whether the library may be used in this process. Any thread; owns nothing.
 */
#ifndef PCCL_SHIM_LIB_H
#define PCCL_SHIM_LIB_H

#include "libpccl-shim/error.h"

/* pcclSuccess when pcclInit was called in this process. Sets no sentence then. Otherwise
 * pcclNotInitialized, or pcclInvalidUsage in a forked child. */
pcclResult_t pccl_lib_check(void);
/* pcclInit has done its work. */
void pccl_lib_set_ready(void);
/* In a forked child. */
void pccl_lib_after_fork(void);

#endif
