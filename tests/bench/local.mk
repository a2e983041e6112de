# SPDX-License-Identifier: MIT

bench_suites = tests/bench/bench.c tests/bench/quant.c
check_PROGRAMS += tests/bench/bench
TESTS += $(bench_suites)
$(bench_suites:.c=.log): tests/bench/bench$(EXEEXT)
tests_bench_bench_SOURCES = $(bench_suites) tests/bench/main.c tests/bench/suites.h
tests_bench_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include $(CHECK_CFLAGS)
tests_bench_bench_LDADD = tests/librunner.la pccl-bench/libpccl-bench.la libkrn.la $(CHECK_LIBS) -lm

# The tests load this library by its path. It is never installed, but libtool makes a shared object
# only with -rpath.
check_LTLIBRARIES += tests/bench/fake_pccl.la
tests_bench_fake_pccl_la_SOURCES = tests/bench/fake_pccl.c
tests_bench_fake_pccl_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_bench_fake_pccl_la_LDFLAGS = -module -avoid-version -rpath $(libdir) $(SANITIZE_CFLAGS)

# Runs pccl-bench/pccl-bench of the build folder.
TESTS += tests/bench/run.py
PLAIN_TESTS += tests/bench/run.py
EXTRA_DIST += tests/bench/README.md tests/bench/run.py
