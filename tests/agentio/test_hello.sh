#!/bin/sh
# SPDX-License-Identifier: MIT
# What strangers and agents say first, alone: the build with -O0 runs it. agentio has it, too.
CK_RUN_SUITE=hello exec "${abs_top_builddir:-.}/tests/agentio/agentio"
