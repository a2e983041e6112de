# SPDX-License-Identifier: MIT
# Whole systems: real daemons and peers.

check_PROGRAMS += tests/e2e/peer
tests_e2e_peer_SOURCES = \
	tests/e2e/data.c tests/e2e/data.h \
	tests/e2e/device.c tests/e2e/device.h \
	tests/e2e/operation.c \
	tests/e2e/peer.c tests/e2e/peer.h \
	tests/e2e/tensors.c
tests_e2e_peer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
if HAVE_CUDA
tests_e2e_peer_SOURCES += kernels/cuda/driver.c
tests_e2e_peer_CPPFLAGS += $(CUDA_CPPFLAGS)
endif
# No wrapper script, so that a test kills the program itself.
tests_e2e_peer_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_e2e_peer_LDADD = libpccl-shim/libpccl-shim.la -lm

check_PROGRAMS += tests/e2e/crowd
tests_e2e_crowd_SOURCES = tests/e2e/crowd.c
tests_e2e_crowd_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_e2e_crowd_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_e2e_crowd_LDADD = libpccl-shim/libpccl-shim.la

# Preloaded; never installed, though libtool makes a shared object only with -rpath.
check_LTLIBRARIES += tests/e2e/late.la
tests_e2e_late_la_SOURCES = tests/e2e/late.c
tests_e2e_late_la_LDFLAGS = -module -avoid-version -rpath $(libdir)

e2e_tests = \
	tests/e2e/test_parity.py \
	tests/e2e/test_addresses.py \
	tests/e2e/test_ipv6.py \
	tests/e2e/test_async.py \
	tests/e2e/test_backlog.py \
	tests/e2e/test_crowd.py \
	tests/e2e/test_threads.py \
	tests/e2e/test_kill.py \
	tests/e2e/test_meet.py \
	tests/e2e/test_mesh.py \
	tests/e2e/test_topology.py \
	tests/e2e/test_topology_kill.py \
	tests/e2e/test_topology_search.py \
	tests/e2e/test_topology_slow.py \
	tests/e2e/test_topology_attack.py \
	tests/e2e/test_membership.py \
	tests/e2e/test_view.py \
	tests/e2e/test_deaths.py \
	tests/e2e/test_restart.py \
	tests/e2e/test_unconnected.py \
	tests/e2e/test_starting.py \
	tests/e2e/test_state.py \
	tests/e2e/test_masters.py \
	tests/e2e/test_compat.py \
	tests/e2e/test_binding.py \
	tests/e2e/test_stood_still.py \
	tests/e2e/test_frozen.py \
	tests/e2e/test_paced_path.py \
	tests/e2e/test_far_state.py \
	tests/e2e/test_far_newcomer.py \
	tests/e2e/test_newcomers.py \
	tests/e2e/test_ports.py \
	tests/e2e/test_quant.py \
	tests/e2e/test_cuda.py \
	tests/e2e/test_device_memory.py \
	tests/e2e/test_no_cuda.py \
	tests/e2e/test_torch.py \
	tests/e2e/test_refusals.py \
	tests/e2e/test_shortage.py \
	tests/e2e/test_interrupt.py \
	tests/e2e/test_hostile.py \
	tests/e2e/test_trust.py \
	tests/e2e/test_attack.py \
	tests/e2e/test_fresh_start.py \
	tests/e2e/test_links.py \
	tests/e2e/test_mtu.py \
	tests/e2e/test_standstill.py \
	tests/e2e/test_breaks.py \
	tests/e2e/test_flaps.py \
	tests/e2e/test_resets.py \
	tests/e2e/test_half_open.py \
	tests/e2e/test_long.py \
	tests/e2e/test_autospawn.py \
	tests/e2e/test_unread.py \
	tests/e2e/test_inherited.py \
	tests/e2e/test_limits.py \
	tests/e2e/test_low_limits.py \
	tests/e2e/test_loopback_mix.py \
	tests/e2e/test_ctl.py \
	tests/e2e/test_ctl_keys.py \
	tests/e2e/test_ctl_state.py
TESTS += $(e2e_tests)
if HAVE_CUDA
tests/e2e/test_cuda.log tests/e2e/test_device_memory.log tests/e2e/test_no_cuda.log: tests/cuda/libcuda.la
endif
PLAIN_TESTS += $(e2e_tests)
HOSTILE_TESTS += tests/e2e/test_hostile.py tests/e2e/test_trust.py tests/e2e/test_attack.py \
	tests/e2e/test_topology_attack.py
MINIMAL_TESTS += tests/e2e/test_no_cuda.py
LONG_TESTS += tests/e2e/test_membership.py tests/e2e/test_kill.py tests/e2e/test_state.py \
	tests/e2e/test_restart.py tests/e2e/test_parity.py tests/e2e/test_links.py \
	tests/e2e/test_async.py tests/e2e/test_device_memory.py tests/e2e/test_long.py
# These use less than a fifth of a processor.
WAITING_TESTS += tests/e2e/test_newcomers.py tests/e2e/test_mtu.py tests/e2e/test_far_state.py \
	tests/e2e/test_fresh_start.py tests/e2e/test_paced_path.py tests/e2e/test_far_newcomer.py \
	tests/e2e/test_addresses.py tests/e2e/test_limits.py tests/e2e/test_frozen.py \
	tests/e2e/test_loopback_mix.py tests/e2e/test_standstill.py tests/e2e/test_low_limits.py \
	tests/e2e/test_meet.py tests/e2e/test_stood_still.py tests/e2e/test_topology_slow.py
EXTRA_DIST += $(e2e_tests) tests/e2e/README.md tests/e2e/figures.py \
	tests/e2e/attack.py tests/e2e/attacker.py tests/e2e/binding.py tests/e2e/cgroup.py \
	tests/e2e/figures_attack.py tests/e2e/figures_state.py tests/e2e/halfopen.py tests/e2e/instructions.py \
	tests/e2e/lib.py tests/e2e/high_rtt.py tests/e2e/measure.py tests/e2e/private.py tests/e2e/recovery.py tests/e2e/seal.py \
	tests/e2e/wire.py

# The tests import from the source folder and must leave nothing there.
AM_TESTS_ENVIRONMENT += PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

# test_limits.py starts programs through this script.
EXTRA_DIST += tests/e2e/refuse.py
