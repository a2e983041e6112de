# SPDX-License-Identifier: MIT
# Hosts with a real systemd (skipped without root or namespaces), high round-trip paths between hosts, and
# networks from a matrix.

check_PROGRAMS += tests/lab/first
tests_lab_first_SOURCES = examples/first.c
tests_lab_first_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
# The program runs on hosts that have only the installed library.
tests_lab_first_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_lab_first_LDADD = libpccl-shim/libpccl-shim.la

# A high round-trip path between two hosts, for tests/e2e, or between the hosts of a matrix.
check_PROGRAMS += tests/lab/high_rtt
tests_lab_high_rtt_SOURCES = tests/lab/high_rtt.c tests/lab/cut.c tests/lab/cut.h
# No wrapper script, so that a test kills the program itself.
tests_lab_high_rtt_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_lab_high_rtt_LDADD = common/libcommon.la

check_PROGRAMS += tests/lab/test_cut
tests_lab_test_cut_SOURCES = tests/lab/test_cut.c tests/lab/cut.c tests/lab/cut.h
tests_lab_test_cut_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_lab_test_cut_LDADD = $(CHECK_LIBS)

TESTS += tests/lab/test_systemd.py tests/lab/test_matrix.py tests/lab/test_cut
PLAIN_TESTS += tests/lab/test_systemd.py tests/lab/test_matrix.py
WAITING_TESTS += tests/lab/test_systemd.py tests/lab/test_matrix.py
EXTRA_DIST += tests/lab/README.md tests/lab/host.py tests/lab/host.sh tests/lab/test_systemd.py \
	tests/lab/figures.py tests/lab/figures_rings.py tests/lab/figures_cuda.py tests/lab/matrix.py tests/lab/rates.py tests/lab/test_matrix.py \
	tests/lab/draw.py tests/lab/matrices/drawn-6-2 tests/lab/matrices/drawn-6-4 tests/lab/matrices/drawn-6-5 tests/lab/matrices/drawn-6-11 \
	tests/lab/matrices/drawn-6-13 \
	tests/lab/matrices/planted-6 tests/lab/matrices/split-6-1 tests/lab/matrices/split-6-2 \
	tests/lab/matrices/split-6-3 tests/lab/matrices/uniform-6
