# SPDX-License-Identifier: MIT

include pcclagentd/core/local.mk

# The services of every part, and the handshake of streams between agents.
noinst_LTLIBRARIES += pcclagentd/libbase.la
pcclagentd_libbase_la_SOURCES = \
	pcclagentd/base/base.h \
	pcclagentd/base/config.c \
	pcclagentd/base/config.h \
	pcclagentd/base/events.c \
	pcclagentd/base/events.h \
	pcclagentd/base/flow.c \
	pcclagentd/base/flow.h \
	pcclagentd/base/handshake.c \
	pcclagentd/base/handshake.h \
	pcclagentd/base/addr_spec.c \
	pcclagentd/base/addr_spec.h \
	pcclagentd/base/report.c \
	pcclagentd/base/report.h \
	pcclagentd/base/stats.h \
	pcclagentd/base/watermark.h \
	pcclagentd/base/worker.c \
	pcclagentd/base/worker.h
pcclagentd_libbase_la_LIBADD = proto/libwire.la common/libcommon.la

# The transfer of shared state. It uses neither the loop nor the core.
noinst_LTLIBRARIES += pcclagentd/libstate.la
pcclagentd_libstate_la_SOURCES = \
	pcclagentd/state/copy.c \
	pcclagentd/state/copy.h \
	pcclagentd/state/fetch.c \
	pcclagentd/state/fetch.h \
	pcclagentd/state/job.c \
	pcclagentd/state/job.h \
	pcclagentd/state/member.c \
	pcclagentd/state/member.h \
	pcclagentd/state/narrow.c \
	pcclagentd/state/narrow.h \
	pcclagentd/state/pace.c \
	pcclagentd/state/pace.h \
	pcclagentd/state/pool.c \
	pcclagentd/state/pool.h \
	pcclagentd/state/serve.c \
	pcclagentd/state/serve.h \
	pcclagentd/state/set.h \
	pcclagentd/state/state.c \
	pcclagentd/state/state.h \
	pcclagentd/state/ste_internal.h \
	pcclagentd/state/stream.c \
	pcclagentd/state/stream.h \
	pcclagentd/state/window.c \
	pcclagentd/state/window.h
pcclagentd_libstate_la_LIBADD = pcclagentd/libbase.la libhsh.la proto/libwire.la common/libcommon.la

# Everything but main.c, so that tests can run the daemon in their process.
noinst_LTLIBRARIES += pcclagentd/libpcclagentd.la
pcclagentd_libpcclagentd_la_SOURCES = \
	pcclagentd/agentd.c pcclagentd/agentd.h pcclagentd/agentd_internal.h \
	pcclagentd/options.c pcclagentd/options.h \
	pcclagentd/admin/adm.h \
	pcclagentd/admin/adm_internal.h \
	pcclagentd/admin/admin.c \
	pcclagentd/admin/state.c \
	pcclagentd/engine/algo.c \
	pcclagentd/engine/algo.h \
	pcclagentd/engine/eng_internal.h \
	pcclagentd/engine/engine.c \
	pcclagentd/engine/engine.h \
	pcclagentd/engine/life.c \
	pcclagentd/engine/quant.c \
	pcclagentd/engine/rate.c \
	pcclagentd/engine/rate.h \
	pcclagentd/engine/routes.c \
	pcclagentd/engine/rx.c \
	pcclagentd/engine/tx.c \
	pcclagentd/engine/xfer.c \
	pcclagentd/local/account.c \
	pcclagentd/local/beat.c \
	pcclagentd/local/beat.h \
	pcclagentd/local/loc_internal.h \
	pcclagentd/local/local.c \
	pcclagentd/local/local.h \
	pcclagentd/local/manifest.c \
	pcclagentd/local/outbox.c \
	pcclagentd/local/outbox.h \
	pcclagentd/local/packet.c \
	pcclagentd/local/packet.h \
	pcclagentd/local/process.c \
	pcclagentd/local/process.h \
	pcclagentd/local/queue.c \
	pcclagentd/local/region.c \
	pcclagentd/local/result.c \
	pcclagentd/local/session.c \
	pcclagentd/net/addresses.c \
	pcclagentd/net/estimate.c \
	pcclagentd/net/estimate.h \
	pcclagentd/net/guest.c \
	pcclagentd/net/in_link.c \
	pcclagentd/net/link.c \
	pcclagentd/net/measure_in.c \
	pcclagentd/net/measure_out.c \
	pcclagentd/net/names.c \
	pcclagentd/net/names.h \
	pcclagentd/net/narrow.c \
	pcclagentd/net/narrow.h \
	pcclagentd/net/net.c \
	pcclagentd/net/net.h \
	pcclagentd/net/net_internal.h \
	pcclagentd/net/opening.c \
	pcclagentd/net/out_link.h \
	pcclagentd/net/port.c \
	pcclagentd/net/port.h \
	pcclagentd/net/probe.c \
	pcclagentd/net/try.c \
	pcclagentd/ops/algos.c \
	pcclagentd/ops/eager.c \
	pcclagentd/ops/eager_in.c \
	pcclagentd/ops/diff_report.c \
	pcclagentd/ops/diff_report.h \
	pcclagentd/ops/feedback.c \
	pcclagentd/ops/ops.c \
	pcclagentd/ops/ops.h \
	pcclagentd/ops/ops_internal.h \
	pcclagentd/ops/output.c \
	pcclagentd/ops/output.h \
	pcclagentd/ops/pieces.c \
	pcclagentd/ops/progress.c \
	pcclagentd/ops/quant.c \
	pcclagentd/ops/run.c \
	pcclagentd/ops/sync.c \
	pcclagentd/ops/xfer.c
pcclagentd_libpcclagentd_la_LIBADD = libagt.la libqnt.la libkrn.la libhsh_run.la pcclagentd/libstate.la \
	daemon/libdaemon.la proto/libwire.la common/libcommon.la $(INIH_LIBS) $(PROTOBUF_C_LIBS)

sbin_PROGRAMS += pcclagentd/pcclagentd
pcclagentd_pcclagentd_SOURCES = \
	pcclagentd/inherited.c pcclagentd/inherited.h \
	pcclagentd/main.c
pcclagentd_pcclagentd_LDADD = common/libcommon-service.la pcclagentd/libpcclagentd.la $(SYSTEMD_LIBS)
