# SPDX-License-Identifier: MIT

# Pure code, without input, output, clock, threads and environment. The cores link only this
# library.
noinst_LTLIBRARIES += common/libcommon-pure.la
common_libcommon_pure_la_SOURCES = \
	common/cc_addr.c common/cc_addr.h \
	common/cc_bounds.c common/cc_bounds.h \
	common/cc_detect.c common/cc_detect.h \
	common/cc_err.c common/cc_err.h \
	common/cc_hash.h \
	common/cc_id.c common/cc_id.h \
	common/cc_must.c common/cc_must.h \
	common/cc_plan.c common/cc_plan.h \
	common/cc_rings.c common/cc_rings.h \
	common/cc_route.c common/cc_route.h \
	common/cc_sm.c common/cc_sm.h \
	common/cc_zalloc.h

# Code with system calls, but without an event loop. The shim may link it, too.
noinst_LTLIBRARIES += common/libcommon-sys.la
common_libcommon_sys_la_SOURCES = \
	common/cc_futex.c common/cc_futex.h \
	common/cc_limit.c common/cc_limit.h \
	common/cc_log.c common/cc_log.h \
	common/cc_memory.c common/cc_memory.h \
	common/cc_shm.c common/cc_shm.h \
	common/cc_spsc.h \
	common/cc_sys.c common/cc_sys.h

# The whole code, for the daemons.
noinst_LTLIBRARIES += common/libcommon.la
common_libcommon_la_SOURCES = \
	common/cc_conn.c \
	common/cc_loop.c common/cc_loop.h common/cc_loop_internal.h \
	common/cc_seal.c common/cc_seal.h
common_libcommon_la_LIBADD = common/libcommon-pure.la common/libcommon-sys.la $(LIBEVENT_LIBS) $(CRYPTO_LIBS)

# Options of programs. The shim does not need them.
noinst_LTLIBRARIES += common/libcommon-options.la
common_libcommon_options_la_SOURCES = common/cc_options.c common/cc_options.h

# Code that only main.c of the daemons needs. It needs libsystemd.
noinst_LTLIBRARIES += common/libcommon-service.la
common_libcommon_service_la_SOURCES = common/cc_service.c common/cc_service.h
common_libcommon_service_la_LIBADD = $(SYSTEMD_LIBS)
