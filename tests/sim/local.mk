# SPDX-License-Identifier: MIT

sim_sources = \
	tests/sim/run.c \
	tests/sim/sim.h tests/sim/sim_event.h tests/sim/sim_types.h \
	tests/sim/sim_check.c \
	tests/sim/sim_elect.c \
	tests/sim/sim_event.c \
	tests/sim/sim_fault.c \
	tests/sim/sim_fault.h \
	tests/sim/sim_host.c \
	tests/sim/sim_lineage.c \
	tests/sim/sim_link.c \
	tests/sim/sim_master.c \
	tests/sim/sim_memory.c \
	tests/sim/sim_mesh.c \
	tests/sim/sim_net.c \
	tests/sim/sim_op.c \
	tests/sim/sim_peer.c \
	tests/sim/sim_plan.c \
	tests/sim/sim_scale.c \
	tests/sim/sim_scene.c \
	tests/sim/sim_shim.c \
	tests/sim/sim_slow.c \
	tests/sim/sim_sync.c \
	tests/sim/sim_sync.h \
	tests/sim/sim_stray.c tests/sim/sim_text.c \
	tests/sim/sim_topology.c \
	tests/sim/sim_view.c \
	tests/sim/sim_xfer.c
sim_ldadd = libccm.la libagt.la proto/libwire.la common/libcommon-pure.la $(PROTOBUF_C_LIBS)

check_PROGRAMS += tests/sim/run
tests_sim_run_SOURCES = $(sim_sources)
tests_sim_run_LDADD = $(sim_ldadd)

# Each planted_N is the same program with one bug. The source file of the core that contains the bug
# is linked before the library, so it replaces the library's file.
sim_planted = tests/sim/planted_1 tests/sim/planted_2 tests/sim/planted_3 tests/sim/planted_4 \
	tests/sim/planted_5 tests/sim/planted_6 tests/sim/planted_7 tests/sim/planted_8 \
	tests/sim/planted_9 tests/sim/planted_10 tests/sim/planted_11 tests/sim/planted_12 \
	tests/sim/planted_13 tests/sim/planted_14 tests/sim/planted_15 tests/sim/planted_16 \
	tests/sim/planted_17 tests/sim/planted_18 \
	tests/sim/planted_19 tests/sim/planted_20 tests/sim/planted_21 tests/sim/planted_22 \
	tests/sim/planted_23 tests/sim/planted_24 tests/sim/planted_25 tests/sim/planted_26 \
	tests/sim/planted_27 tests/sim/planted_28 tests/sim/planted_29 \
	tests/sim/planted_30 tests/sim/planted_31 tests/sim/planted_32 tests/sim/planted_33 \
	tests/sim/planted_34 tests/sim/planted_35 tests/sim/planted_36 tests/sim/planted_37 tests/sim/planted_38
sim_plants = \
	tests/sim/plant/1_early_done.patch \
	tests/sim/plant/2_no_cancel.patch \
	tests/sim/plant/3_loss_ignored.patch \
	tests/sim/plant/4_outcome_guessed.patch \
	tests/sim/plant/5_end_ignored.patch \
	tests/sim/plant/6_move_forgotten.patch \
	tests/sim/plant/7_late_left_out.patch \
	tests/sim/plant/8_revision_kept_back.patch \
	tests/sim/plant/9_votes_left_out.patch \
	tests/sim/plant/10_torn_elected.patch \
	tests/sim/plant/11_list_forgotten.patch \
	tests/sim/plant/12_asked_too_early.patch \
	tests/sim/plant/13_lack_forgiven.patch \
	tests/sim/plant/14_gone_forgotten.patch \
	tests/sim/plant/15_witness_unheard.patch \
	tests/sim/plant/16_contradiction_kept.patch \
	tests/sim/plant/17_vote_without.patch \
	tests/sim/plant/18_failure_untold.patch \
	tests/sim/plant/19_late_sees_less.patch \
	tests/sim/plant/20_lost_link_forgotten.patch \
	tests/sim/plant/21_sleep_untold.patch \
	tests/sim/plant/22_answered_too_early.patch \
	tests/sim/plant/23_any_held.patch \
	tests/sim/plant/24_half_a_mesh.patch \
	tests/sim/plant/25_stale_mesh_believed.patch \
	tests/sim/plant/26_own_route.patch \
	tests/sim/plant/27_route_forgotten.patch \
	tests/sim/plant/28_loss_not_named.patch \
	tests/sim/plant/29_newest_view_ignored.patch \
	tests/sim/plant/30_old_plan_kept.patch \
	tests/sim/plant/31_plan_of_others.patch \
	tests/sim/plant/32_outcome_before_view.patch \
	tests/sim/plant/33_refused_believed.patch \
	tests/sim/plant/34_numbers_reused.patch \
	tests/sim/plant/35_views_of_two_terms.patch \
	tests/sim/plant/36_vote_counted_twice.patch \
	tests/sim/plant/37_reported_too_early.patch \
	tests/sim/plant/38_slow_trusted.patch
# $^ is the source and the patch
plant = $(AM_V_GEN)$(MKDIR_P) $(@D) && rm -f $@.tmp && cat $(filter %.c,$^) >$@.tmp && \
	patch -s --no-backup-if-mismatch -r - $@.tmp $(filter %.patch,$^) && mv $@.tmp $@

check_PROGRAMS += $(sim_planted)
tests_sim_planted_1_SOURCES = $(sim_sources)
nodist_tests_sim_planted_1_SOURCES = tests/sim/planted_1_core.c
tests_sim_planted_1_LDADD = $(sim_ldadd)
tests/sim/planted_1_core.c: ccoip-masterd/core/ccm_op.c tests/sim/plant/1_early_done.patch
	$(plant)

tests_sim_planted_2_SOURCES = $(sim_sources)
nodist_tests_sim_planted_2_SOURCES = tests/sim/planted_2_core.c
tests_sim_planted_2_LDADD = $(sim_ldadd)
tests/sim/planted_2_core.c: pcclagentd/core/agt_op.c tests/sim/plant/2_no_cancel.patch
	$(plant)

tests_sim_planted_3_SOURCES = $(sim_sources)
nodist_tests_sim_planted_3_SOURCES = tests/sim/planted_3_core.c
tests_sim_planted_3_LDADD = $(sim_ldadd)
tests/sim/planted_3_core.c: pcclagentd/core/agt_submit.c tests/sim/plant/3_loss_ignored.patch
	$(plant)

tests_sim_planted_4_SOURCES = $(sim_sources)
nodist_tests_sim_planted_4_SOURCES = tests/sim/planted_4_core.c
tests_sim_planted_4_LDADD = $(sim_ldadd)
tests/sim/planted_4_core.c: ccoip-masterd/core/ccm_disconnect.c tests/sim/plant/4_outcome_guessed.patch
	$(plant)

tests_sim_planted_5_SOURCES = $(sim_sources)
nodist_tests_sim_planted_5_SOURCES = tests/sim/planted_5_core.c
tests_sim_planted_5_LDADD = $(sim_ldadd)
tests/sim/planted_5_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/5_end_ignored.patch
	$(plant)

tests_sim_planted_6_SOURCES = $(sim_sources)
nodist_tests_sim_planted_6_SOURCES = tests/sim/planted_6_core.c
tests_sim_planted_6_LDADD = $(sim_ldadd)
tests/sim/planted_6_core.c: pcclagentd/core/agt_run.c tests/sim/plant/6_move_forgotten.patch
	$(plant)

tests_sim_planted_7_SOURCES = $(sim_sources)
nodist_tests_sim_planted_7_SOURCES = tests/sim/planted_7_core.c
tests_sim_planted_7_LDADD = $(sim_ldadd)
tests/sim/planted_7_core.c: pcclagentd/core/agt_submit.c tests/sim/plant/7_late_left_out.patch
	$(plant)

tests_sim_planted_8_SOURCES = $(sim_sources)
nodist_tests_sim_planted_8_SOURCES = tests/sim/planted_8_core.c
tests_sim_planted_8_LDADD = $(sim_ldadd)
tests/sim/planted_8_core.c: pcclagentd/core/agt_resume.c tests/sim/plant/8_revision_kept_back.patch
	$(plant)

tests_sim_planted_9_SOURCES = $(sim_sources)
nodist_tests_sim_planted_9_SOURCES = tests/sim/planted_9_core.c
tests_sim_planted_9_LDADD = $(sim_ldadd)
tests/sim/planted_9_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/9_votes_left_out.patch
	$(plant)

tests_sim_planted_10_SOURCES = $(sim_sources)
nodist_tests_sim_planted_10_SOURCES = tests/sim/planted_10_core.c
tests_sim_planted_10_LDADD = $(sim_ldadd)
tests/sim/planted_10_core.c: ccoip-masterd/core/ccm_elect.c tests/sim/plant/10_torn_elected.patch
	$(plant)

tests_sim_planted_11_SOURCES = $(sim_sources)
nodist_tests_sim_planted_11_SOURCES = tests/sim/planted_11_core.c
tests_sim_planted_11_LDADD = $(sim_ldadd)
tests/sim/planted_11_core.c: pcclagentd/core/agt_round.c tests/sim/plant/11_list_forgotten.patch
	$(plant)

tests_sim_planted_12_SOURCES = $(sim_sources)
nodist_tests_sim_planted_12_SOURCES = tests/sim/planted_12_core.c
tests_sim_planted_12_LDADD = $(sim_ldadd)
tests/sim/planted_12_core.c: ccoip-masterd/core/ccm_sync_disconnect.c tests/sim/plant/12_asked_too_early.patch
	$(plant)

tests_sim_planted_13_SOURCES = $(sim_sources)
nodist_tests_sim_planted_13_SOURCES = tests/sim/planted_13_core.c
tests_sim_planted_13_LDADD = $(sim_ldadd)
tests/sim/planted_13_core.c: ccoip-masterd/core/ccm_sync_disconnect.c tests/sim/plant/13_lack_forgiven.patch
	$(plant)

tests_sim_planted_14_SOURCES = $(sim_sources)
nodist_tests_sim_planted_14_SOURCES = tests/sim/planted_14_core.c
tests_sim_planted_14_LDADD = $(sim_ldadd)
tests/sim/planted_14_core.c: ccoip-masterd/core/ccm_disconnect.c tests/sim/plant/14_gone_forgotten.patch
	$(plant)

tests_sim_planted_15_SOURCES = $(sim_sources)
nodist_tests_sim_planted_15_SOURCES = tests/sim/planted_15_core.c
tests_sim_planted_15_LDADD = $(sim_ldadd)
tests/sim/planted_15_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/15_witness_unheard.patch
	$(plant)

tests_sim_planted_16_SOURCES = $(sim_sources)
nodist_tests_sim_planted_16_SOURCES = tests/sim/planted_16_core.c
tests_sim_planted_16_LDADD = $(sim_ldadd)
tests/sim/planted_16_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/16_contradiction_kept.patch
	$(plant)

tests_sim_planted_17_SOURCES = $(sim_sources)
nodist_tests_sim_planted_17_SOURCES = tests/sim/planted_17_core.c
tests_sim_planted_17_LDADD = $(sim_ldadd)
tests/sim/planted_17_core.c: ccoip-masterd/core/ccm_spec.c tests/sim/plant/17_vote_without.patch
	$(plant)

tests_sim_planted_18_SOURCES = $(sim_sources)
nodist_tests_sim_planted_18_SOURCES = tests/sim/planted_18_core.c
tests_sim_planted_18_LDADD = $(sim_ldadd)
tests/sim/planted_18_core.c: pcclagentd/core/agt_op.c tests/sim/plant/18_failure_untold.patch
	$(plant)

tests_sim_planted_19_SOURCES = $(sim_sources)
nodist_tests_sim_planted_19_SOURCES = tests/sim/planted_19_core.c
tests_sim_planted_19_LDADD = $(sim_ldadd)
tests/sim/planted_19_core.c: pcclagentd/core/agt_submit.c tests/sim/plant/19_late_sees_less.patch
	$(plant)

tests_sim_planted_20_SOURCES = $(sim_sources)
nodist_tests_sim_planted_20_SOURCES = tests/sim/planted_20_core.c
tests_sim_planted_20_LDADD = $(sim_ldadd)
tests/sim/planted_20_core.c: pcclagentd/core/agt_round.c tests/sim/plant/20_lost_link_forgotten.patch
	$(plant)

tests_sim_planted_21_SOURCES = $(sim_sources)
nodist_tests_sim_planted_21_SOURCES = tests/sim/planted_21_core.c
tests_sim_planted_21_LDADD = $(sim_ldadd)
tests/sim/planted_21_core.c: pcclagentd/core/agt_unmet.c tests/sim/plant/21_sleep_untold.patch
	$(plant)

tests_sim_planted_22_SOURCES = $(sim_sources)
nodist_tests_sim_planted_22_SOURCES = tests/sim/planted_22_core.c
tests_sim_planted_22_LDADD = $(sim_ldadd)
tests/sim/planted_22_core.c: ccoip-masterd/core/ccm_unmet.c tests/sim/plant/22_answered_too_early.patch
	$(plant)

tests_sim_planted_23_SOURCES = $(sim_sources)
nodist_tests_sim_planted_23_SOURCES = tests/sim/planted_23_core.c
tests_sim_planted_23_LDADD = $(sim_ldadd)
tests/sim/planted_23_core.c: ccoip-masterd/core/ccm_unmet.c tests/sim/plant/23_any_held.patch
	$(plant)

tests_sim_planted_24_SOURCES = $(sim_sources)
nodist_tests_sim_planted_24_SOURCES = tests/sim/planted_24_core.c
tests_sim_planted_24_LDADD = $(sim_ldadd)
tests/sim/planted_24_core.c: ccoip-masterd/core/ccm_mesh.c tests/sim/plant/24_half_a_mesh.patch
	$(plant)

tests_sim_planted_25_SOURCES = $(sim_sources)
nodist_tests_sim_planted_25_SOURCES = tests/sim/planted_25_core.c
tests_sim_planted_25_LDADD = $(sim_ldadd)
tests/sim/planted_25_core.c: ccoip-masterd/core/ccm_mesh.c tests/sim/plant/25_stale_mesh_believed.patch
	$(plant)

tests_sim_planted_26_SOURCES = $(sim_sources)
nodist_tests_sim_planted_26_SOURCES = tests/sim/planted_26_core.c
tests_sim_planted_26_LDADD = $(sim_ldadd)
tests/sim/planted_26_core.c: pcclagentd/core/agt_op.c tests/sim/plant/26_own_route.patch
	$(plant)

tests_sim_planted_27_SOURCES = $(sim_sources)
nodist_tests_sim_planted_27_SOURCES = tests/sim/planted_27_core.c
tests_sim_planted_27_LDADD = $(sim_ldadd)
tests/sim/planted_27_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/27_route_forgotten.patch
	$(plant)

tests_sim_planted_28_SOURCES = $(sim_sources)
nodist_tests_sim_planted_28_SOURCES = tests/sim/planted_28_core.c
tests_sim_planted_28_LDADD = $(sim_ldadd)
tests/sim/planted_28_core.c: ccoip-masterd/core/ccm_lost.c tests/sim/plant/28_loss_not_named.patch
	$(plant)

tests_sim_planted_29_SOURCES = $(sim_sources)
nodist_tests_sim_planted_29_SOURCES = tests/sim/planted_29_core.c
tests_sim_planted_29_LDADD = $(sim_ldadd)
tests/sim/planted_29_core.c: ccoip-masterd/core/ccm_lost.c tests/sim/plant/29_newest_view_ignored.patch
	$(plant)

tests_sim_planted_30_SOURCES = $(sim_sources)
nodist_tests_sim_planted_30_SOURCES = tests/sim/planted_30_core.c
tests_sim_planted_30_LDADD = $(sim_ldadd)
tests/sim/planted_30_core.c: pcclagentd/core/agt_round.c tests/sim/plant/30_old_plan_kept.patch
	$(plant)

tests_sim_planted_31_SOURCES = $(sim_sources)
nodist_tests_sim_planted_31_SOURCES = tests/sim/planted_31_core.c
tests_sim_planted_31_LDADD = $(sim_ldadd)
tests/sim/planted_31_core.c: ccoip-masterd/core/ccm_plan.c tests/sim/plant/31_plan_of_others.patch
	$(plant)

tests_sim_planted_32_SOURCES = $(sim_sources)
nodist_tests_sim_planted_32_SOURCES = tests/sim/planted_32_core.c
tests_sim_planted_32_LDADD = $(sim_ldadd)
tests/sim/planted_32_core.c: ccoip-masterd/core/ccm_disconnect.c tests/sim/plant/32_outcome_before_view.patch
	$(plant)

tests_sim_planted_33_SOURCES = $(sim_sources)
nodist_tests_sim_planted_33_SOURCES = tests/sim/planted_33_core.c
tests_sim_planted_33_LDADD = $(sim_ldadd)
tests/sim/planted_33_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/33_refused_believed.patch
	$(plant)

tests_sim_planted_34_SOURCES = $(sim_sources)
nodist_tests_sim_planted_34_SOURCES = tests/sim/planted_34_core.c
tests_sim_planted_34_LDADD = $(sim_ldadd)
tests/sim/planted_34_core.c: ccoip-masterd/core/ccm_takeover.c tests/sim/plant/34_numbers_reused.patch
	$(plant)

tests_sim_planted_35_SOURCES = $(sim_sources)
nodist_tests_sim_planted_35_SOURCES = tests/sim/planted_35_core.c
tests_sim_planted_35_LDADD = $(sim_ldadd)
tests/sim/planted_35_core.c: ccoip-masterd/core/ccm_takeover.c tests/sim/plant/35_views_of_two_terms.patch
	$(plant)

tests_sim_planted_36_SOURCES = $(sim_sources)
nodist_tests_sim_planted_36_SOURCES = tests/sim/planted_36_core.c
tests_sim_planted_36_LDADD = $(sim_ldadd)
tests/sim/planted_36_core.c: ccoip-masterd/core/ccm_takeover_op.c tests/sim/plant/36_vote_counted_twice.patch
	$(plant)

tests_sim_planted_37_SOURCES = $(sim_sources)
nodist_tests_sim_planted_37_SOURCES = tests/sim/planted_37_core.c
tests_sim_planted_37_LDADD = $(sim_ldadd)
tests/sim/planted_37_core.c: pcclagentd/core/agt_op.c tests/sim/plant/37_reported_too_early.patch
	$(plant)

tests_sim_planted_38_SOURCES = $(sim_sources)
nodist_tests_sim_planted_38_SOURCES = tests/sim/planted_38_core.c
tests_sim_planted_38_LDADD = $(sim_ldadd)
tests/sim/planted_38_core.c: ccoip-masterd/core/ccm_rates.c tests/sim/plant/38_slow_trusted.patch
	$(plant)

CLEANFILES += tests/sim/planted_1_core.c tests/sim/planted_2_core.c tests/sim/planted_3_core.c \
	tests/sim/planted_4_core.c tests/sim/planted_5_core.c tests/sim/planted_6_core.c \
	tests/sim/planted_7_core.c tests/sim/planted_8_core.c tests/sim/planted_9_core.c \
	tests/sim/planted_10_core.c tests/sim/planted_11_core.c tests/sim/planted_12_core.c \
	tests/sim/planted_13_core.c tests/sim/planted_14_core.c tests/sim/planted_15_core.c \
	tests/sim/planted_16_core.c tests/sim/planted_17_core.c tests/sim/planted_18_core.c \
	tests/sim/planted_19_core.c tests/sim/planted_20_core.c tests/sim/planted_21_core.c \
	tests/sim/planted_22_core.c tests/sim/planted_23_core.c tests/sim/planted_24_core.c \
	tests/sim/planted_25_core.c tests/sim/planted_26_core.c tests/sim/planted_27_core.c \
	tests/sim/planted_28_core.c tests/sim/planted_29_core.c \
	tests/sim/planted_30_core.c tests/sim/planted_31_core.c tests/sim/planted_32_core.c \
	tests/sim/planted_33_core.c tests/sim/planted_34_core.c tests/sim/planted_35_core.c \
	tests/sim/planted_36_core.c tests/sim/planted_37_core.c tests/sim/planted_38_core.c

TESTS += tests/sim/run tests/sim/planted.sh tests/sim/scale.sh tests/sim/usage.sh
PLAIN_TESTS += tests/sim/run tests/sim/planted.sh tests/sim/scale.sh tests/sim/usage.sh
EXTRA_DIST += tests/sim/README.md tests/sim/planted.sh tests/sim/scale.sh \
	tests/sim/usage.sh $(sim_plants)
