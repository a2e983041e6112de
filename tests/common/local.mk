# SPDX-License-Identifier: MIT
LONG_TESTS += tests/common/test_plan

EXTRA_DIST += tests/common/README.md
noinst_HEADERS += tests/common/testlib.h tests/common/looplib.h tests/common/fakeroot.h

check_PROGRAMS += tests/common/test_basics tests/common/test_addr tests/common/test_plan \
	tests/common/test_detect
TESTS += tests/common/test_basics tests/common/test_addr tests/common/test_plan \
	tests/common/test_detect

tests_common_test_basics_SOURCES = tests/common/test_basics.c
tests_common_test_basics_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_basics_LDADD = common/libcommon-pure.la $(CHECK_LIBS)

tests_common_test_addr_SOURCES = tests/common/test_addr.c
tests_common_test_addr_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_addr_LDADD = common/libcommon-pure.la $(CHECK_LIBS)

tests_common_test_plan_SOURCES = tests/common/test_plan.c
tests_common_test_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_plan_LDADD = common/libcommon-pure.la $(CHECK_LIBS)

tests_common_test_detect_SOURCES = tests/common/test_detect.c
tests_common_test_detect_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_detect_LDADD = common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_memory
TESTS += tests/common/test_memory
tests_common_test_memory_SOURCES = tests/common/test_memory.c tests/common/fakeroot.c
tests_common_test_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_memory_LDADD = common/libcommon-sys.la common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_limit
TESTS += tests/common/test_limit
tests_common_test_limit_SOURCES = tests/common/test_limit.c tests/common/fakeroot.c
tests_common_test_limit_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_limit_LDADD = common/libcommon-sys.la common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_shm
TESTS += tests/common/test_shm
THREADED_TESTS += tests/common/test_shm
tests_common_test_shm_SOURCES = tests/common/test_shm.c
tests_common_test_shm_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_shm_LDADD = common/libcommon-sys.la common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_sys tests/common/test_loop tests/common/test_conn
TESTS += tests/common/test_sys tests/common/test_loop tests/common/test_conn
tests_common_test_sys_SOURCES = tests/common/test_sys.c
tests_common_test_sys_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_sys_LDADD = common/libcommon-sys.la common/libcommon-pure.la $(CHECK_LIBS)
tests_common_test_loop_SOURCES = tests/common/test_loop.c tests/common/looplib.c
tests_common_test_loop_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_loop_LDADD = common/libcommon.la $(CHECK_LIBS)
tests_common_test_conn_SOURCES = tests/common/test_conn.c tests/common/looplib.c
tests_common_test_conn_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_conn_LDADD = common/libcommon.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_seal
TESTS += tests/common/test_seal
tests_common_test_seal_SOURCES = tests/common/test_seal.c
tests_common_test_seal_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_seal_LDADD = common/libcommon.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_service
TESTS += tests/common/test_service
tests_common_test_service_SOURCES = tests/common/test_service.c
tests_common_test_service_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_service_LDADD = common/libcommon-service.la common/libcommon-sys.la \
	common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_log
TESTS += tests/common/test_log
THREADED_TESTS += tests/common/test_log
tests_common_test_log_SOURCES = tests/common/test_log.c
tests_common_test_log_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_log_LDADD = common/libcommon-sys.la common/libcommon-pure.la $(CHECK_LIBS)

check_PROGRAMS += tests/common/test_options
TESTS += tests/common/test_options
tests_common_test_options_SOURCES = tests/common/test_options.c
tests_common_test_options_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_common_test_options_LDADD = common/libcommon-options.la $(CHECK_LIBS)
