# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/state/test_state
TESTS += tests/state/test_state
THREADED_TESTS += tests/state/test_state
tests_state_test_state_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_state.c
tests_state_test_state_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_state_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_loss
TESTS += tests/state/test_loss
THREADED_TESTS += tests/state/test_loss
tests_state_test_loss_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_loss.c
tests_state_test_loss_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_loss_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_drop
TESTS += tests/state/test_drop
THREADED_TESTS += tests/state/test_drop
tests_state_test_drop_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_drop.c
tests_state_test_drop_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_drop_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_threads
TESTS += tests/state/test_threads
THREADED_TESTS += tests/state/test_threads
tests_state_test_threads_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_threads.c
tests_state_test_threads_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_threads_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_found
TESTS += tests/state/test_found
THREADED_TESTS += tests/state/test_found
tests_state_test_found_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_found.c
tests_state_test_found_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_found_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_strangers
TESTS += tests/state/test_strangers
THREADED_TESTS += tests/state/test_strangers
tests_state_test_strangers_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_strangers.c
tests_state_test_strangers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_strangers_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_parts
TESTS += tests/state/test_parts
THREADED_TESTS += tests/state/test_parts
tests_state_test_parts_SOURCES = \
	tests/state/host.c tests/state/host.h \
	tests/state/test_parts.c
tests_state_test_parts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_parts_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)

check_PROGRAMS += tests/state/test_pace
TESTS += tests/state/test_pace
tests_state_test_pace_SOURCES = tests/state/test_pace.c
tests_state_test_pace_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_test_pace_LDADD = pcclagentd/libstate.la $(CHECK_LIBS)
EXTRA_DIST += tests/state/README.md
