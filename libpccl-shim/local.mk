# SPDX-License-Identifier: MIT

include_HEADERS += \
	libpccl-shim/include/ccoip.h \
	libpccl-shim/include/ccoip_inet.h \
	libpccl-shim/include/pccl.h

lib_LTLIBRARIES += libpccl-shim/libpccl-shim.la
libpccl_shim_libpccl_shim_la_SOURCES = \
	libpccl-shim/abi_asserts.c \
	libpccl-shim/address.c libpccl-shim/address.h \
	libpccl-shim/attach.c libpccl-shim/attach.h \
	libpccl-shim/await.c \
	libpccl-shim/backlog.c libpccl-shim/backlog.h \
	libpccl-shim/beat.c libpccl-shim/beat.h \
	libpccl-shim/buf.c libpccl-shim/buf.h \
	libpccl-shim/comm.c libpccl-shim/comm.h \
	libpccl-shim/connect.c \
	libpccl-shim/copier.c libpccl-shim/copier.h \
	libpccl-shim/copy.c libpccl-shim/copy.h \
	libpccl-shim/entry.c \
	libpccl-shim/feedback.c libpccl-shim/feedback.h \
	libpccl-shim/error.c libpccl-shim/error.h libpccl-shim/inner.h \
	libpccl-shim/fork.c libpccl-shim/fork.h \
	libpccl-shim/init.c \
	libpccl-shim/reconnector.c libpccl-shim/reconnector.h \
	libpccl-shim/lib.c libpccl-shim/lib.h \
	libpccl-shim/link.c \
	libpccl-shim/map.c libpccl-shim/map.h \
	libpccl-shim/master.c \
	libpccl-shim/memory.c \
	libpccl-shim/torn.c libpccl-shim/torn.h \
	libpccl-shim/multi.c \
	libpccl-shim/handed.c libpccl-shim/handed.h \
	libpccl-shim/program.c libpccl-shim/program.h \
	libpccl-shim/reduce.c libpccl-shim/reduce.h \
	libpccl-shim/region.c libpccl-shim/region.h \
	libpccl-shim/registered.c libpccl-shim/registered.h \
	libpccl-shim/resume.c \
	libpccl-shim/session.c libpccl-shim/session.h \
	libpccl-shim/slot.c libpccl-shim/slot.h \
	libpccl-shim/spawn.c libpccl-shim/spawn.h \
	libpccl-shim/staging.c \
	libpccl-shim/state.h \
	libpccl-shim/state_args.c \
	libpccl-shim/state_manifest.c \
	libpccl-shim/submit.c \
	libpccl-shim/sync.c \
	libpccl-shim/thread.c libpccl-shim/thread.h \
	libpccl-shim/vote.c
libpccl_shim_libpccl_shim_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libpccl-shim/include
libpccl_shim_libpccl_shim_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libpccl_shim_libpccl_shim_la_LDFLAGS = $(SHIM_LINK_FLAGS)
libpccl_shim_libpccl_shim_la_LIBADD = proto/libwire.la common/libcommon-pure.la \
	common/libcommon-sys.la libhsh_run.la
# Memory of CUDA devices. The library opens the driver at run time.
if HAVE_CUDA
libpccl_shim_libpccl_shim_la_SOURCES += \
	kernels/cuda/driver.c kernels/cuda/driver.h \
	libpccl-shim/buf_cuda.c \
	libpccl-shim/cuda.h \
	libpccl-shim/cuda_context.c \
	libpccl-shim/cuda_hash.c \
	libpccl-shim/cuda_known.c
libpccl_shim_libpccl_shim_la_CPPFLAGS += $(CUDA_CPPFLAGS)
libpccl_shim_libpccl_shim_la_LIBADD += libgpu_hash.la
endif
EXTRA_libpccl_shim_libpccl_shim_la_DEPENDENCIES = libpccl-shim/libpccl-shim.map

EXTRA_DIST += libpccl-shim/libpccl-shim.map libpccl-shim/include/README.md
