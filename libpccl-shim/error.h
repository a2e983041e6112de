/* SPDX-License-Identifier: MIT
 *
 * The thread's last error. Inside the library every function that can fail for a reason that the
 * caller of the API should read returns pcclResult_t and has set the sentence of the calling
 * thread. Unless its header says otherwise, it leaves outputs alone when it fails, and owns nothing
 * then.
 *
 * Any thread. Nothing here fails or allocates.
 */
#ifndef PCCL_SHIM_ERROR_H
#define PCCL_SHIM_ERROR_H

#include <stdint.h>

#include "libpccl-shim/inner.h"

#include "libpccl-shim/include/pccl.h"

#define PCCL_TEXT_MAX 640 /* the agent's sentence and a few words of ours */

/* Sets the sentence and returns code. */
__attribute__((format(printf, 2, 3))) pcclResult_t pccl_fail(
	pcclResult_t code, const char *fmt, ...);
/* Sets the sentence and, behind it, what this process has run into; returns pcclOutOfMemory. */
__attribute__((format(printf, 1, 2))) pcclResult_t pccl_fail_memory(const char *fmt, ...);
/* Copies the sentence, to set it again after calls that may fail as well. */
void pccl_fail_text(char to[PCCL_TEXT_MAX]);
/* Forgets the sentence and returns pcclSuccess. */
pcclResult_t pccl_ok(void);
/* A code that came over a wire: numbers that are no code become pcclInternalError. */
pcclResult_t pccl_fail_code(uint32_t code);

#endif
