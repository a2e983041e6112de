# SPDX-License-Identifier: MIT

# The state machine alone: pure.
noinst_LTLIBRARIES += ccoip-masterd/libccm.la
ccoip_masterd_libccm_la_SOURCES = \
	ccoip-masterd/core/ccm.c ccoip-masterd/core/ccm.h \
	ccoip-masterd/core/ccm_action.c \
	ccoip-masterd/core/ccm_agent.c \
	ccoip-masterd/core/ccm_check.c \
	ccoip-masterd/core/ccm_internal.h \
	ccoip-masterd/core/ccm_member.c \
	ccoip-masterd/core/ccm_op.c \
	ccoip-masterd/core/ccm_ring.c \
	ccoip-masterd/core/ccm_round.c \
	ccoip-masterd/core/ccm_state.c \
	ccoip-masterd/core/ccm_verdict.c \
	ccoip-masterd/core/ccm_view.c \
	ccoip-masterd/core/ccm_vote.c

EXTRA_DIST += ccoip-masterd/core/README.md

# All but main.c, so that tests can be the master.
noinst_LTLIBRARIES += ccoip-masterd/libccoip-masterd.la
ccoip_masterd_libccoip_masterd_la_SOURCES = \
	ccoip-masterd/admin.c \
	ccoip-masterd/masterd.c ccoip-masterd/masterd.h \
	ccoip-masterd/masterd_internal.h \
	ccoip-masterd/options.c ccoip-masterd/options.h \
	ccoip-masterd/sockets.c ccoip-masterd/sockets.h
ccoip_masterd_libccoip_masterd_la_LIBADD = ccoip-masterd/libccm.la proto/libwire.la common/libcommon.la \
	$(INIH_LIBS) $(PROTOBUF_C_LIBS) $(SYSTEMD_LIBS)

sbin_PROGRAMS += ccoip-masterd/ccoip-masterd
ccoip_masterd_ccoip_masterd_SOURCES = ccoip-masterd/main.c
ccoip_masterd_ccoip_masterd_LDADD = ccoip-masterd/libccoip-masterd.la
