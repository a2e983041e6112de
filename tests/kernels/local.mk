# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/kernels/test_krn
TESTS += tests/kernels/test_krn
tests_kernels_test_krn_SOURCES = tests/kernels/test_krn.c tests/kernels/krn_ref.c \
	tests/kernels/krn_ref.h
tests_kernels_test_krn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -ffp-contract=off
tests_kernels_test_krn_LDADD = libkrn.la $(CHECK_LIBS) -lm

check_PROGRAMS += tests/kernels/test_hsh tests/kernels/test_hsh_run
TESTS += tests/kernels/test_hsh tests/kernels/test_hsh_run tests/kernels/hsh_reference.py
THREADED_TESTS += tests/kernels/test_hsh_run
tests_kernels_test_hsh_SOURCES = tests/kernels/test_hsh.c tests/kernels/hsh_vectors.h \
	tests/kernels/krn_ref.c tests/kernels/krn_ref.h
tests_kernels_test_hsh_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_kernels_test_hsh_LDADD = libhsh.la libkrn.la $(CHECK_LIBS) -lm
tests_kernels_test_hsh_run_SOURCES = tests/kernels/test_hsh_run.c tests/kernels/krn_ref.c \
	tests/kernels/krn_ref.h
tests_kernels_test_hsh_run_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_kernels_test_hsh_run_LDADD = libhsh_run.la libkrn.la $(CHECK_LIBS) -lm

TESTS += tests/kernels/neon.sh
PLAIN_TESTS += tests/kernels/hsh_reference.py tests/kernels/neon.sh
EXTRA_DIST += tests/kernels/README.md tests/kernels/hsh_reference.py tests/kernels/neon.sh \
	tests/kernels/neon/check.h
