# SPDX-License-Identifier: MIT

check_LTLIBRARIES += tests/proto/libsample.la
tests_proto_libsample_la_SOURCES = \
	tests/proto/same_master.c \
	tests/proto/sample.c tests/proto/sample.h \
	tests/proto/sample_admin.c \
	tests/proto/sample_link.c \
	tests/proto/sample_local.c \
	tests/proto/sample_master.c \
	tests/proto/sample_state.c \
	tests/proto/sample_submit.c
tests_proto_libsample_la_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_libsample_la_LIBADD = proto/libwire.la

tests_proto_libs = tests/proto/libsample.la common/libcommon-pure.la $(PROTOBUF_C_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/proto/README.md
noinst_HEADERS += tests/proto/master_check.h

proto_tests = tests/proto/test_admin tests/proto/test_frame tests/proto/test_journal \
	tests/proto/test_link tests/proto/test_local \
	tests/proto/test_master tests/proto/test_master_limits tests/proto/test_master_resume \
	tests/proto/test_master_sync tests/proto/test_names tests/proto/test_nomem \
	tests/proto/test_result tests/proto/test_shm_state tests/proto/test_state tests/proto/test_submit
check_PROGRAMS += $(proto_tests)
TESTS += $(proto_tests)

tests_proto_test_admin_SOURCES = tests/proto/test_admin.c
tests_proto_test_admin_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_admin_LDADD = $(tests_proto_libs)

tests_proto_test_frame_SOURCES = tests/proto/test_frame.c
tests_proto_test_frame_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_frame_LDADD = $(tests_proto_libs)

tests_proto_test_journal_SOURCES = tests/proto/test_journal.c
tests_proto_test_journal_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_journal_LDADD = $(tests_proto_libs)

tests_proto_test_link_SOURCES = tests/proto/test_link.c
tests_proto_test_link_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_link_LDADD = $(tests_proto_libs)

tests_proto_test_local_SOURCES = tests/proto/test_local.c
tests_proto_test_local_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_local_LDADD = $(tests_proto_libs)

tests_proto_test_master_SOURCES = tests/proto/test_master.c
tests_proto_test_master_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_master_LDADD = $(tests_proto_libs)

tests_proto_test_master_limits_SOURCES = tests/proto/test_master_limits.c
tests_proto_test_master_limits_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_master_limits_LDADD = $(tests_proto_libs)

tests_proto_test_master_resume_SOURCES = tests/proto/test_master_resume.c
tests_proto_test_master_resume_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_master_resume_LDADD = $(tests_proto_libs)

tests_proto_test_names_SOURCES = tests/proto/test_names.c
tests_proto_test_names_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_names_LDADD = $(tests_proto_libs)

tests_proto_test_master_sync_SOURCES = tests/proto/test_master_sync.c
tests_proto_test_master_sync_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_master_sync_LDADD = $(tests_proto_libs)

tests_proto_test_nomem_SOURCES = tests/proto/test_nomem.c
tests_proto_test_nomem_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_nomem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=strdup
tests_proto_test_nomem_LDADD = $(tests_proto_libs)

tests_proto_test_result_SOURCES = tests/proto/test_result.c
tests_proto_test_result_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_result_LDADD = $(tests_proto_libs)

tests_proto_test_shm_state_SOURCES = tests/proto/test_shm_state.c
tests_proto_test_shm_state_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_shm_state_LDADD = $(tests_proto_libs)

tests_proto_test_state_SOURCES = tests/proto/test_state.c
tests_proto_test_state_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_state_LDADD = $(tests_proto_libs)

tests_proto_test_submit_SOURCES = tests/proto/test_submit.c
tests_proto_test_submit_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_submit_LDADD = libkrn.la $(tests_proto_libs)
