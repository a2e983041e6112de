# SPDX-License-Identifier: MIT
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = completions/pcclagentd completions/ccoip-masterd completions/pcclctl \
	completions/pccl-bench
