# SPDX-License-Identifier: MIT

agentio_suites = \
	tests/agentio/algo.c \
	tests/agentio/attach.c \
	tests/agentio/diff.c \
	tests/agentio/estimate.c \
	tests/agentio/feedback.c \
	tests/agentio/hello.c \
	tests/agentio/kept.c \
	tests/agentio/link.c \
	tests/agentio/manifest.c \
	tests/agentio/measure.c \
	tests/agentio/mesh_link.c \
	tests/agentio/narrow.c \
	tests/agentio/options.c \
	tests/agentio/result_mode.c \
	tests/agentio/process.c \
	tests/agentio/queue.c \
	tests/agentio/quiet.c \
	tests/agentio/reconnect.c \
	tests/agentio/region.c \
	tests/agentio/session.c \
	tests/agentio/eager.c \
	tests/agentio/eager_routes.c \
	tests/agentio/stop.c \
	tests/agentio/sync.c
check_PROGRAMS += tests/agentio/agentio
TESTS += $(agentio_suites)
LONG_TESTS += tests/agentio/manifest.c tests/agentio/measure.c tests/agentio/quiet.c
THREADED_TESTS += $(agentio_suites)
HOSTILE_TESTS += tests/agentio/hello.c tests/agentio/measure.c
$(agentio_suites:.c=.log): tests/agentio/agentio$(EXEEXT)
# The fake engine and the table of algorithms in algo.c are linked before the library, so they replace
# the real ones.
tests_agentio_agentio_SOURCES = $(agentio_suites) \
	tests/agentio/ask.c tests/agentio/ask.h \
	tests/agentio/fake_engine.c tests/agentio/fake_engine.h \
	tests/agentio/other.c tests/agentio/other.h \
	tests/agentio/fixture.c tests/agentio/fixture.h \
	tests/agentio/main.c tests/agentio/suites.h \
	tests/agentio/candidate.c tests/agentio/candidate.h \
	tests/agentio/pair.c tests/agentio/pair.h
tests_agentio_agentio_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_agentio_agentio_LDADD = tests/librunner.la pcclagentd/libpcclagentd.la $(CHECK_LIBS)

EXTRA_DIST += tests/agentio/README.md
