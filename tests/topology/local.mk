# SPDX-License-Identifier: MIT

topology_suites = \
	tests/topology/atsp.c \
	tests/topology/matrix.c \
	tests/topology/neck.c \
	tests/topology/plan.c \
	tests/topology/rate.c \
	tests/topology/solver.c \
	tests/topology/sum.c \
	tests/topology/time.c
check_PROGRAMS += tests/topology/topology
TESTS += $(topology_suites) tests/topology/solve.py
PLAIN_TESTS += tests/topology/solve.py
$(topology_suites:.c=.log): tests/topology/topology$(EXEEXT)
tests_topology_topology_SOURCES = $(topology_suites) \
	tests/topology/brute.c tests/topology/brute.h \
	tests/topology/main.c tests/topology/suites.h
tests_topology_topology_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_topology_topology_LDADD = tests/librunner.la ccoip-masterd/libccoip-masterd.la common/libcommon-service.la \
	$(CHECK_LIBS) -lm

EXTRA_DIST += tests/topology/README.md tests/topology/solve.py
