# SPDX-License-Identifier: MIT

agent_suites = \
	tests/agent/spec.c \
	tests/agent/attach.c \
	tests/agent/end.c \
	tests/agent/leave.c \
	tests/agent/measure.c \
	tests/agent/mesh.c \
	tests/agent/must.c \
	tests/agent/op.c \
	tests/agent/plan.c \
	tests/agent/quiet.c \
	tests/agent/random.c \
	tests/agent/resume.c \
	tests/agent/round.c \
	tests/agent/run.c \
	tests/agent/connect.c \
	tests/agent/session.c \
	tests/agent/unmet.c \
	tests/agent/sync.c \
	tests/agent/sync_end.c \
	tests/agent/wait.c
check_PROGRAMS += tests/agent/agent
TESTS += $(agent_suites)
LONG_TESTS += tests/agent/random.c
$(agent_suites:.c=.log): tests/agent/agent$(EXEEXT)
tests_agent_agent_SOURCES = $(agent_suites) \
	tests/exhaust.c tests/exhaust.h \
	tests/agent/fixture.c tests/agent/fixture.h \
	tests/agent/main.c tests/agent/suites.h \
	tests/agent/random.h tests/agent/random_master.c tests/agent/random_model.c \
	tests/agent/sync.h tests/agent/sync_fixture.c
tests_agent_agent_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_agent_agent_LDFLAGS = $(AM_LDFLAGS) $(EXHAUST_WRAP) -Wl,--wrap=agt_step
tests_agent_agent_LDADD = tests/librunner.la libagt.la proto/libwire.la common/libcommon-pure.la \
	$(PROTOBUF_C_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/agent/README.md
