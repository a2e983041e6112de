#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that messages and actions per peer do not grow with the number of peers.
cd "${abs_top_builddir:-.}" || exit 1
exec tests/sim/run --scale 100,1000,3000
