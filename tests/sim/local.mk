# SPDX-License-Identifier: MIT

sim_sources = \
	tests/sim/run.c \
	tests/sim/sim.h \
	tests/sim/sim_check.c \
	tests/sim/sim_event.c \
	tests/sim/sim_fault.c \
	tests/sim/sim_host.c \
	tests/sim/sim_link.c \
	tests/sim/sim_master.c \
	tests/sim/sim_net.c \
	tests/sim/sim_op.c \
	tests/sim/sim_peer.c \
	tests/sim/sim_plan.c \
	tests/sim/sim_scale.c \
	tests/sim/sim_shim.c \
	tests/sim/sim_text.c \
	tests/sim/sim_world.c \
	tests/sim/sim_xfer.c

check_PROGRAMS += tests/sim/run
TESTS += tests/sim/run
tests_sim_run_SOURCES = $(sim_sources)
tests_sim_run_LDADD = libccm.la libagt.la proto/libwire.la common/libcommon-pure.la \
	$(PROTOBUF_C_LIBS)
EXTRA_DIST += tests/sim/README.md
