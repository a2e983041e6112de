# SPDX-License-Identifier: MIT

# Link this library before proto/libwire.la and common/libcommon.la.
noinst_LTLIBRARIES += daemon/libdaemon.la
daemon_libdaemon_la_SOURCES = daemon/cc_admin.c daemon/cc_admin.h daemon/cc_channel.c daemon/cc_channel.h \
	daemon/cc_conf.c daemon/cc_conf.h
daemon_libdaemon_la_LIBADD = common/libcommon-options.la $(INIH_LIBS)

EXTRA_DIST += daemon/README.md
