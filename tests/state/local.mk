# SPDX-License-Identifier: MIT

state_suites = \
	tests/state/drop.c \
	tests/state/diff.c \
	tests/state/loss.c \
	tests/state/pace.c \
	tests/state/parts.c \
	tests/state/state.c \
	tests/state/strangers.c \
	tests/state/threads.c
check_PROGRAMS += tests/state/state
TESTS += $(state_suites)
# pace.c starts no thread.
THREADED_TESTS += $(filter-out tests/state/pace.c,$(state_suites))
$(state_suites:.c=.log): tests/state/state$(EXEEXT)
tests_state_state_SOURCES = $(state_suites) \
	tests/state/host.c tests/state/host.h \
	tests/state/main.c tests/state/suites.h
tests_state_state_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_state_state_LDADD = tests/librunner.la pcclagentd/libstate.la $(CHECK_LIBS)

EXTRA_DIST += tests/state/README.md
