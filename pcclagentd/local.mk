# SPDX-License-Identifier: MIT

include pcclagentd/core/local.mk

# The transfer of shared state, which knows neither loop nor core.
noinst_LTLIBRARIES += pcclagentd/libstate.la
pcclagentd_libstate_la_SOURCES = \
	pcclagentd/state.c pcclagentd/state.h pcclagentd/state_internal.h pcclagentd/state_set.h \
	pcclagentd/state_copy.c \
	pcclagentd/state_crew.c \
	pcclagentd/state_fetch.c \
	pcclagentd/state_job.c \
	pcclagentd/state_member.c \
	pcclagentd/state_narrow.c \
	pcclagentd/state_pace.c \
	pcclagentd/state_serve.c \
	pcclagentd/state_stream.c \
	pcclagentd/state_window.c \
	pcclagentd/way.c pcclagentd/way.h
pcclagentd_libstate_la_LIBADD = libhsh.la proto/libwire.la common/libcommon.la

# All but main.c, so that tests can be the daemon.
noinst_LTLIBRARIES += pcclagentd/libpcclagentd.la
pcclagentd_libpcclagentd_la_SOURCES = \
	pcclagentd/addresses.c pcclagentd/addresses.h \
	pcclagentd/admin.c \
	pcclagentd/admin_state.c \
	pcclagentd/agentd.c pcclagentd/agentd.h \
	pcclagentd/beat.c pcclagentd/beat.h \
	pcclagentd/engine.c pcclagentd/engine.h pcclagentd/engine_internal.h \
	pcclagentd/engine_flow.c pcclagentd/engine_life.c \
	pcclagentd/engine_rx.c \
	pcclagentd/engine_tx.c \
	pcclagentd/engine_xfer.c \
	pcclagentd/findings.c pcclagentd/findings.h \
	pcclagentd/hello.c \
	pcclagentd/io.h \
	pcclagentd/link.c \
	pcclagentd/manifest.c \
	pcclagentd/narrow.c pcclagentd/narrow.h \
	pcclagentd/options.c pcclagentd/options.h \
	pcclagentd/names.c pcclagentd/names.h \
	pcclagentd/outbox.c pcclagentd/outbox.h \
	pcclagentd/packet.c pcclagentd/packet.h \
	pcclagentd/port.c pcclagentd/port.h \
	pcclagentd/probe.c \
	pcclagentd/process.c pcclagentd/process.h \
	pcclagentd/progress.c \
	pcclagentd/queue.c \
	pcclagentd/region.c \
	pcclagentd/result.c \
	pcclagentd/run.c \
	pcclagentd/session.c \
	pcclagentd/small.c \
	pcclagentd/small_in.c \
	pcclagentd/sync.c \
	pcclagentd/xfer.c
pcclagentd_libpcclagentd_la_LIBADD = libagt.la libkrn.la libhsh_run.la pcclagentd/libstate.la \
	daemon/libdaemon.la proto/libwire.la common/libcommon.la $(INIH_LIBS) $(PROTOBUF_C_LIBS)

sbin_PROGRAMS += pcclagentd/pcclagentd
pcclagentd_pcclagentd_SOURCES = \
	pcclagentd/inherited.c pcclagentd/inherited.h \
	pcclagentd/main.c
pcclagentd_pcclagentd_LDADD = common/libcommon-service.la pcclagentd/libpcclagentd.la $(SYSTEMD_LIBS)
