# SPDX-License-Identifier: MIT

noinst_HEADERS += tests/shim/buffers.h tests/shim/fake_agent.h tests/shim/fake_state.h \
	tests/shim/fixture.h tests/shim/resume.h tests/shim/state.h

noinst_LTLIBRARIES += tests/shim/libfake.la
tests_shim_libfake_la_SOURCES = tests/shim/fake_agent.c tests/shim/fake_control.c \
	tests/shim/fake_op.c tests/shim/fake_sync.c
tests_shim_libfake_la_LIBADD = proto/libwire.la common/libcommon-sys.la \
	common/libcommon-pure.la libhsh.la $(PROTOBUF_C_LIBS)

shim_suites = \
	tests/shim/backlog.c \
	tests/shim/codes.c \
	tests/shim/connect.c \
	tests/shim/copy.c \
	tests/shim/fail.c \
	tests/shim/interrupt.c \
	tests/shim/later.c \
	tests/shim/master.c \
	tests/shim/multi.c \
	tests/shim/operand.c \
	tests/shim/result_mode.c \
	tests/shim/reduce.c \
	tests/shim/resume_comms.c \
	tests/shim/resume_ops.c \
	tests/shim/resume_storm.c \
	tests/shim/session.c \
	tests/shim/spawn.c \
	tests/shim/state_manifest.c \
	tests/shim/state_seen.c \
	tests/shim/state_sync.c \
	tests/shim/view.c
check_PROGRAMS += tests/shim/shim tests/shim/standin_agentd
TESTS += $(shim_suites)
LONG_TESTS += tests/shim/operand.c
# They have tests of a library without CUDA.
MINIMAL_TESTS += tests/shim/session.c tests/shim/state_manifest.c
# operand.c is left out because it handles operands of 16 MiB byte by byte. Suites that start
# processes or need no agent are left out, too.
THREADED_TESTS += tests/shim/backlog.c \
	tests/shim/connect.c \
	tests/shim/fail.c \
	tests/shim/interrupt.c \
	tests/shim/later.c \
	tests/shim/multi.c \
	tests/shim/result_mode.c \
	tests/shim/reduce.c \
	tests/shim/resume_comms.c \
	tests/shim/resume_ops.c \
	tests/shim/resume_storm.c \
	tests/shim/session.c \
	tests/shim/state_manifest.c \
	tests/shim/state_seen.c \
	tests/shim/state_sync.c \
	tests/shim/view.c
$(shim_suites:.c=.log): tests/shim/shim$(EXEEXT) tests/shim/standin_agentd$(EXEEXT)
# copy.c tests functions that the library does not export, so the program contains them twice.
tests_shim_shim_SOURCES = $(shim_suites) libpccl-shim/copy.c tests/shim/main.c tests/shim/suites.h
tests_shim_shim_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_shim_shim_LDADD = tests/librunner.la libpccl-shim/libpccl-shim.la tests/shim/libfake.la \
	libhsh_run.la $(CHECK_LIBS)

tests_shim_standin_agentd_SOURCES = tests/shim/standin_agentd.c
tests_shim_standin_agentd_LDADD = tests/shim/libfake.la

EXTRA_DIST += tests/shim/README.md tests/shim/standin_masterd.sh

# kinds contains the library with a second kind of user memory.
noinst_HEADERS += tests/shim/dummy.h
check_LTLIBRARIES += tests/shim/libkinds.la
tests_shim_libkinds_la_SOURCES = $(libpccl_shim_libpccl_shim_la_SOURCES) tests/shim/dummy.c
tests_shim_libkinds_la_CPPFLAGS = $(libpccl_shim_libpccl_shim_la_CPPFLAGS) \
	'-DPCCL_BUF_KINDS(KIND)=KIND(dummy)'
tests_shim_libkinds_la_LIBADD = $(libpccl_shim_libpccl_shim_la_LIBADD)
check_PROGRAMS += tests/shim/kinds
TESTS += tests/shim/kinds
# kinds is not in THREADED_TESTS. Library and agent map the flags of segments at two addresses, so
# ThreadSanitizer cannot see that a segment is exchanged only after it was copied in.
tests_shim_kinds_SOURCES = tests/shim/kinds.c
tests_shim_kinds_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) '-DPCCL_BUF_KINDS(KIND)=KIND(dummy)'
tests_shim_kinds_LDADD = tests/shim/libkinds.la tests/shim/libfake.la $(PROTOBUF_C_LIBS) \
	$(CHECK_LIBS)
