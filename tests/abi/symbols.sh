#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that the built library exports exactly the symbols of exported.txt under the version
# PCCL_1, that the version script and the header name the same symbols, that the SONAME is
# libpccl-shim.so.1, and that only the C library is needed at run time. usage: symbols.sh [LIBRARY]
set -u
export LC_ALL=C
root=${srcdir:-.}
library=${1:-libpccl-shim/.libs/libpccl-shim.so}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/abi-symbols.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# same WHAT: compares $tmp/names with the committed list
same()
{
	sort "$tmp/names" >"$tmp/got"
	if ! diff -u "$tmp/wanted" "$tmp/got"; then
		echo "FAILED: $1 differs from tests/abi/exported.txt (- missing, + too many)"
		failed=1
	fi
}

grep -v "^#" "$root/tests/abi/exported.txt" | sort >"$tmp/wanted"

sed -n 's/^[[:space:]]*\(pccl[A-Za-z]*\);$/\1/p' "$root/libpccl-shim/libpccl-shim.map" >"$tmp/names"
same "the version script"
tr -d '\n' <"$root/libpccl-shim/include/pccl.h" | grep -o 'PCCL_EXPORT [^(;]*(' |
	grep -v '__attribute__' | sed 's/.*[ *]\(pccl[A-Za-z]*\)($/\1/' >"$tmp/names"
same "pccl.h"

if [ ! -e "$library" ]; then
	echo "FAILED: $library does not exist"
	exit 1
fi
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@@PCCL_1$//' >"$tmp/names"
same "the library"

readelf -d "$library" >"$tmp/dynamic" || exit 1
if ! grep -q 'SONAME.*\[libpccl-shim\.so\.1\]' "$tmp/dynamic"; then
	echo "FAILED: the SONAME is not libpccl-shim.so.1"
	failed=1
fi
# sanitizers bring their own libraries
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$tmp/dynamic" |
	grep -Ev '^(libc|libpthread|ld-linux-[a-z0-9-]+|lib[a-z]*san)\.so\.[0-9]+$')
if [ -n "$needed" ]; then
	echo "FAILED: the library needs more than the C library: $needed"
	failed=1
fi

[ "$failed" -eq 0 ] && echo "$(wc -l <"$tmp/wanted") exported symbols as listed"
