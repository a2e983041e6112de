# SPDX-License-Identifier: MIT

# The parts without input or output, which tests use.
noinst_LTLIBRARIES += pccl-bench/libpccl-bench.la
pccl_bench_libpccl_bench_la_SOURCES = \
	pccl-bench/data.c pccl-bench/data.h \
	pccl-bench/fields.c pccl-bench/fields.h \
	pccl-bench/json.c \
	pccl-bench/modes.c pccl-bench/modes.h \
	pccl-bench/options.c pccl-bench/options.h \
	pccl-bench/quant.c pccl-bench/quant.h \
	pccl-bench/quant_json.c \
	pccl-bench/quant_table.c \
	pccl-bench/result.h \
	pccl-bench/sample.c pccl-bench/sample.h \
	pccl-bench/simulate.c pccl-bench/simulate.h \
	pccl-bench/size.c pccl-bench/size.h \
	pccl-bench/stats.c pccl-bench/stats.h \
	pccl-bench/table.c
pccl_bench_libpccl_bench_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
pccl_bench_libpccl_bench_la_LIBADD = proto/libwire.la libqnt.la libkrn.la common/libcommon-options.la common/libcommon-sys.la common/libcommon-pure.la $(JSON_C_LIBS) -lm

bin_PROGRAMS += pccl-bench/pccl-bench
pccl_bench_pccl_bench_SOURCES = \
	pccl-bench/api.c pccl-bench/api.h \
	pccl-bench/bench.c pccl-bench/bench.h \
	pccl-bench/board.c pccl-bench/board.h \
	pccl-bench/device.c pccl-bench/device.h \
	pccl-bench/buffer.c pccl-bench/buffer.h \
	pccl-bench/procs.c pccl-bench/procs.h \
	pccl-bench/hosts.c pccl-bench/hosts.h \
	pccl-bench/main.c \
	pccl-bench/peer.c pccl-bench/peer.h \
	pccl-bench/quant_run.c pccl-bench/quant_run.h \
	pccl-bench/usage.c pccl-bench/usage.h \
	libpccl-shim/program.c
pccl_bench_pccl_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
if HAVE_CUDA
pccl_bench_pccl_bench_SOURCES += kernels/cuda/driver.c
pccl_bench_pccl_bench_CPPFLAGS += $(CUDA_CPPFLAGS)
endif
pccl_bench_pccl_bench_LDADD = pccl-bench/libpccl-bench.la libpccl-shim/libpccl-shim.la -ldl
