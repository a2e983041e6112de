# SPDX-License-Identifier: MIT

# The fuzz targets use this library, too.
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

proto_suites = \
	tests/proto/admin.c \
	tests/proto/frame.c \
	tests/proto/journal.c \
	tests/proto/link.c \
	tests/proto/local.c \
	tests/proto/master.c \
	tests/proto/master_limits.c \
	tests/proto/master_resume.c \
	tests/proto/master_sync.c \
	tests/proto/names.c \
	tests/proto/nomem.c \
	tests/proto/quant.c \
	tests/proto/result.c \
	tests/proto/shm_state.c \
	tests/proto/state.c \
	tests/proto/submit.c \
	tests/proto/table.c
check_PROGRAMS += tests/proto/proto
TESTS += $(proto_suites)
$(proto_suites:.c=.log): tests/proto/proto$(EXEEXT)
tests_proto_proto_SOURCES = $(proto_suites) tests/proto/main.c tests/proto/suites.h \
	tests/proto/master_check.h
tests_proto_proto_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
# nomem.c lets allocations fail.
tests_proto_proto_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=strdup
tests_proto_proto_LDADD = tests/librunner.la tests/proto/libsample.la libkrn.la \
	common/libcommon-pure.la $(PROTOBUF_C_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/proto/README.md
