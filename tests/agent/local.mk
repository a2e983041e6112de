# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/agent/test_agent
TESTS += tests/agent/test_agent
LONG_TESTS += tests/agent/test_agent
tests_agent_test_agent_SOURCES = \
	tests/agent/ahead.c \
	tests/agent/attach.c \
	tests/agent/end.c \
	tests/agent/fixture.c tests/agent/fixture.h \
	tests/agent/leave.c \
	tests/agent/main.c \
	tests/agent/op.c \
	tests/agent/quiet.c \
	tests/agent/random.c tests/agent/random.h \
	tests/agent/random_master.c \
	tests/agent/random_model.c \
	tests/agent/resume.c \
	tests/agent/round.c \
	tests/agent/run.c \
	tests/agent/seek.c \
	tests/agent/session.c \
	tests/agent/sync.c tests/agent/sync.h \
	tests/agent/sync_end.c \
	tests/agent/sync_fixture.c \
	tests/agent/stuck.c tests/agent/wait.c
tests_agent_test_agent_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_agent_test_agent_LDADD = libagt.la proto/libwire.la common/libcommon-pure.la \
	$(PROTOBUF_C_LIBS) $(CHECK_LIBS)
EXTRA_DIST += tests/agent/README.md
