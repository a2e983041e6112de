# SPDX-License-Identifier: MIT

check_LTLIBRARIES += tests/proto/libsample.la
tests_proto_libsample_la_SOURCES = \
	tests/proto/same_master.c \
	tests/proto/sample.c tests/proto/sample.h \
	tests/proto/sample_master.c
tests_proto_libsample_la_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_libsample_la_LIBADD = proto/libwire.la

tests_proto_libs = tests/proto/libsample.la common/libcommon-pure.la $(PROTOBUF_C_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/proto/test_frame tests/proto/test_master
TESTS += tests/proto/test_frame tests/proto/test_master

tests_proto_test_frame_SOURCES = tests/proto/test_frame.c
tests_proto_test_frame_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_frame_LDADD = $(tests_proto_libs)

tests_proto_test_master_SOURCES = tests/proto/test_master.c
tests_proto_test_master_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_proto_test_master_LDADD = $(tests_proto_libs)
