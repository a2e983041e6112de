# SPDX-License-Identifier: MIT

# All cases of life.c run only as root with network namespaces; otherwise one case runs on loopback.
engine_suites = \
	tests/engine/engine.c \
	tests/engine/blocked.c \
	tests/engine/life.c \
	tests/engine/quant.c \
	tests/engine/rate.c \
	tests/engine/result_mode.c \
	tests/engine/rings.c
check_PROGRAMS += tests/engine/engine
TESTS += $(engine_suites)
THREADED_TESTS += $(engine_suites)
LONG_TESTS += tests/engine/result_mode.c tests/engine/engine.c tests/engine/blocked.c
$(engine_suites:.c=.log): tests/engine/engine$(EXEEXT)
tests_engine_engine_SOURCES = $(engine_suites) \
	tests/engine/main.c tests/engine/suites.h \
	tests/engine/net.c tests/engine/net.h
tests_engine_engine_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_engine_LDADD = tests/librunner.la pccl-bench/libpccl-bench.la pcclagentd/libpcclagentd.la $(CHECK_LIBS)

EXTRA_DIST += tests/engine/README.md
