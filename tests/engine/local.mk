# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/engine/test_engine
TESTS += tests/engine/test_engine
THREADED_TESTS += tests/engine/test_engine
tests_engine_test_engine_SOURCES = \
	tests/engine/net.c tests/engine/net.h \
	tests/engine/test_engine.c
tests_engine_test_engine_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_test_engine_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)
EXTRA_DIST += tests/engine/README.md
