# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/sim/sim_run
TESTS += tests/sim/sim_run
tests_sim_sim_run_SOURCES = \
	tests/sim/sim.h \
	tests/sim/sim_data.c \
	tests/sim/sim_event.c \
	tests/sim/sim_fault.c \
	tests/sim/sim_host.c \
	tests/sim/sim_net.c \
	tests/sim/sim_peer.c \
	tests/sim/sim_run.c
tests_sim_sim_run_LDADD = libccm.la libagt.la proto/libwire.la common/libcommon-pure.la \
	$(PROTOBUF_C_LIBS)
EXTRA_DIST += tests/sim/README.md
