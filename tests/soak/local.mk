# SPDX-License-Identifier: MIT
# For ./dev soak.

check_PROGRAMS += tests/soak/trainer
tests_soak_trainer_SOURCES = tests/soak/trainer.c tests/soak/trainer.h tests/soak/state.c
tests_soak_trainer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
# No wrapper script, so that the soak kills the program itself.
tests_soak_trainer_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_soak_trainer_LDADD = libpccl-shim/libpccl-shim.la

TESTS += tests/soak/test_results.py
PLAIN_TESTS += tests/soak/test_results.py
EXTRA_DIST += tests/soak/README.md tests/soak/soak.py tests/soak/bounds.py tests/soak/leaks.py \
	tests/soak/results.py tests/soak/test_results.py
