# SPDX-License-Identifier: MIT

TESTS += tests/docs/test_examples.py
PLAIN_TESTS += tests/docs/test_examples.py
EXTRA_DIST += tests/docs/README.md tests/docs/test_examples.py \
	tests/docs/frames/README.md \
	tests/docs/frames/frame.h \
	tests/docs/frames/pccl.h.c \
	tests/docs/frames/pcclAllReduce.3.c \
	tests/docs/frames/pcclCreateCommunicator.3.c \
	tests/docs/frames/pcclGetLastError.3.c \
	tests/docs/frames/pcclInterrupt.3.c \
	tests/docs/frames/pcclSynchronizeSharedState.3.c \
	tests/docs/frames/pcclUpdateTopology.3.c
