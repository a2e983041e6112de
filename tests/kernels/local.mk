# SPDX-License-Identifier: MIT

kernels_suites = \
	tests/kernels/hsh.c \
	tests/kernels/hsh_run.c \
	tests/kernels/krn.c \
	tests/kernels/qnt.c \
	tests/kernels/qnt_errors.c
check_PROGRAMS += tests/kernels/kernels
TESTS += $(kernels_suites) tests/kernels/hsh_reference.py tests/kernels/neon.sh \
	tests/kernels/qnt_model.py
THREADED_TESTS += tests/kernels/hsh_run.c
PLAIN_TESTS += tests/kernels/hsh_reference.py tests/kernels/neon.sh tests/kernels/qnt_model.py
$(kernels_suites:.c=.log): tests/kernels/kernels$(EXEEXT)
tests_kernels_kernels_SOURCES = $(kernels_suites) \
	tests/kernels/hsh_vectors.h \
	tests/kernels/krn_ref.c tests/kernels/krn_ref.h \
	tests/kernels/main.c \
	tests/kernels/qnt_ref.c tests/kernels/qnt_ref.h \
	tests/kernels/qnt_sample.c tests/kernels/qnt_sample.h tests/kernels/suites.h
tests_kernels_kernels_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -ffp-contract=off
tests_kernels_kernels_LDADD = tests/librunner.la libhsh_run.la libqnt.la libkrn.la $(CHECK_LIBS) -lm

EXTRA_DIST += tests/kernels/README.md tests/kernels/hsh_reference.py tests/kernels/neon.sh \
	tests/kernels/qnt_model.py tests/kernels/neon/check.h tests/kernels/neon/main.c
