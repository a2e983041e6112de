# SPDX-License-Identifier: MIT
# Hosts with a real systemd. Skipped without root or namespaces.

check_PROGRAMS += tests/lab/first
tests_lab_first_SOURCES = examples/first.c
tests_lab_first_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
# It is taken to where only the installed library is.
tests_lab_first_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_lab_first_LDADD = libpccl-shim/libpccl-shim.la

TESTS += tests/lab/test_systemd.py
EXTRA_DIST += tests/lab/README.md tests/lab/host.py tests/lab/host.sh tests/lab/test_systemd.py
