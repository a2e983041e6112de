#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The cores and the codecs are plain functions over plain structs. Their outside references must be
# on the list below (no descriptor, clock, thread, environment, random source), and they keep no
# state in writable variables. The same rules apply to each object file of libcommon that contains a
# function which they use. Only cc_must.o is left out: its variable is the function that ends the
# program when memory is exhausted.
set -eu
export LC_ALL=C
cd "${1:-.}"

pure='libcommon-pure libwire libhsh libccm libagt libtopology'
support='libcommon'
allowed='mem(cpy|move|set|cmp|chr|rchr|mem)|explicit_bzero'
allowed+='|str(len|nlen|cmp|ncmp|chr|rchr|chrnul|str|spn|cspn|pbrk)|stpcpy'
allowed+='|strn?dup|strto(l|ul|ll|ull|d|f)|v?snprintf|(v?snprintf|mem(cpy|move|set)|stpcpy)_chk'
allowed+='|malloc|calloc|realloc|reallocarray|aligned_alloc|free|qsort|bsearch'
allowed+='|inet_(pton|ntop)|errno_location|assert_fail|abort|stack_chk_fail|ctype_b_loc'
allowed+='|(floor|ceil|trunc|round|fabs|fmin|fmax|sqrt|exp|log|log2|pow)f?'
allowed+='|cpu_model' # what the compiler's library knows of the CPU: chooses code, not results
allowed+='|(asan|ubsan)_[a-z_0-9]+' # of sanitized builds
allowed+='|protobuf_c_[a-z_0-9]+|_GLOBAL_OFFSET_TABLE_'

find_library()
{
	find . -name "$1.a" -path '*/.libs/*' | head -n 1
}

# Prints one line per symbol: role object class section symbol
symbols()
{
	"${NM:-nm}" -A -f sysv "$2" 2>/dev/null | awk -F'|' -v role="$1" '
		NF >= 7 {
			n = split($1, part, ":"); gsub(/ /, "", part[n])
			gsub(/ /, "", $3); gsub(/ /, "", $7)
			print role, part[1] ":" part[n - 1], $3, $7, part[n]
		}'
}

missing=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for name in $pure $support; do
	library=$(find_library "$name")
	if [ -z "$library" ]; then
		echo "$name.a has not been built"
		missing=1
		continue
	fi
	case " $pure " in
	*" $name "*) symbols pure "$library" ;;
	*) symbols support "$library" ;;
	esac >>"$list"
done
[ "$missing" -eq 0 ] || exit 1

awk -v allowed="^(__)?(isoc99_)?($allowed)$" '
	$3 ~ /^[UwW]$/ && $4 == "*UND*" { needs[$2] = needs[$2] " " $5; next }
	$3 ~ /^[TRDBVWGSCuidb]$/ && !($5 in home) { home[$5] = $2 }
	$3 ~ /^[bBdDCsSgG]$/ && $4 !~ /^\.data\.rel\.ro/ && $5 !~ /^\.|^DW\.ref|^__odr_asan\./ {
		state[$2] = state[$2] " " $5
	}
	{ role[$2] = $1 }
	function check(object, via,    names, n, i) {
		if (object in seen || object ~ /:cc_must\.o$/)
			return
		seen[object] = 1
		objects++
		if (object in state) {
			printf "%s%s: writable variables:%s\n", object, via, state[object]
			bad++
		}
		n = split(needs[object], names, " ")
		for (i = 1; i <= n; i++) {
			if (names[i] in home)
				check(home[names[i]], via == "" ? ", used by " object : via)
			else if (names[i] !~ allowed) {
				printf "%s%s: refers to %s\n", object, via, names[i]
				bad++
			}
		}
	}
	END {
		for (object in role)
			if (role[object] == "pure")
				check(object, "")
		if (!objects) {
			print "no objects in the pure libraries"
			bad++
		}
		printf "%d objects looked at, %d violations\n", objects, bad
		exit bad > 0
	}' "$list"
