# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/kernels/test_krn
TESTS += tests/kernels/test_krn
tests_kernels_test_krn_SOURCES = tests/kernels/test_krn.c tests/kernels/krn_ref.c \
	tests/kernels/krn_ref.h
tests_kernels_test_krn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -ffp-contract=off
tests_kernels_test_krn_LDADD = libkrn.la $(CHECK_LIBS) -lm

EXTRA_DIST += tests/kernels/README.md
