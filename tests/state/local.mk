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
EXTRA_DIST += tests/state/README.md
