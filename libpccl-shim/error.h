/* SPDX-License-Identifier: MIT
 *
 * The last error of a thread. Inside the library, a function returns pcclResult_t if the caller of
 * the API should learn why the function failed. A function that fails has set the sentence of the
 * calling thread. Unless its header says otherwise, it has then written no outputs and holds no
 * resources.
 *
 * Any thread. Nothing here fails or allocates.
 */
#ifndef PCCL_SHIM_ERROR_H
#define PCCL_SHIM_ERROR_H

#include <stdint.h>

#include "libpccl-shim/inner.h"

#include "libpccl-shim/include/pccl.h"

#define PCCL_TEXT_MAX 640 /* room for the agent's sentence and a few words of the library */

/* Sets the sentence and returns code. */
__attribute__((format(printf, 2, 3))) pcclResult_t pccl_fail(
	pcclResult_t code, const char *fmt, ...);
/* Sets the sentence, followed by the limit that this process has reached. Returns
 * pcclOutOfMemory. */
__attribute__((format(printf, 1, 2))) pcclResult_t pccl_fail_memory(const char *fmt, ...);
/* Copies the sentence into `to`, so that the caller can set it again after calls that may change
 * it. */
void pccl_fail_text(char to[PCCL_TEXT_MAX]);
/* Clears the sentence and returns pcclSuccess. */
pcclResult_t pccl_ok(void);
/* Returns the result code for a number from another process. An unknown number gives
 * pcclInternalError. */
pcclResult_t pccl_fail_code(uint32_t code);

#endif
