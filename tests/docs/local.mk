# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/docs/numbers
tests_docs_numbers_SOURCES = tests/docs/numbers.c
tests_docs_numbers_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_docs_numbers_LDADD = pcclagentd/libpcclagentd.la libccm.la proto/libwire.la \
	common/libcommon.la $(PROTOBUF_C_LIBS)

# options.c prints the tables of all programs.
check_PROGRAMS += tests/docs/options
tests_docs_options_SOURCES = tests/docs/options.c
tests_docs_options_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
tests_docs_options_LDADD = pcclagentd/libpcclagentd.la ccoip-masterd/libccoip-masterd.la \
	pcclctl/libpcclctl.la pccl-bench/libpccl-bench.la $(JSON_C_LIBS)

TESTS += tests/docs/test_examples.py tests/docs/test_numbers.py tests/docs/test_codes.py \
	tests/docs/test_options.py tests/docs/test_files.py
PLAIN_TESTS += tests/docs/test_examples.py tests/docs/test_numbers.py tests/docs/test_codes.py \
	tests/docs/test_options.py tests/docs/test_files.py
EXTRA_DIST += tests/docs/retired_words.py tests/docs/README.md tests/docs/test_examples.py tests/docs/test_numbers.py \
	tests/docs/test_codes.py tests/docs/test_options.py tests/docs/test_files.py \
	tests/docs/frames/README.md \
	tests/docs/frames/frame.h \
	tests/docs/frames/pccl.h.c \
	tests/docs/frames/pcclAllReduce.3.c \
	tests/docs/frames/pcclCreateCommunicator.3.c \
	tests/docs/frames/pcclGetLastError.3.c \
	tests/docs/frames/pcclInterrupt.3.c \
	tests/docs/frames/pcclOptimizeTopology.3.c \
	tests/docs/frames/pcclSetErrorFeedback.3.c \
	tests/docs/frames/pcclSynchronizeSharedState.3.c \
	tests/docs/frames/pcclUpdateTopology.3.c
