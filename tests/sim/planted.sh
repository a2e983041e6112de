#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that each of the planted bugs (plant/*.patch) is found. planted_N is the simulator with one
# of these bugs in the cores.
cd "${abs_top_builddir:-.}" || exit 1
passed=0
failed=0
for program in tests/sim/planted_[0-9]*; do
	case $program in *_core.*) continue ;; esac
	[ -x "$program" ] || continue
	if out=$("$program" --seeds 1-8000 --expect-failure); then
		passed=$((passed + 1))
		echo "$program: $out" | head -n 1
	else
		failed=$((failed + 1))
		echo "$program: its bug is not found"
	fi
done
[ $((passed + failed)) -eq 27 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
