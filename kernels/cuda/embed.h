/* SPDX-License-Identifier: MIT
 *
 * Puts a file into the program as a constant, with a 0 after its last byte.
 */
#ifndef KERNELS_CUDA_EMBED_H
#define KERNELS_CUDA_EMBED_H

/* At file scope. Both are strings. */
#define EMBED(symbol, file)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".balign 16\n"                                                                     \
		".globl " symbol "\n"                                                              \
		".hidden " symbol "\n"                                                             \
		".type " symbol ", %object\n" symbol ":\n"                                         \
		".incbin \"" file "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".size " symbol ", . - " symbol "\n"                                               \
		".popsection")

#endif
