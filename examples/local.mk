# SPDX-License-Identifier: MIT
noinst_PROGRAMS += examples/first
examples_first_SOURCES = examples/first.c
examples_first_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
examples_first_LDADD = libpccl-shim/libpccl-shim.la

if HAVE_CBLAS
if HAVE_ZLIB
noinst_PROGRAMS += examples/fashion-mnist
examples_fashion_mnist_SOURCES = examples/fashion-mnist.c examples/options.c examples/options.h \
	examples/mlp.c examples/mlp.h examples/dataset.c examples/dataset.h
examples_fashion_mnist_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include \
	$(CBLAS_CFLAGS) $(ZLIB_CFLAGS)
examples_fashion_mnist_LDADD = libpccl-shim/libpccl-shim.la $(CBLAS_LIBS) $(ZLIB_LIBS) -lm
endif
endif

EXTRA_DIST += examples/demo.py examples/netns.py examples/torch_train.py
