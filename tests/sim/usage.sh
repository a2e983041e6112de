#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Invalid arguments end with status 64. A seed that fails prints its events and how to replay it.
cd "${abs_top_builddir:-.}" || exit 1
passed=0
failed=0
check() { # what, status expected, status
	if [ "$2" -eq "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$1: status $3, expected $2"
	fi
}
for args in "--seeds 5-1" "--seeds abc" "--seeds 1" "--seeds 1-" "--seeds -1-2" "--seeds 1-2x" \
	"--seed x" "--seed 1x" "--seed -1" "--seed 99999999999999999999" "--jobs 0" "--jobs two" \
	"--seeds 1-2 --trace" "--scale 100," "--scale 2" "--scale ten" "--scale" "--nonsense" "7"; do
	# shellcheck disable=SC2086 # words
	tests/sim/run $args >/dev/null 2>&1
	check "run $args" 64 $?
done
tests/sim/run --seeds 7-7 >/dev/null
check "run --seeds 7-7" 0 $?
[ "$(tests/sim/run --seed 7 | wc -l)" -eq 6 ]
check "a seed that passes prints six lines" 0 $?

found=$(tests/sim/planted_1 --seeds 1-8000 --expect-failure)
seed=$(echo "$found" | sed -n 's/^seed \([0-9]*\): at .*/\1/p' | head -n 1)
echo "$found" | grep -qx "replay: tests/sim/planted_1 --seed $seed"
check "a failure is printed with the command that replays it" 0 $?
trace=$(tests/sim/planted_1 --seed "$seed")
check "planted_1 --seed $seed" 1 $?
[ "$(echo "$trace" | wc -l)" -gt 100 ] && [ "$(echo "$trace" | grep -c "^seed $seed: at ")" -eq 1 ]
check "a seed that fails prints all its events" 0 $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
