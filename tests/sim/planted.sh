#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that each of the planted bugs (plant/*.patch) is found. planted_N is the simulator with one
# of these bugs in the cores. A patch may name a seed that has found its bug ("Seed: 12"), which is
# tried first; other changes of the cores make such a seed useless.
plant=$(cd "$(dirname "$0")" && pwd)/plant
cd "${abs_top_builddir:-.}" || exit 1

# finds PROGRAM SEEDS: sets $out to the output.
finds()
{
	out=$("$1" --seeds "$2" --expect-failure)
}

passed=0
failed=0
for program in tests/sim/planted_[0-9]*; do
	case $program in *_core.*) continue ;; esac
	[ -x "$program" ] || continue
	seed=$(sed -n 's/^Seed: //p' "$plant/${program##*_}"_*.patch)
	if { [ -n "$seed" ] && finds "$program" "$seed-$seed"; } || finds "$program" 1-8000; then
		passed=$((passed + 1))
		echo "$program: $out" | head -n 1
	else
		failed=$((failed + 1))
		echo "$program: its bug is not found"
	fi
done
[ $((passed + failed)) -eq 38 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
