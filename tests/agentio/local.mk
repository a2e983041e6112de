# SPDX-License-Identifier: MIT
# The fake engine comes before the library, so the real one is not taken out of it.
check_PROGRAMS += tests/agentio/agentio
TESTS += tests/agentio/agentio
THREADED_TESTS += tests/agentio/agentio
LONG_TESTS += tests/agentio/agentio
HOSTILE_TESTS += tests/agentio/test_hello.sh
tests_agentio_agentio_SOURCES = \
	tests/agentio/agentio.c tests/agentio/suites.h \
	tests/agentio/attach.c \
	tests/agentio/fake_engine.c tests/agentio/fake_engine.h \
	tests/agentio/far.c tests/agentio/far.h \
	tests/agentio/findings.c \
	tests/agentio/fixture.c tests/agentio/fixture.h \
	tests/agentio/hello.c \
	tests/agentio/kept.c \
	tests/agentio/link.c \
	tests/agentio/manifest.c \
	tests/agentio/narrow.c \
	tests/agentio/offer.c tests/agentio/offer.h \
	tests/agentio/options.c \
	tests/agentio/place.c \
	tests/agentio/process.c \
	tests/agentio/queue.c \
	tests/agentio/redial.c \
	tests/agentio/region.c \
	tests/agentio/session.c \
	tests/agentio/small.c \
	tests/agentio/stop.c \
	tests/agentio/sync.c
tests_agentio_agentio_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_agentio_agentio_LDADD = pcclagentd/libpcclagentd.la $(CHECK_LIBS)

EXTRA_DIST += tests/agentio/README.md tests/agentio/test_hello.sh
