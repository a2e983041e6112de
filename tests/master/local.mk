# SPDX-License-Identifier: MIT

master_suites = \
	tests/master/disconnect.c \
	tests/master/spec.c \
	tests/master/breaks.c \
	tests/master/busy.c \
	tests/master/caps.c \
	tests/master/elect.c \
	tests/master/elect_again.c \
	tests/master/endpoints.c \
	tests/master/evil.c \
	tests/master/leaves.c \
	tests/master/members.c \
	tests/master/mesh.c \
	tests/master/must.c \
	tests/master/newcomers.c \
	tests/master/ops.c \
	tests/master/optimize.c \
	tests/master/over.c \
	tests/master/plan.c \
	tests/master/random.c \
	tests/master/rates.c \
	tests/master/record.c \
	tests/master/restore.c \
	tests/master/resume.c \
	tests/master/resume_ops.c \
	tests/master/resume_rounds.c \
	tests/master/return.c \
	tests/master/rounds.c \
	tests/master/runs.c \
	tests/master/scale.c \
	tests/master/schedule.c \
	tests/master/silence.c \
	tests/master/standstill.c \
	tests/master/store.c \
	tests/master/unmet.c \
	tests/master/sync.c \
	tests/master/sync_disconnect.c \
	tests/master/sync_loss.c \
	tests/master/sync_resume.c \
	tests/master/waits.c
check_PROGRAMS += tests/master/master
TESTS += $(master_suites)
LONG_TESTS += tests/master/elect.c
$(master_suites:.c=.log): tests/master/master$(EXEEXT)
tests_master_master_SOURCES = $(master_suites) \
	tests/exhaust.c tests/exhaust.h \
	tests/master/fake.c tests/master/fake.h \
	tests/master/fake_sync.c \
	tests/master/main.c tests/master/suites.h \
	tests/master/many.h \
	tests/master/optimize.h \
	tests/master/takeover.c tests/master/takeover.h \
	tests/master/trio.h \
	tests/master/trio_sync.h
tests_master_master_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_master_LDFLAGS = $(AM_LDFLAGS) $(EXHAUST_WRAP) -Wl,--wrap=ccm_step
tests_master_master_LDADD = tests/librunner.la libccm.la proto/libwire.la common/libcommon-pure.la \
	$(PROTOBUF_C_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/master/README.md
