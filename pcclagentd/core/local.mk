# SPDX-License-Identifier: MIT

# The agent's logic. Pure: no input or output, clock, thread or environment.
noinst_LTLIBRARIES += pcclagentd/core/libagt.la
pcclagentd_core_libagt_la_SOURCES = \
	pcclagentd/core/agt.c pcclagentd/core/agt.h \
	pcclagentd/core/agt_action.c \
	pcclagentd/core/agt_internal.h \
	pcclagentd/core/agt_op.c \
	pcclagentd/core/agt_round.c \
	pcclagentd/core/agt_run.c \
	pcclagentd/core/agt_session.c \
	pcclagentd/core/agt_state.c \
	pcclagentd/core/agt_submit.c \
	pcclagentd/core/agt_view.c
pcclagentd_core_libagt_la_LIBADD = proto/libwire.la
