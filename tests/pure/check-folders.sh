#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Checks which folders of the agent use which others, by the symbols of their objects and by their
# includes. Exported names must have the folder's prefix, and other folders may include only one
# header of the folder.
set -eu
export LC_ALL=C
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "${1:-.}"

# folder: its prefixes; the header that others include; the folders that it may use. Every folder
# may use base and the core.
folders='
base    ev|rep|hs|flow|addr_spec|wrk|agentd_config * -
local   loc                            local.h     engine,state
net     net                            net.h       engine,state
engine  eng                            engine.h    -
state   ste                            state.h     -
ops     op                             ops.h       local,net,engine,state
admin   adm                            adm.h       ops'

symbols()
{
	find pcclagentd/*/.libs -name '*.o' -exec "${NM:-nm}" -A -P '{}' + | grep -v " __odr_asan\\." |
		sed 's#^pcclagentd/##'
}

includes()
{
	(cd "$source/pcclagentd" && grep -H '^#include "pcclagentd/' -- */*.[ch])
}

{
	while read -r line; do echo "folder $line"; done <<<"$folders"
	symbols | sed 's/^/symbol /'
	includes | sed 's/^/include /'
} | awk '
	function violation(text) { print text; bad++ }
	function may_use(a, b) { return a == b || b == "base" || index("," uses[a] ",", "," b ",") }
	$1 == "folder" && NF == 5 { prefix[$2] = $3; header[$2] = $4; uses[$2] = $5; next }
	$1 == "symbol" && $4 ~ /^[TDBRVW]$/ {
		split($2, part, "/"); folder = part[1]
		if (!(folder in prefix)) next
		objects++
		home[$3] = folder
		if ($3 !~ "^(" prefix[folder] ")_")
			violation(folder " exports " $3 ", which has none of its prefixes: " prefix[folder])
		next
	}
	$1 == "symbol" && $4 == "U" { split($2, part, "/"); need[part[1] " " $3] = $2; next }
	$1 == "include" {
		split($2, part, "/"); folder = part[1]
		split($0, text, "\""); n = split(text[2], path, "/")
		if (!(folder in prefix) || n < 3 || path[2] == folder || path[2] == "core")
			next
		if (!may_use(folder, path[2]))
			violation($2 " includes " text[2] ": " folder " may use " uses[folder] " and base")
		else if (header[path[2]] != "*" && header[path[2]] != path[3])
			violation($2 " includes " text[2] ": other folders may include only " header[path[2]])
	}
	END {
		for (k in need) {
			split(k, part, " ")
			if (part[2] in home && !may_use(part[1], home[part[2]]))
				violation(need[k] " uses " part[2] " of " home[part[2]] ": " part[1] " may use " uses[part[1]] " and base")
		}
		if (objects < 100) violation("only " objects " symbols were found: is the agent built?")
		printf "%d symbols looked at, %d violations\n", objects, bad
		exit bad > 0
	}'
