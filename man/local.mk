# SPDX-License-Identifier: MIT
pages = man/man1/pccl-bench.1 man/man1/pcclctl.1 man/man5/pccl-agent.conf.5 \
	man/man5/ccoip-masterd.conf.5 man/man8/pcclagentd.8 man/man8/ccoip-masterd.8

nodist_man_MANS = $(pages)
CLEANFILES += $(pages)
EXTRA_DIST += man/man1/pccl-bench.1.in man/man1/pcclctl.1.in man/man5/pccl-agent.conf.5.in \
	man/man5/ccoip-masterd.conf.5.in man/man8/pcclagentd.8.in man/man8/ccoip-masterd.8.in \
	man/man1/README.md man/man3/README.md man/man5/README.md man/man7/README.md man/man8/README.md

include man/man3/local.mk
dist_man_MANS += man/man7/pccl.7
