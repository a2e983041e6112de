# SPDX-License-Identifier: MIT
# Whole systems in which one call of one process fails.

# Preloaded; never installed, though libtool makes a shared object only with -rpath.
check_LTLIBRARIES += tests/inject/inject.la
tests_inject_inject_la_SOURCES = tests/inject/inject.c
# In ISO C a parameter type with __restrict does not match the same type without __restrict.
tests_inject_inject_la_CFLAGS = $(AM_CFLAGS) -Wno-pedantic
tests_inject_inject_la_LDFLAGS = -module -avoid-version -rpath $(libdir)
check_LTLIBRARIES += tests/inject/hold.la
tests_inject_hold_la_SOURCES = tests/inject/hold.c
tests_inject_hold_la_LDFLAGS = -module -avoid-version -rpath $(libdir)

TESTS += tests/inject/test_inject.py
PLAIN_TESTS += tests/inject/test_inject.py
LONG_TESTS += tests/inject/test_inject.py
EXTRA_DIST += tests/inject/.clang-tidy tests/inject/README.md tests/inject/test_inject.py tests/inject/truth.py
