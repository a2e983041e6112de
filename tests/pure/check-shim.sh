#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Checks which files of libpccl-shim use which others, by the symbols of their objects and by their
# includes. A group of files may use its own files and the groups above it in the table. No files
# may use each other in a cycle. Exported names must have a prefix of their group.
set -eu
export LC_ALL=C
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "${1:-.}"

# group: its files; its prefixes, after pccl_. "public": functions of the API, which are called
# pccl_inner_ inside the library (inner.h).
groups='
error    error,inner                         fail|ok|public
base     fork,thread,lib,address             fork|thread|lib|address
daemons  program,spawn                       program|spawn
session  map,handed,beat,session,region       map|handed|beat|session|region
memory   copy,buf,registered,buf_cuda,cuda,cuda_context,cuda_hash,cuda_known  copy|buf|registered|cuda
attach   staging,attach                      staging|result|attachment
state    state,torn,state_args,state_manifest  torn|state
copier   copier                              copier
comm     comm,link,resume                    comm
reconnector  reconnector                    reconnector
slot     slot                                slot
reduce   submit,await,feedback,backlog,reduce  reduce|backlog|feedback|public
api      init,memory,connect,vote,multi,sync,master  public
entry    entry,abi_asserts                   public'

symbols()
{
	for file in "$source"/libpccl-shim/*.c; do
		file=$(basename "$file" .c)
		"${NM:-nm}" -P "libpccl-shim/.libs/libpccl_shim_la-$file.o" | grep -v "^__odr_asan\\." |
			sed "s/^/$file /"
	done
}

includes()
{
	(cd "$source/libpccl-shim" && grep -H '^#include "libpccl-shim/[a-z_]*\.h"' -- *.[ch]) |
		sed 's#^\([a-z_]*\.[ch]\):.*libpccl-shim/\([a-z_]*\)\.h"#\1 \2#'
}

{
	sed '/^$/d; s/^/group /' <<<"$groups"
	symbols | sed 's/^/symbol /'
	includes | sed 's/^/include /'
} | awk '
	function violation(text) { print text; bad++ }
	function below(file, other) { return rank[group[other]] <= rank[group[file]] }
	$1 == "group" {
		rank[$2] = NR; prefix[$2] = $4
		n = split($3, files, ",")
		for (i = 1; i <= n; i++) group[files[i]] = $2
		next
	}
	$1 != "group" {
		file = $2; sub(/\.[ch]$/, "", file)
		if (!(file in group)) { violation(file " is in no group"); group[file] = "entry" }
	}
	$1 == "symbol" && $4 ~ /^[TDBRVW]$/ {
		objects++
		home[$3] = file
		name = $3
		sub(/^pccl(_inner_|[A-Z])/, "pccl_public_", name)
		if (name !~ "^pccl_(" prefix[group[file]] ")(_|$)")
			violation(file " exports " $3 ", which has none of its prefixes: " prefix[group[file]])
		next
	}
	$1 == "symbol" && $4 == "U" { need[file " " $3]; next }
	$1 == "include" {
		if (!($3 in group)) violation($2 " includes " $3 ".h, which is in no group")
		else if (!below(file, $3))
			violation($2 " includes " $3 ".h of " group[$3] ", a later group than " group[file])
	}
	END {
		for (k in need) {
			split(k, part, " ")
			if (!(part[2] in home) || home[part[2]] == part[1]) continue
			to = home[part[2]]
			if (!below(part[1], to))
				violation(part[1] " uses " part[2] " of " to ": " group[to] " is a later group than " group[part[1]])
			edge[part[1] " " to] = part[2]
		}
		# Files that use no other file, and files that no other file uses, are in no cycle.
		do {
			taken = 0
			split("", uses); split("", used)
			for (e in edge) { split(e, part, " "); uses[part[1]]++; used[part[2]]++ }
			for (e in edge) {
				split(e, part, " ")
				if (!uses[part[2]] || !used[part[1]]) { delete edge[e]; taken = 1 }
			}
		} while (taken)
		for (e in edge) {
			split(e, part, " ")
			violation("in a cycle: " part[1] " uses " edge[e] " of " part[2])
		}
		if (objects < 100) violation("only " objects " symbols were found: is the library built?")
		printf "%d symbols looked at, %d violations\n", objects, bad
		exit bad > 0
	}'
