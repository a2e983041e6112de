# SPDX-License-Identifier: MIT

include ccoip-masterd/core/local.mk

# Everything except main.c, so that tests can run a master.
noinst_LTLIBRARIES += ccoip-masterd/libccoip-masterd.la
ccoip_masterd_libccoip_masterd_la_SOURCES = \
	ccoip-masterd/admin.c \
	ccoip-masterd/complaints.c ccoip-masterd/complaints.h \
	ccoip-masterd/journal.c ccoip-masterd/journal.h \
	ccoip-masterd/masterd.c ccoip-masterd/masterd.h \
	ccoip-masterd/masterd_internal.h \
	ccoip-masterd/options.c ccoip-masterd/options.h \
	ccoip-masterd/solver.c ccoip-masterd/solver.h \
	ccoip-masterd/sockets.c ccoip-masterd/sockets.h \
	ccoip-masterd/sources.c ccoip-masterd/sources.h
ccoip_masterd_libccoip_masterd_la_LIBADD = libccm.la libtopology.la daemon/libdaemon.la proto/libwire.la common/libcommon.la \
	$(INIH_LIBS) $(PROTOBUF_C_LIBS) $(SYSTEMD_LIBS) -lm

sbin_PROGRAMS += ccoip-masterd/ccoip-masterd
ccoip_masterd_ccoip_masterd_SOURCES = ccoip-masterd/main.c
ccoip_masterd_ccoip_masterd_LDADD = common/libcommon-service.la ccoip-masterd/libccoip-masterd.la
