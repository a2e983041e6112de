# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/ctl/test_masterd
TESTS += tests/ctl/test_masterd
tests_ctl_test_masterd_SOURCES = tests/ctl/test_masterd.c
tests_ctl_test_masterd_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_ctl_test_masterd_LDADD = ccoip-masterd/libccoip-masterd.la $(CHECK_LIBS)

check_PROGRAMS += tests/ctl/test_journal
TESTS += tests/ctl/test_journal
tests_ctl_test_journal_SOURCES = tests/ctl/test_journal.c
tests_ctl_test_journal_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_ctl_test_journal_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=flock -Wl,--wrap=pread
tests_ctl_test_journal_LDADD = ccoip-masterd/libccoip-masterd.la $(CHECK_LIBS)

# Runs pcclctl/pcclctl of the build folder.
check_PROGRAMS += tests/ctl/test_pcclctl
TESTS += tests/ctl/test_pcclctl
tests_ctl_test_pcclctl_SOURCES = tests/ctl/test_pcclctl.c
tests_ctl_test_pcclctl_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_ctl_test_pcclctl_LDADD = pcclctl/libpcclctl.la daemon/libdaemon.la \
	common/libcommon.la proto/libwire.la common/libcommon-pure.la $(PROTOBUF_C_LIBS) $(CHECK_LIBS)

# The real programs together.
TESTS += tests/ctl/programs.py tests/ctl/agent.py
EXTRA_DIST += tests/ctl/README.md tests/ctl/agent.py tests/ctl/programs.py
