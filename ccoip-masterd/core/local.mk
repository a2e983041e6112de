# SPDX-License-Identifier: MIT

# Pure: no descriptor, clock, thread or event loop (tests/pure checks this).
noinst_LTLIBRARIES += libccm.la
libccm_la_SOURCES = \
	ccoip-masterd/core/ccm.c ccoip-masterd/core/ccm.h \
	ccoip-masterd/core/ccm_disconnect.c \
	ccoip-masterd/core/ccm_spec.c \
	ccoip-masterd/core/ccm_sync_disconnect.c \
	ccoip-masterd/core/ccm_action.c \
	ccoip-masterd/core/ccm_agent.c \
	ccoip-masterd/core/ccm_lost.c \
	ccoip-masterd/core/ccm_ballot.c \
	ccoip-masterd/core/ccm_breaks.c \
	ccoip-masterd/core/ccm_caps.c ccoip-masterd/core/ccm_caps.h \
	ccoip-masterd/core/ccm_check.c \
	ccoip-masterd/core/ccm_takeover.c \
	ccoip-masterd/core/ccm_elect.c ccoip-masterd/core/ccm_elect.h \
	ccoip-masterd/core/ccm_takeover_op.c \
	ccoip-masterd/core/ccm_flaps.c \
	ccoip-masterd/core/ccm_internal.h ccoip-masterd/core/ccm_rounds.h ccoip-masterd/core/ccm_run.h \
	ccoip-masterd/core/ccm_takeover.h \
	ccoip-masterd/core/ccm_loss.c \
	ccoip-masterd/core/ccm_member.c \
	ccoip-masterd/core/ccm_measure.c \
	ccoip-masterd/core/ccm_mesh.c \
	ccoip-masterd/core/ccm_newcomer.c \
	ccoip-masterd/core/ccm_op.c \
	ccoip-masterd/core/ccm_optimize.c \
	ccoip-masterd/core/ccm_plan.c \
	ccoip-masterd/core/ccm_rates.c \
	ccoip-masterd/core/ccm_hosts.c \
	ccoip-masterd/core/ccm_store.c \
	ccoip-masterd/core/ccm_schedule.c ccoip-masterd/core/ccm_schedule.h \
	ccoip-masterd/core/ccm_restore.c \
	ccoip-masterd/core/ccm_record.c ccoip-masterd/core/ccm_record.h \
	ccoip-masterd/core/ccm_resume.c \
	ccoip-masterd/core/ccm_revision.c \
	ccoip-masterd/core/ccm_over.c \
	ccoip-masterd/core/ccm_ring.c \
	ccoip-masterd/core/ccm_round.c \
	ccoip-masterd/core/ccm_topology.c \
	ccoip-masterd/core/ccm_tour.c \
	ccoip-masterd/core/ccm_state.c \
	ccoip-masterd/core/ccm_standstill.c \
	ccoip-masterd/core/ccm_unmet.c \
	ccoip-masterd/core/ccm_sync.c ccoip-masterd/core/ccm_sync.h \
	ccoip-masterd/core/ccm_evict.c \
	ccoip-masterd/core/ccm_view.c \
	ccoip-masterd/core/ccm_types.h \
	ccoip-masterd/core/ccm_waits.c \
	ccoip-masterd/core/ccm_world.c

EXTRA_DIST += ccoip-masterd/core/README.md
