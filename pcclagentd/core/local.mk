# SPDX-License-Identifier: MIT

# Pure: no descriptor, clock, thread or event loop (tests/pure checks it).
noinst_LTLIBRARIES += libagt.la
libagt_la_SOURCES = \
	pcclagentd/core/agt.c pcclagentd/core/agt.h \
	pcclagentd/core/agt_actions.h \
	pcclagentd/core/agt_action.c \
	pcclagentd/core/agt_spec.c \
	pcclagentd/core/agt_attach.c \
	pcclagentd/core/agt_ballot.c \
	pcclagentd/core/agt_check.c \
	pcclagentd/core/agt_conn.c \
	pcclagentd/core/agt_internal.h pcclagentd/core/agt_run.h pcclagentd/core/agt_types.h \
	pcclagentd/core/agt_leave.c \
	pcclagentd/core/agt_master.c \
	pcclagentd/core/agt_measure.c \
	pcclagentd/core/agt_mesh.c \
	pcclagentd/core/agt_plan.c \
	pcclagentd/core/agt_op.c pcclagentd/core/agt_op.h \
	pcclagentd/core/agt_rates.c pcclagentd/core/agt_rates.h \
	pcclagentd/core/agt_record.c pcclagentd/core/agt_record.h \
	pcclagentd/core/agt_resume.c \
	pcclagentd/core/agt_round.c \
	pcclagentd/core/agt_run.c \
	pcclagentd/core/agt_session.c \
	pcclagentd/core/agt_state.c \
	pcclagentd/core/agt_unmet.c \
	pcclagentd/core/agt_submit.c \
	pcclagentd/core/agt_sync.c \
	pcclagentd/core/agt_view.c \
	pcclagentd/core/agt_waits.c

EXTRA_DIST += pcclagentd/core/README.md
