# SPDX-License-Identifier: MIT

# All files except main.c, for tests.
noinst_LTLIBRARIES += pcclctl/libpcclctl.la
pcclctl_libpcclctl_la_SOURCES = \
	pcclctl/client.c pcclctl/client.h \
	pcclctl/dot.c pcclctl/dot.h \
	pcclctl/gpu.c pcclctl/gpu.h \
	pcclctl/options.c pcclctl/options.h \
	pcclctl/print.c pcclctl/print.h \
	pcclctl/target.c pcclctl/target.h \
	pcclctl/topology.c pcclctl/topology.h
pcclctl_libpcclctl_la_LIBADD = proto/libwire.la libtopology.la common/libcommon-options.la common/libcommon-sys.la common/libcommon-pure.la \
	$(JSON_C_LIBS) $(PROTOBUF_C_LIBS) -lm
if HAVE_CUDA
pcclctl_libpcclctl_la_SOURCES += \
	kernels/cuda/driver.c kernels/cuda/driver.h \
	pcclctl/gpu_device.c pcclctl/gpu_device.h \
	pcclctl/gpu_table.c pcclctl/gpu_table.h
pcclctl_libpcclctl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
pcclctl_libpcclctl_la_LIBADD += libgpu_check.la libgpu_hash.la libhsh.la
endif

bin_PROGRAMS += pcclctl/pcclctl
pcclctl_pcclctl_SOURCES = pcclctl/main.c
pcclctl_pcclctl_LDADD = pcclctl/libpcclctl.la
