# SPDX-License-Identifier: MIT

noinst_PROGRAMS += bench/krn_bench
bench_krn_bench_SOURCES = bench/krn_bench.c
bench_krn_bench_LDADD = libkrn.la
EXTRA_DIST += bench/RESULTS.md

noinst_PROGRAMS += bench/hsh_bench
bench_hsh_bench_SOURCES = bench/hsh_bench.c
bench_hsh_bench_LDADD = libhsh_run.la

noinst_PROGRAMS += bench/hsh_time
bench_hsh_time_SOURCES = bench/hsh_time.c
bench_hsh_time_LDADD = libhsh_run.la
