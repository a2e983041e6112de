#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the tests of reduction, of quantization and of the hash with NEON for aarch64, and runs
# them in an emulator. The quality of the hash and the errors of quantization were tested with the
# other instruction sets, so this test only checks that the results are the same.
compiler=aarch64-linux-gnu-gcc
emulator=qemu-aarch64
for tool in $compiler $emulator; do
	if ! command -v "$tool" >/dev/null; then
		echo "$tool is not installed"
		exit 77
	fi
done
cd "${abs_top_srcdir:-.}" || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
krn="tests/kernels/krn_ref.c kernels/krn.c kernels/krn_scalar.c kernels/krn_neon.c"
qnt="tests/kernels/qnt_ref.c tests/kernels/qnt_sample.c kernels/qnt.c kernels/qnt_scalar.c kernels/qnt_tables.c kernels/qnt_loss.c kernels/qnt_neon.c"
hsh="kernels/hsh.c kernels/hsh_keys.c kernels/hsh_scalar.c kernels/hsh_neon.c"
passed=0
failed=0
run() { # suite, case of libcheck, sources
	suite=$1 case=$2
	shift 2
	$compiler -std=gnu11 -O2 -static -Wall -Wextra -Werror -ffp-contract=off -I. -Itests/kernels/neon \
		"-DSUITE=${suite}_suite" -DEMULATED -o "$dir/$suite" tests/kernels/neon/main.c "tests/kernels/$suite.c" "$@" -lm &&
		env ${case:+CK_RUN_CASE=$case} $emulator "$dir/$suite" >"$dir/log" 2>&1 &&
		grep -q ' neon' "$dir/log" && passed=$((passed + 1)) && return
	failed=$((failed + 1))
	cat "$dir/log"
}
# shellcheck disable=SC2086 # words
run krn '' $krn
# shellcheck disable=SC2086 # words
run qnt reference $krn $qnt
# shellcheck disable=SC2086 # words
run hsh value $krn $hsh
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
