# SPDX-License-Identifier: MIT

# The code that the test programs of all folders share.
check_LTLIBRARIES += tests/librunner.la
tests_librunner_la_SOURCES = tests/runner.c tests/runner.h
tests_librunner_la_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
# Of programs with tests/exhaust.c, which lets allocations fail.
EXHAUST_WRAP = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

include tests/common/local.mk
include tests/proto/local.mk
include tests/kernels/local.mk
include tests/cuda/local.mk
include tests/topology/local.mk
include tests/master/local.mk
include tests/agent/local.mk
include tests/agentio/local.mk
include tests/engine/local.mk
include tests/state/local.mk
include tests/shim/local.mk
include tests/sim/local.mk
include tests/ctl/local.mk
include tests/bench/local.mk
include tests/abi/local.mk
include tests/compare/local.mk
include tests/docs/local.mk
include tests/e2e/local.mk
include tests/inject/local.mk
include tests/soak/local.mk
include tests/lab/local.mk
include tests/fuzz/local.mk
include tests/pure/local.mk
include tests/install/local.mk
