# SPDX-License-Identifier: MIT

master_tests = tests/master/test_ahead tests/master/test_members tests/master/test_newcomers tests/master/test_stall tests/master/test_stuck tests/master/test_ops tests/master/test_rounds \
	tests/master/test_endpoints tests/master/test_absent tests/master/test_return \
	tests/master/test_waits \
	tests/master/test_resume tests/master/test_resume_ops tests/master/test_resume_rounds \
	tests/master/test_restore tests/master/test_silence tests/master/test_breaks tests/master/test_random tests/master/test_evil \
	tests/master/test_scale tests/master/test_oom tests/master/test_elect \
	tests/master/test_record tests/master/test_runs tests/master/test_over tests/master/test_leaves \
	tests/master/test_sync tests/master/test_sync_loss tests/master/test_sync_away \
	tests/master/test_sync_resume tests/master/test_elect_again
check_PROGRAMS += $(master_tests)
TESTS += $(master_tests)
LONG_TESTS += tests/master/test_elect

check_LTLIBRARIES += tests/master/libfake.la
tests_master_libfake_la_SOURCES = tests/master/fake.c tests/master/fake_sync.c \
	tests/master/fake.h tests/master/trio.h \
	tests/master/trio_sync.h \
	tests/master/takeover.c tests/master/takeover.h
tests_master_libfake_la_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)

master_core = libccm.la proto/libwire.la common/libcommon-pure.la $(PROTOBUF_C_LIBS)
master_ldadd = tests/master/libfake.la $(master_core) $(CHECK_LIBS)

tests_master_test_ahead_SOURCES = tests/master/test_ahead.c
tests_master_test_ahead_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_ahead_LDADD = $(master_ldadd)

tests_master_test_stall_SOURCES = tests/master/test_stall.c
tests_master_test_stall_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_stall_LDADD = $(master_ldadd)

tests_master_test_stuck_SOURCES = tests/master/test_stuck.c
tests_master_test_stuck_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_stuck_LDADD = $(master_ldadd)

tests_master_test_leaves_SOURCES = tests/master/test_leaves.c
tests_master_test_leaves_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_leaves_LDADD = $(master_ldadd)

tests_master_test_members_SOURCES = tests/master/test_members.c
tests_master_test_members_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_members_LDADD = $(master_ldadd)

tests_master_test_newcomers_SOURCES = tests/master/test_newcomers.c
tests_master_test_newcomers_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_newcomers_LDADD = $(master_ldadd)

tests_master_test_ops_SOURCES = tests/master/test_ops.c
tests_master_test_ops_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_ops_LDADD = $(master_ldadd)

tests_master_test_record_SOURCES = tests/master/test_record.c
tests_master_test_record_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_record_LDADD = $(master_ldadd)

tests_master_test_rounds_SOURCES = tests/master/test_rounds.c
tests_master_test_rounds_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_rounds_LDADD = $(master_ldadd)

tests_master_test_waits_SOURCES = tests/master/test_waits.c
tests_master_test_waits_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_waits_LDADD = $(master_ldadd)

tests_master_test_absent_SOURCES = tests/master/test_absent.c
tests_master_test_absent_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_absent_LDADD = $(master_ldadd)

tests_master_test_return_SOURCES = tests/master/test_return.c
tests_master_test_return_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_return_LDADD = $(master_ldadd)

tests_master_test_resume_SOURCES = tests/master/test_resume.c
tests_master_test_resume_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_resume_LDADD = $(master_ldadd)

tests_master_test_over_SOURCES = tests/master/test_over.c
tests_master_test_over_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_over_LDADD = $(master_ldadd)

tests_master_test_runs_SOURCES = tests/master/test_runs.c
tests_master_test_runs_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_runs_LDADD = $(master_ldadd)

tests_master_test_resume_ops_SOURCES = tests/master/test_resume_ops.c
tests_master_test_resume_ops_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_resume_ops_LDADD = $(master_ldadd)

tests_master_test_resume_rounds_SOURCES = tests/master/test_resume_rounds.c
tests_master_test_resume_rounds_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_resume_rounds_LDADD = $(master_ldadd)

tests_master_test_restore_SOURCES = tests/master/test_restore.c
tests_master_test_restore_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_restore_LDADD = $(master_ldadd)

tests_master_test_breaks_SOURCES = tests/master/test_breaks.c
tests_master_test_breaks_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_breaks_LDADD = $(master_ldadd)

tests_master_test_silence_SOURCES = tests/master/test_silence.c
tests_master_test_silence_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_silence_LDADD = $(master_ldadd)

tests_master_test_endpoints_SOURCES = tests/master/test_endpoints.c
tests_master_test_endpoints_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_endpoints_LDADD = $(master_ldadd)

tests_master_test_random_SOURCES = tests/master/test_random.c
tests_master_test_random_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_random_LDADD = $(master_ldadd)

tests_master_test_evil_SOURCES = tests/master/test_evil.c
tests_master_test_evil_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_evil_LDADD = $(master_ldadd)

tests_master_test_scale_SOURCES = tests/master/test_scale.c
tests_master_test_scale_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_scale_LDADD = $(master_ldadd)

tests_master_test_elect_SOURCES = tests/master/test_elect.c
tests_master_test_elect_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_elect_LDADD = $(master_core) $(CHECK_LIBS)

tests_master_test_sync_SOURCES = tests/master/test_sync.c
tests_master_test_sync_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_sync_LDADD = $(master_ldadd)

tests_master_test_sync_loss_SOURCES = tests/master/test_sync_loss.c
tests_master_test_sync_loss_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_sync_loss_LDADD = $(master_ldadd)

tests_master_test_sync_away_SOURCES = tests/master/test_sync_away.c
tests_master_test_sync_away_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_sync_away_LDADD = $(master_ldadd)

tests_master_test_sync_resume_SOURCES = tests/master/test_sync_resume.c
tests_master_test_sync_resume_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_sync_resume_LDADD = $(master_ldadd)

tests_master_test_elect_again_SOURCES = tests/master/test_elect_again.c
tests_master_test_elect_again_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_elect_again_LDADD = $(master_core) $(CHECK_LIBS)

tests_master_test_oom_SOURCES = tests/master/test_oom.c
tests_master_test_oom_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_master_test_oom_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
tests_master_test_oom_LDADD = $(master_core) $(CHECK_LIBS)

EXTRA_DIST += tests/master/README.md
