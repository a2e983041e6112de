# SPDX-License-Identifier: MIT

LONG_TESTS += tests/engine/test_place tests/engine/test_engine tests/engine/test_held
check_PROGRAMS += tests/engine/test_engine
TESTS += tests/engine/test_engine
THREADED_TESTS += tests/engine/test_engine
tests_engine_test_engine_SOURCES = \
	tests/engine/net.c tests/engine/net.h \
	tests/engine/test_engine.c
tests_engine_test_engine_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_test_engine_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)

check_PROGRAMS += tests/engine/test_place
TESTS += tests/engine/test_place
THREADED_TESTS += tests/engine/test_place
tests_engine_test_place_SOURCES = \
	tests/engine/net.c tests/engine/net.h \
	tests/engine/test_place.c
tests_engine_test_place_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_test_place_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)

check_PROGRAMS += tests/engine/test_held
TESTS += tests/engine/test_held
THREADED_TESTS += tests/engine/test_held
tests_engine_test_held_SOURCES = \
	tests/engine/net.c tests/engine/net.h \
	tests/engine/test_held.c
tests_engine_test_held_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_test_held_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)

# As root with network namespaces; otherwise only what loopback can show.
check_PROGRAMS += tests/engine/test_life
TESTS += tests/engine/test_life
THREADED_TESTS += tests/engine/test_life
tests_engine_test_life_SOURCES = \
	tests/engine/net.c tests/engine/net.h \
	tests/engine/test_life.c
tests_engine_test_life_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_test_life_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)
EXTRA_DIST += tests/engine/README.md
