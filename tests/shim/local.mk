# SPDX-License-Identifier: MIT

noinst_HEADERS += tests/shim/buffers.h tests/shim/fake_agent.h tests/shim/fake_state.h \
	tests/shim/fixture.h tests/shim/resume.h tests/shim/state.h

noinst_LTLIBRARIES += tests/shim/libfake.la
tests_shim_libfake_la_SOURCES = tests/shim/fake_agent.c tests/shim/fake_control.c \
	tests/shim/fake_op.c tests/shim/fake_sync.c
tests_shim_libfake_la_LIBADD = proto/libwire.la common/libcommon-sys.la \
	common/libcommon-pure.la libhsh.la $(PROTOBUF_C_LIBS)

shim_tests = tests/shim/test_session tests/shim/test_reduce tests/shim/test_fail \
	tests/shim/test_spawn tests/shim/test_master tests/shim/test_multi \
	tests/shim/test_resume_ops tests/shim/test_resume_comms tests/shim/test_resume_storm \
	tests/shim/test_state_offer tests/shim/test_state_sync tests/shim/test_state_seen \
	tests/shim/test_world tests/shim/test_interrupt tests/shim/test_connect \
	tests/shim/test_codes tests/shim/test_copy tests/shim/test_place tests/shim/test_operand \
	tests/shim/test_later tests/shim/test_backlog
shim_tests_libs = libpccl-shim/libpccl-shim.la tests/shim/libfake.la $(CHECK_LIBS)

check_PROGRAMS += $(shim_tests) tests/shim/standin_agentd
TESTS += $(shim_tests)
LONG_TESTS += tests/shim/test_operand
THREADED_TESTS += tests/shim/test_session tests/shim/test_reduce tests/shim/test_fail \
	tests/shim/test_multi tests/shim/test_resume_ops tests/shim/test_resume_comms \
	tests/shim/test_resume_storm tests/shim/test_state_offer tests/shim/test_state_sync \
	tests/shim/test_state_seen tests/shim/test_world tests/shim/test_place \
	tests/shim/test_interrupt tests/shim/test_later tests/shim/test_backlog \
	tests/shim/test_connect

tests_shim_test_backlog_SOURCES = tests/shim/test_backlog.c
tests_shim_test_backlog_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_backlog_LDADD = $(shim_tests_libs)

tests_shim_test_later_SOURCES = tests/shim/test_later.c
tests_shim_test_later_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_later_LDADD = $(shim_tests_libs)

tests_shim_test_copy_SOURCES = tests/shim/test_copy.c libpccl-shim/copy.c
tests_shim_test_copy_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_copy_LDADD = $(CHECK_LIBS)

tests_shim_test_resume_ops_SOURCES = tests/shim/test_resume_ops.c
tests_shim_test_resume_ops_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_resume_ops_LDADD = $(shim_tests_libs)

tests_shim_test_resume_comms_SOURCES = tests/shim/test_resume_comms.c
tests_shim_test_resume_comms_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_resume_comms_LDADD = $(shim_tests_libs)

tests_shim_test_resume_storm_SOURCES = tests/shim/test_resume_storm.c
tests_shim_test_resume_storm_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_resume_storm_LDADD = $(shim_tests_libs)

tests_shim_test_state_offer_SOURCES = tests/shim/test_state_offer.c
tests_shim_test_state_offer_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_state_offer_LDADD = $(shim_tests_libs) libhsh_run.la

tests_shim_test_state_sync_SOURCES = tests/shim/test_state_sync.c
tests_shim_test_state_sync_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_state_sync_LDADD = $(shim_tests_libs)

tests_shim_test_state_seen_SOURCES = tests/shim/test_state_seen.c
tests_shim_test_state_seen_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_state_seen_LDADD = $(shim_tests_libs)

tests_shim_test_codes_SOURCES = tests/shim/test_codes.c
tests_shim_test_codes_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_codes_LDADD = $(shim_tests_libs)

tests_shim_test_world_SOURCES = tests/shim/test_world.c
tests_shim_test_world_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_world_LDADD = $(shim_tests_libs)

tests_shim_test_connect_SOURCES = tests/shim/test_connect.c
tests_shim_test_connect_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_connect_LDADD = $(shim_tests_libs)

tests_shim_test_interrupt_SOURCES = tests/shim/test_interrupt.c
tests_shim_test_interrupt_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_interrupt_LDADD = $(shim_tests_libs)

tests_shim_test_multi_SOURCES = tests/shim/test_multi.c
tests_shim_test_multi_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_multi_LDADD = $(shim_tests_libs)

tests_shim_test_session_SOURCES = tests/shim/test_session.c
tests_shim_test_session_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_session_LDADD = $(shim_tests_libs)

tests_shim_test_reduce_SOURCES = tests/shim/test_reduce.c
tests_shim_test_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_reduce_LDADD = $(shim_tests_libs)

tests_shim_test_fail_SOURCES = tests/shim/test_fail.c
tests_shim_test_fail_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_fail_LDADD = $(shim_tests_libs)

tests_shim_test_place_SOURCES = tests/shim/test_place.c
tests_shim_test_place_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_place_LDADD = $(shim_tests_libs)

# Not under ThreadSanitizer: windows take operands of 16 MiB, byte by byte.
tests_shim_test_operand_SOURCES = tests/shim/test_operand.c
tests_shim_test_operand_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_operand_LDADD = $(shim_tests_libs)

tests_shim_test_spawn_SOURCES = tests/shim/test_spawn.c
tests_shim_test_spawn_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_spawn_LDADD = $(shim_tests_libs)

tests_shim_test_master_SOURCES = tests/shim/test_master.c
tests_shim_test_master_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_test_master_LDADD = $(shim_tests_libs)

tests_shim_standin_agentd_SOURCES = tests/shim/standin_agentd.c
tests_shim_standin_agentd_LDADD = tests/shim/libfake.la

EXTRA_DIST += tests/shim/README.md tests/shim/standin_masterd.sh
