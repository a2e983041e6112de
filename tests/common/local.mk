# SPDX-License-Identifier: MIT

EXTRA_DIST += tests/common/README.md
noinst_HEADERS += tests/common/testlib.h

common_suites = \
	tests/common/addr.c \
	tests/common/basics.c \
	tests/common/conn.c \
	tests/common/detect.c \
	tests/common/limit.c \
	tests/common/log.c \
	tests/common/loop.c \
	tests/common/memory.c \
	tests/common/must.c \
	tests/common/options.c \
	tests/common/plan.c \
	tests/common/rings.c \
	tests/common/route.c \
	tests/common/seal.c \
	tests/common/service.c \
	tests/common/shm.c \
	tests/common/sm.c \
	tests/common/sys.c
check_PROGRAMS += tests/common/common
TESTS += $(common_suites)
LONG_TESTS += tests/common/plan.c
THREADED_TESTS += tests/common/log.c tests/common/shm.c
$(common_suites:.c=.log): tests/common/common$(EXEEXT)
tests_common_common_SOURCES = $(common_suites) \
	tests/common/fakeroot.c tests/common/fakeroot.h \
	tests/common/looplib.c tests/common/looplib.h \
	tests/common/main.c tests/common/suites.h
tests_common_common_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_common_LDADD = tests/librunner.la common/libcommon-options.la common/libcommon.la \
	common/libcommon-service.la $(CHECK_LIBS)
