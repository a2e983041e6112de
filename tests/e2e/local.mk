# SPDX-License-Identifier: MIT
# Whole systems: real daemons and peers. They start many processes, so they run one after another.

check_PROGRAMS += tests/e2e/peer
tests_e2e_peer_SOURCES = \
	tests/e2e/data.c tests/e2e/data.h \
	tests/e2e/operation.c \
	tests/e2e/peer.c tests/e2e/peer.h
tests_e2e_peer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
# No wrapper script around it: what is started is what is killed.
tests_e2e_peer_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_e2e_peer_LDADD = libpccl-shim/libpccl-shim.la -lm
