#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that every public header compiles alone, twice in a row, as C99, C11 and C++17, without a
# warning, and that the layout assertions hold. usage: headers.sh [COMPILER...] (default: $CC, gcc,
# clang and the C++ compilers $CXX, g++, clang++, if they exist)
set -u
root=${srcdir:-.}
include=$root/libpccl-shim/include
tmp=$(mktemp -d "${TMPDIR:-/tmp}/abi-headers.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
ran=0

# check WHAT COMPILER-AND-FLAGS SOURCE-FILE
check()
{
	ran=$((ran + 1))
	# the compiler may be a command with arguments
	# shellcheck disable=SC2086
	if ! $2 -Wall -Wextra -Wpedantic -Werror -I"$include" -c "$3" -o "$tmp/out.o"; then
		echo "FAILED: $1 with $2"
		failed=$((failed + 1))
	fi
}

have()
{
	command -v "${1%% *}" >/dev/null 2>&1
}

for header in pccl.h ccoip.h ccoip_inet.h; do
	for ext in c cc; do
		printf '#include "%s"\n#include "%s"\nextern int one_declaration;\n' \
			"$header" "$header" >"$tmp/$header.$ext"
	done
done

for cc in "${CC:-cc}" gcc clang; do
	have "$cc" || continue
	for header in pccl.h ccoip.h ccoip_inet.h; do
		check "$header" "$cc -std=c99" "$tmp/$header.c"
		check "$header" "$cc -std=c11" "$tmp/$header.c"
	done
	check "the layout" "$cc -std=c11" "$root/libpccl-shim/abi_asserts.c"
done
for cxx in "${CXX:-c++}" g++ clang++; do
	have "$cxx" || continue
	for header in pccl.h ccoip.h ccoip_inet.h; do
		check "$header" "$cxx -std=c++17" "$tmp/$header.cc"
	done
done

echo "$ran compilations, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
