# SPDX-License-Identifier: MIT

noinst_PROGRAMS += bench/krn_bench
bench_krn_bench_SOURCES = bench/krn_bench.c
bench_krn_bench_LDADD = libkrn.la
EXTRA_DIST += bench/LOG.md bench/RESULTS.md bench/allreduce.png bench/allreduce.svg

noinst_PROGRAMS += bench/qnt_bench
bench_qnt_bench_SOURCES = bench/qnt_bench.c
bench_qnt_bench_LDADD = libqnt.la libkrn.la

noinst_PROGRAMS += bench/hsh_bench
bench_hsh_bench_SOURCES = bench/hsh_bench.c
bench_hsh_bench_LDADD = libhsh_run.la

noinst_PROGRAMS += bench/hsh_time
bench_hsh_time_SOURCES = bench/hsh_time.c
bench_hsh_time_LDADD = libhsh_run.la

noinst_PROGRAMS += bench/limits
bench_limits_SOURCES = bench/limits.c
bench_limits_LDADD = libkrn.la

# ./dev bench. mpi_allreduce.c, cubic.c and libcuda.c are compiled by the comparison itself.
EXTRA_DIST += bench/compare bench/figures_quant.py bench/mpi_allreduce.c \
	bench/peers/__init__.py bench/peers/base.py bench/peers/cubic.c bench/peers/gloo.py \
	bench/peers/gloo_rank.py bench/peers/libcuda.c bench/peers/limits.py bench/peers/machine.py \
	bench/peers/netns-shell bench/peers/openmpi.py bench/peers/pccl.py bench/peers/pccl1.py \
	bench/peers/plot.py bench/peers/progress.py bench/peers/report.py

# Measures pcclctl topology solve.
EXTRA_DIST += bench/topology.py
