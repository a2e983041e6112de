# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/bench/test_bench
TESTS += tests/bench/test_bench
tests_bench_test_bench_SOURCES = tests/bench/test_bench.c
tests_bench_test_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include $(CHECK_CFLAGS)
tests_bench_test_bench_LDADD = pccl-bench/libpccl-bench.la libkrn.la $(CHECK_LIBS)

# Loaded by path; never installed, though libtool makes a shared object only with -rpath.
check_LTLIBRARIES += tests/bench/fake_pccl.la
tests_bench_fake_pccl_la_SOURCES = tests/bench/fake_pccl.c
tests_bench_fake_pccl_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_bench_fake_pccl_la_LDFLAGS = -module -avoid-version -rpath $(libdir) $(SANITIZE_CFLAGS)

# Runs pccl-bench/pccl-bench of the build folder.
TESTS += tests/bench/run.py
PLAIN_TESTS += tests/bench/run.py
EXTRA_DIST += tests/bench/README.md tests/bench/run.py
