# SPDX-License-Identifier: MIT

ctl_suites = \
	tests/ctl/journal.c \
	tests/ctl/masterd.c \
	tests/ctl/pcclctl.c
check_PROGRAMS += tests/ctl/ctl
TESTS += $(ctl_suites)
# pcclctl.c runs pcclctl/pcclctl of the build folder.
$(ctl_suites:.c=.log): tests/ctl/ctl$(EXEEXT)
tests_ctl_ctl_SOURCES = $(ctl_suites) tests/ctl/main.c tests/ctl/suites.h
tests_ctl_ctl_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
# journal.c lets these calls fail.
tests_ctl_ctl_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=flock -Wl,--wrap=pread
tests_ctl_ctl_LDADD = tests/librunner.la ccoip-masterd/libccoip-masterd.la pcclctl/libpcclctl.la $(CHECK_LIBS)

# Tests of the real programs together.
TESTS += tests/ctl/programs.py tests/ctl/agent.py
EXTRA_DIST += tests/ctl/README.md tests/ctl/agent.py tests/ctl/programs.py
