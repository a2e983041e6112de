# SPDX-License-Identifier: MIT

# Kernels for GPUs, compiled for the CPU. The library is part of the program below, and of other
# programs that play a GPU.
check_LTLIBRARIES += tests/cuda/libemulate.la
tests_cuda_libemulate_la_SOURCES = \
	kernels/cuda/check.c kernels/cuda/hash.c \
	tests/cuda/convert.c \
	tests/cuda/emulate.c tests/cuda/emulate.h \
	tests/cuda/kernels.c \
	tests/cuda/switch.c tests/cuda/switch.h
tests_cuda_libemulate_la_CFLAGS = $(KRN_CFLAGS) $(COROUTINE_CFLAGS)
tests_cuda_libemulate_la_LIBADD = -lm

cuda_suites = \
	tests/cuda/emulation.c \
	tests/cuda/gpu_check.c \
	tests/cuda/gpu_hash.c
check_PROGRAMS += tests/cuda/cuda
TESTS += $(cuda_suites) tests/cuda/test_gpu_check.py tests/cuda/inspect.sh
MINIMAL_TESTS += tests/cuda/test_gpu_check.py
# The plain build has machine code.
PLAIN_TESTS += tests/cuda/inspect.sh
THREADED_TESTS += tests/cuda/emulation.c
$(cuda_suites:.c=.log): tests/cuda/cuda$(EXEEXT)
tests/cuda/test_gpu_check.log: pcclctl/pcclctl$(EXEEXT)
tests_cuda_cuda_SOURCES = $(cuda_suites) \
	kernels/cuda/check_cpu.c kernels/cuda/check_cpu.h \
	tests/cuda/main.c tests/cuda/random.h tests/cuda/suites.h
tests_cuda_cuda_CFLAGS = $(KRN_CFLAGS) $(CHECK_CFLAGS)
tests_cuda_cuda_LDADD = tests/librunner.la tests/cuda/libemulate.la libhsh.la $(CHECK_LIBS) -lm

# Computes kernels/cuda/known.txt.
check_PROGRAMS += tests/cuda/known
tests_cuda_known_SOURCES = tests/cuda/known.c kernels/cuda/check_cpu.c kernels/cuda/check_cpu.h
tests_cuda_known_CFLAGS = $(KRN_CFLAGS)
tests_cuda_known_LDADD = libhsh.la -lm

EXTRA_DIST += tests/cuda/README.md tests/cuda/test_gpu_check.py tests/cuda/inspect.sh tests/cuda/test_figures.py

# The double of the driver. Programs open it as libcuda.so.1 in tests/cuda/.libs.
if HAVE_CUDA
check_LTLIBRARIES += tests/cuda/libcuda.la
tests_cuda_libcuda_la_SOURCES = \
	tests/cuda/double.h tests/cuda/double_inner.h \
	tests/cuda/double_memory.c \
	tests/cuda/double_work.c \
	tests/cuda/libcuda.c \
	libpccl-shim/copy.c libpccl-shim/copy.h
tests_cuda_libcuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
# Libtool makes a shared library of this version if there is an -rpath.
tests_cuda_libcuda_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere $(PTHREAD_FLAGS) $(SANITIZE_CFLAGS)
tests_cuda_libcuda_la_LIBADD = tests/cuda/libemulate.la

# A driver that is too old. It has a folder of its own because the name of the file is the same.
check_LTLIBRARIES += tests/cuda/old/libcuda.la
tests_cuda_old_libcuda_la_SOURCES = tests/cuda/old_driver.c
tests_cuda_old_libcuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_old_libcuda_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere $(SANITIZE_CFLAGS)

# Finds the driver: the double, or that of the machine.
check_LTLIBRARIES += tests/cuda/libopen.la
tests_cuda_libopen_la_SOURCES = tests/cuda/open.c tests/cuda/open.h kernels/cuda/driver.c
tests_cuda_libopen_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS) \
	-DDOUBLE='"$(abs_top_builddir)/tests/cuda/.libs/libcuda.so.1"'

# kinds contains the library. Its tests are those of the program tests/shim/kinds, with the memory of
# a device as the second kind of user memory.
check_LTLIBRARIES += tests/cuda/libkinds.la
tests_cuda_libkinds_la_SOURCES = $(libpccl_shim_libpccl_shim_la_SOURCES) tests/cuda/dummy_device.c \
	tests/cuda/open.c
tests_cuda_libkinds_la_CPPFLAGS = $(libpccl_shim_libpccl_shim_la_CPPFLAGS) $(CHECK_CFLAGS) \
	-DDOUBLE='"$(abs_top_builddir)/tests/cuda/.libs/libcuda.so.1"'
tests_cuda_libkinds_la_LIBADD = $(libpccl_shim_libpccl_shim_la_LIBADD)
check_PROGRAMS += tests/cuda/kinds tests/cuda/device
TESTS += tests/cuda/kinds tests/cuda/device
LONG_TESTS += tests/cuda/device
tests/cuda/kinds.log tests/cuda/device.log: tests/cuda/libcuda.la tests/cuda/old/libcuda.la
tests_cuda_kinds_SOURCES = tests/shim/kinds.c
tests_cuda_kinds_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS) -DDUMMY_KIND=pccl_buf_cuda
tests_cuda_kinds_LDADD = tests/cuda/libkinds.la tests/shim/libfake.la $(PROTOBUF_C_LIBS) \
	$(CHECK_LIBS)

# Figures of a device, for ./dev gpu. The program contains the library.
check_PROGRAMS += tests/cuda/figures
tests_cuda_figures_SOURCES = tests/cuda/figures.c
tests_cuda_figures_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_figures_LDADD = tests/cuda/libkinds.la $(PROTOBUF_C_LIBS)
TESTS += tests/cuda/test_figures.py
tests/cuda/test_figures.log: tests/cuda/figures$(EXEEXT) tests/cuda/libcuda.la

# Calls of the library with memory of devices.
tests_cuda_device_SOURCES = tests/cuda/device.c
tests_cuda_device_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS) \
	-DOLD_DRIVER='"$(abs_top_builddir)/tests/cuda/old/.libs/libcuda.so.1"'
tests_cuda_device_LDADD = tests/librunner.la tests/cuda/libopen.la libpccl-shim/libpccl-shim.la \
	tests/shim/libfake.la libhsh.la $(CHECK_LIBS)
endif
