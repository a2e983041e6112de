# SPDX-License-Identifier: MIT
check_PROGRAMS += tests/abi/prototypes
tests_abi_prototypes_SOURCES = tests/abi/prototypes.c
tests_abi_prototypes_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_abi_prototypes_LDADD = libpccl-shim/libpccl-shim.la

TESTS += tests/abi/prototypes tests/abi/headers.sh tests/abi/symbols.sh
PLAIN_TESTS += tests/abi/prototypes tests/abi/headers.sh tests/abi/symbols.sh

EXTRA_DIST += tests/abi/README.md tests/abi/exported.txt tests/abi/headers.sh tests/abi/symbols.sh
