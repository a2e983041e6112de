# SPDX-License-Identifier: MIT

# -ffp-contract=off, because a fused multiply-add rounds differently, and all CPUs give the same answer.
noinst_LTLIBRARIES += libtopology.la
noinst_HEADERS += topology/tpl.h topology/tpl_internal.h topology/tpl_text.h
libtopology_la_SOURCES = \
	topology/tpl.c \
	topology/tpl_ap.c \
	topology/tpl_branch.c \
	topology/tpl_costs.c \
	topology/tpl_cycles.c \
	topology/tpl_dp.c \
	topology/tpl_lp.c \
	topology/tpl_matrix.c \
	topology/tpl_neck.c \
	topology/tpl_neckap.c \
	topology/tpl_plan.c \
	topology/tpl_rate.c \
	topology/tpl_search.c \
	topology/tpl_subset.c \
	topology/tpl_sum.c \
	topology/tpl_text.c \
	topology/tpl_time.c \
	topology/tpl_tree.c \
	topology/tpl_tsplib.c
libtopology_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
