# SPDX-License-Identifier: MIT

# -ffp-contract=off, because a fused multiply-add would round differently on different CPUs.
KRN_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

noinst_LTLIBRARIES += libkrn.la
noinst_HEADERS += kernels/krn.h kernels/cuda/gpu.h kernels/cuda/gpu_hash.h kernels/krn_avx2.h kernels/krn_avx512.h kernels/krn_half.h \
	kernels/krn_impl.h kernels/krn_neon.h kernels/krn_simd.h kernels/krn_vec.h
libkrn_la_SOURCES = kernels/krn.c kernels/krn_scalar.c
libkrn_la_CFLAGS = $(KRN_CFLAGS)
libkrn_la_LIBADD =

# One library per instruction set, because no other code may be compiled with its flags.
if ARCH_X86_64
noinst_LTLIBRARIES += libkrn_avx2.la libkrn_avx512.la
libkrn_avx2_la_SOURCES = kernels/krn_avx2.c
libkrn_avx2_la_CFLAGS = $(KRN_CFLAGS) -mavx2 -mf16c
libkrn_avx512_la_SOURCES = kernels/krn_avx512.c
libkrn_avx512_la_CFLAGS = $(KRN_CFLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl
libkrn_la_LIBADD += libkrn_avx2.la libkrn_avx512.la
endif

if ARCH_AARCH64
libkrn_la_SOURCES += kernels/krn_neon.c
endif

# Quantization. Programs with libqnt also link libkrn.
noinst_LTLIBRARIES += libqnt.la
noinst_HEADERS += kernels/qnt.h kernels/qnt_impl.h kernels/qnt_vec.h
libqnt_la_SOURCES = kernels/qnt.c kernels/qnt_loss.c kernels/qnt_scalar.c \
	kernels/qnt_tables.c
libqnt_la_CFLAGS = $(KRN_CFLAGS)
libqnt_la_LIBADD =

if ARCH_X86_64
noinst_LTLIBRARIES += libqnt_avx2.la libqnt_avx512.la
libqnt_avx2_la_SOURCES = kernels/qnt_avx2.c
libqnt_avx2_la_CFLAGS = $(KRN_CFLAGS) -mavx2 -mf16c
libqnt_avx512_la_SOURCES = kernels/qnt_avx512.c
libqnt_avx512_la_CFLAGS = $(KRN_CFLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl
libqnt_la_LIBADD += libqnt_avx2.la libqnt_avx512.la
endif

if ARCH_AARCH64
libqnt_la_SOURCES += kernels/qnt_neon.c
endif

# The hash. libhsh is pure; libhsh_run contains the code that needs threads or another library.
noinst_LTLIBRARIES += libhsh.la libhsh_run.la
noinst_HEADERS += kernels/hsh.h kernels/hsh_impl.h kernels/hsh_run.h kernels/hsh_vec.h
libhsh_la_SOURCES = kernels/hsh.c kernels/hsh_keys.c kernels/hsh_scalar.c
libhsh_la_LIBADD =
libhsh_run_la_SOURCES = kernels/hsh_crc32c.c kernels/hsh_threads.c
libhsh_run_la_LIBADD = libhsh.la

if ARCH_X86_64
noinst_LTLIBRARIES += libhsh_avx2.la libhsh_avx512.la
libhsh_avx2_la_SOURCES = kernels/hsh_avx2.c
libhsh_avx2_la_CFLAGS = $(AM_CFLAGS) -mavx2
libhsh_avx512_la_SOURCES = kernels/hsh_avx512.c
libhsh_avx512_la_CFLAGS = $(AM_CFLAGS) -mavx512f
libhsh_la_LIBADD += libhsh_avx2.la libhsh_avx512.la
endif

if ARCH_AARCH64
libhsh_la_SOURCES += kernels/hsh_neon.c
endif

# Kernels for GPUs. nvcc compiles them to fat binaries, which are parts of libraries. Builds with a
# sanitizer, which are never installed, have no machine code: the driver translates the PTX.
if HAVE_CUDA
if SANITIZED
gpu_codes =
else
gpu_codes = $(GPU_ARCHS)
endif
NVCC_FLAGS = -std=c++17 -O3 -fmad=false --threads 0 $(NVCC_WARN_FLAGS) \
	-gencode arch=compute_75,code=compute_75 \
	$(foreach code,$(gpu_codes),-gencode arch=compute_$(code),code=sm_$(code))

kernels/cuda/%.fatbin: kernels/cuda/%.c kernels/cuda/gpu.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		$(NVCC) $(NVCC_FLAGS) -I$(srcdir) -x cu -fatbin -o $@.tmp $< && mv $@.tmp $@
kernels/cuda/hash.fatbin: kernels/cuda/gpu_hash.h kernels/hsh.h kernels/hsh_impl.h
kernels/cuda/check.fatbin: kernels/cuda/check_value.h kernels/cuda/gpu_check.h kernels/krn_half.h
CLEANFILES += kernels/cuda/check.fatbin kernels/cuda/hash.fatbin

# pccl_gpu_fatbin for the shim and pcclctl, and what only pcclctl needs.
noinst_LTLIBRARIES += libgpu_hash.la libgpu_check.la
libgpu_hash_la_SOURCES = kernels/cuda/embed_hash.c kernels/cuda/embed.h
libgpu_check_la_SOURCES = kernels/cuda/check_cpu.c kernels/cuda/check_cpu.h \
	kernels/cuda/embed_check.c kernels/cuda/embed_known.c kernels/cuda/embed.h
libgpu_check_la_CPPFLAGS = $(AM_CPPFLAGS) -DKNOWN='"$(srcdir)/kernels/cuda/known.txt"'
libgpu_check_la_CFLAGS = $(KRN_CFLAGS)
# The objects contain these files. (Automake writes no rule for an object that has one here by its name.)
gpu_embed = kernels/cuda/embed_
gpu_check_embed = kernels/cuda/libgpu_check_la-embed_
$(gpu_embed)hash.lo: kernels/cuda/hash.fatbin
$(gpu_check_embed)check.lo: kernels/cuda/check.fatbin
$(gpu_check_embed)known.lo: kernels/cuda/known.txt
endif
noinst_HEADERS += kernels/cuda/check_value.h kernels/cuda/gpu_check.h
EXTRA_DIST += kernels/cuda/README.md kernels/cuda/check.c kernels/cuda/hash.c kernels/cuda/known.txt
