# SPDX-License-Identifier: MIT

# Each target is built twice: with libFuzzer (`make fuzzers`), and with a driver that runs its seeds
# in `make check`.
EXTRA_DIST += tests/fuzz/README.md tests/fuzz/corpus
noinst_HEADERS += tests/fuzz/fuzz.h

fuzz_libs = tests/proto/libsample.la common/libcommon-pure.la $(PROTOBUF_C_LIBS)
fuzz_cppflags = $(AM_CPPFLAGS) $(CHECK_CFLAGS)

# Writes the seeds: `make tests/fuzz/make_seeds && tests/fuzz/make_seeds SOURCES/tests/fuzz/corpus`.
EXTRA_PROGRAMS += tests/fuzz/make_seeds
tests_fuzz_make_seeds_SOURCES = tests/fuzz/make_seeds.c
tests_fuzz_make_seeds_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_make_seeds_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_admin
EXTRA_PROGRAMS += tests/fuzz/fuzz_admin
tests_fuzz_fuzz_admin_SOURCES = tests/fuzz/fuzz_admin.c
tests_fuzz_fuzz_admin_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_admin_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_admin_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_admin
TESTS += tests/fuzz/seeds_admin
tests_fuzz_seeds_admin_SOURCES = tests/fuzz/fuzz_admin.c tests/fuzz/driver.c
tests_fuzz_seeds_admin_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_admin"'
tests_fuzz_seeds_admin_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_frame
EXTRA_PROGRAMS += tests/fuzz/fuzz_frame
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c
tests_fuzz_fuzz_frame_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_frame_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_frame_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_frame
TESTS += tests/fuzz/seeds_frame
tests_fuzz_seeds_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/driver.c
tests_fuzz_seeds_frame_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_frame"'
tests_fuzz_seeds_frame_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_journal
EXTRA_PROGRAMS += tests/fuzz/fuzz_journal
tests_fuzz_fuzz_journal_SOURCES = tests/fuzz/fuzz_journal.c
tests_fuzz_fuzz_journal_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_journal_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_journal_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_journal
TESTS += tests/fuzz/seeds_journal
tests_fuzz_seeds_journal_SOURCES = tests/fuzz/fuzz_journal.c tests/fuzz/driver.c
tests_fuzz_seeds_journal_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_journal"'
tests_fuzz_seeds_journal_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_link
EXTRA_PROGRAMS += tests/fuzz/fuzz_link
tests_fuzz_fuzz_link_SOURCES = tests/fuzz/fuzz_link.c
tests_fuzz_fuzz_link_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_link_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_link_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_link
TESTS += tests/fuzz/seeds_link
tests_fuzz_seeds_link_SOURCES = tests/fuzz/fuzz_link.c tests/fuzz/driver.c
tests_fuzz_seeds_link_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_link"'
tests_fuzz_seeds_link_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_local
EXTRA_PROGRAMS += tests/fuzz/fuzz_local
tests_fuzz_fuzz_local_SOURCES = tests/fuzz/fuzz_local.c
tests_fuzz_fuzz_local_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_local_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_local_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_local
TESTS += tests/fuzz/seeds_local
tests_fuzz_seeds_local_SOURCES = tests/fuzz/fuzz_local.c tests/fuzz/driver.c
tests_fuzz_seeds_local_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_local"'
tests_fuzz_seeds_local_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_master
EXTRA_PROGRAMS += tests/fuzz/fuzz_master
tests_fuzz_fuzz_master_SOURCES = tests/fuzz/fuzz_master.c
tests_fuzz_fuzz_master_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_master_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_master_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_master
TESTS += tests/fuzz/seeds_master
tests_fuzz_seeds_master_SOURCES = tests/fuzz/fuzz_master.c tests/fuzz/driver.c
tests_fuzz_seeds_master_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_master"'
tests_fuzz_seeds_master_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_result
EXTRA_PROGRAMS += tests/fuzz/fuzz_result
tests_fuzz_fuzz_result_SOURCES = tests/fuzz/fuzz_result.c
tests_fuzz_fuzz_result_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_result_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_result_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_result
TESTS += tests/fuzz/seeds_result
tests_fuzz_seeds_result_SOURCES = tests/fuzz/fuzz_result.c tests/fuzz/driver.c
tests_fuzz_seeds_result_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_result"'
tests_fuzz_seeds_result_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_shm_state
EXTRA_PROGRAMS += tests/fuzz/fuzz_shm_state
tests_fuzz_fuzz_shm_state_SOURCES = tests/fuzz/fuzz_shm_state.c
tests_fuzz_fuzz_shm_state_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_shm_state_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_shm_state_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_shm_state
TESTS += tests/fuzz/seeds_shm_state
tests_fuzz_seeds_shm_state_SOURCES = tests/fuzz/fuzz_shm_state.c tests/fuzz/driver.c
tests_fuzz_seeds_shm_state_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_shm_state"'
tests_fuzz_seeds_shm_state_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_state
EXTRA_PROGRAMS += tests/fuzz/fuzz_state
tests_fuzz_fuzz_state_SOURCES = tests/fuzz/fuzz_state.c
tests_fuzz_fuzz_state_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_state_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_state_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_state
TESTS += tests/fuzz/seeds_state
tests_fuzz_seeds_state_SOURCES = tests/fuzz/fuzz_state.c tests/fuzz/driver.c
tests_fuzz_seeds_state_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_state"'
tests_fuzz_seeds_state_LDADD = $(fuzz_libs)

FUZZERS += tests/fuzz/fuzz_submit
EXTRA_PROGRAMS += tests/fuzz/fuzz_submit
tests_fuzz_fuzz_submit_SOURCES = tests/fuzz/fuzz_submit.c
tests_fuzz_fuzz_submit_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_submit_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_submit_LDADD = $(fuzz_libs)

check_PROGRAMS += tests/fuzz/seeds_submit
TESTS += tests/fuzz/seeds_submit
tests_fuzz_seeds_submit_SOURCES = tests/fuzz/fuzz_submit.c tests/fuzz/driver.c
tests_fuzz_seeds_submit_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_submit"'
tests_fuzz_seeds_submit_LDADD = $(fuzz_libs)

fuzz_topology_libs = libtopology.la common/libcommon-pure.la -lm
FUZZERS += tests/fuzz/fuzz_topology
EXTRA_PROGRAMS += tests/fuzz/fuzz_topology
tests_fuzz_fuzz_topology_SOURCES = tests/fuzz/fuzz_topology.c
tests_fuzz_fuzz_topology_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_topology_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_topology_LDADD = $(fuzz_topology_libs)

check_PROGRAMS += tests/fuzz/seeds_topology
TESTS += tests/fuzz/seeds_topology
tests_fuzz_seeds_topology_SOURCES = tests/fuzz/fuzz_topology.c tests/fuzz/driver.c
tests_fuzz_seeds_topology_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_NAME='"fuzz_topology"'
tests_fuzz_seeds_topology_LDADD = $(fuzz_topology_libs)
