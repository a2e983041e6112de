#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Installs a build into an empty folder, builds the first program of the README against the
# installed files with nothing but pkg-config, and runs it twice, with the installed master and
# agent. Prints one line per check, "ok" or "FAIL". The exit status is 0 if all are ok.
#
# usage: install.sh BUILD-FOLDER   (from the source folder)
set -u

build=$(cd "$1" && pwd) || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/pccl-install.XXXXXX") || exit 1
root=$work/root
prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
failed=0
started=()

clean_up()
{
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# check WHAT COMMAND...: runs the command and prints one line, and the output of the command if it
# failed
check()
{
	local what=$1

	shift
	if "$@" >"$work/said" 2>&1; then
		echo "ok - $what"
	else
		echo "FAIL - $what"
		sed 's/^/    /' "$work/said"
		failed=1
	fi
}

# until_true SECONDS COMMAND...
until_true()
{
	local end=$((SECONDS + $1))

	shift
	until "$@" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

installed()
{
	local f

	for f in include/{pccl,ccoip,ccoip_inet}.h lib/libpccl-shim.so.1 lib/libpccl-shim.so \
		lib/libpccl.so lib/pkgconfig/{libpccl-shim,pccl}.pc \
		sbin/{pcclagentd,ccoip-masterd} bin/{pcclctl,pccl-bench} \
		share/man/man1/{pcclctl,pccl-bench}.1 share/man/man8/{pcclagentd,ccoip-masterd}.8 \
		share/man/man7/pccl.7 \
		share/man/man5/{pccl-agent,ccoip-masterd}.conf.5 \
		share/bash-completion/completions/{pcclctl,pccl-bench,pcclagentd,ccoip-masterd}; do
		[ -s "$root$prefix/$f" ] || { echo "$f is missing"; return 1; }
	done
}

no_build_paths()
{
	! grep -rIlF -e "$build" "$root" &&
		! readelf -d "$root$prefix"/*bin/* "$root$prefix"/lib/*.so.1 | grep -E "R(UN)?PATH"
}

# Checks the setting that keeps outgoing connections from the daemons' ports. As root, also checks
# that the kernel accepts it, in a separate network namespace.
reserves_ports()
{
	local file

	file=$(find "$root" -path '*/sysctl.d/60-pccl.conf')
	[ -s "$file" ] || { echo 'sysctl.d/60-pccl.conf is missing'; return 1; }
	grep -x 'net.ipv4.ip_local_reserved_ports = 48148-48151' "$file" || return 1
	[ "$(id -u)" -eq 0 ] && unshare --net true 2>/dev/null || return 0
	# shellcheck disable=SC2016 # for the inner shell
	unshare --net sh -c 'sed -n "s/^net.ipv4.ip_local_reserved_ports = //p" "$1" \
		>/proc/sys/net/ipv4/ip_local_reserved_ports &&
		grep -x 48148-48151 /proc/sys/net/ipv4/ip_local_reserved_ports' sh "$file"
}

# Builds and installs only the library, also as an archive, in a separate folder.
static_library()
{
	local source=$PWD

	mkdir "$work/static" && cd "$work/static" &&
		"$source/configure" -q CFLAGS=-O0 --enable-static --disable-systemd --prefix="$work/archive" &&
		make -s -j"$(nproc)" libpccl-shim/libpccl-shim.la &&
		make -s install-libLTLIBRARIES install-includeHEADERS install-pkgconfigDATA install-libpccl-link
}

# static_program PROGRAM PACKAGE: builds first.c without any shared library
static_program()
{
	# shellcheck disable=SC2046 # flags are words
	"${CC:-cc}" -static -o "$work/$1" examples/first.c $(PKG_CONFIG_LIBDIR=$work/archive/lib/pkgconfig \
		"${PKG_CONFIG:-pkg-config}" --static --cflags --libs "$2") || return 1
	! readelf -d "$work/$1" | grep NEEDED
}

flags()
{
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root$prefix/lib/pkgconfig \
		"${PKG_CONFIG:-pkg-config}" --cflags --libs "$1"
}

# Extracts the program in the README.
readme_program()
{
	# shellcheck disable=SC2016 # the marks of a code block
	sed -n '/^```c$/,/^```$/{/^```/d;p}' README.md
}

# compile PROGRAM.c PACKAGE
compile()
{
	# shellcheck disable=SC2046 # flags are words
	"${CC:-cc}" -Wall -Wextra -Werror -o "$work/$(basename "$1" .c)" "$1" $(flags "$2")
}

listens()
{
	(: <"/dev/tcp/127.0.0.1/$1")
}

ends_well()
{
	kill -TERM "$1" || return 1
	# shellcheck disable=SC2016 # for the inner shell
	timeout 10 bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.05; done' _ "$1" || return 1
	wait "$1"
}

adds_up()
{
	wait "$1" || { cat "$2"; return 1; }
	grep -x "$3" "$2" || { cat "$2"; return 1; }
}

check 'make install DESTDIR=' make -C "$build" install DESTDIR="$root"
check 'every file is installed' installed
if [ -f "$build/systemd/pccl-agent.service" ]; then # with systemd
	check 'the ports of the daemons are reserved' reserves_ports
fi
check 'no installed file contains a path of the build folder' no_build_paths
# pccl-bench and the programs below load the installed library
export LD_LIBRARY_PATH=$root$prefix/lib
for program in sbin/pcclagentd sbin/ccoip-masterd bin/pcclctl bin/pccl-bench; do
	check "${program##*/} --version" "$root$prefix/$program" --version
	check "${program##*/} --help" "$root$prefix/$program" --help
done

check 'pccl-bench finds the daemons that it starts' \
	timeout 60 "$root$prefix/bin/pccl-bench" allreduce -e 64K -f 64 -n 2 --check

port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
readme_program >"$work/readme.c"
check "the README's program compiles with libpccl-shim.pc" compile "$work/readme.c" libpccl-shim
check 'first.c compiles with pccl.pc' compile examples/first.c pccl
# Runs in a subshell, because it changes the folder.
check 'the library builds with --enable-static' eval '(static_library)'
check 'first.c links statically with libpccl-shim.pc' static_program static-one libpccl-shim
check 'first.c links statically with pccl.pc' static_program static-two pccl
"$root$prefix/sbin/ccoip-masterd" --listen "127.0.0.1:$port" --admin-socket "$work/master.admin" \
	2>"$work/master.log" &
master=$!
"$root$prefix/sbin/pcclagentd" --socket "$work/agent" \
	--p2p-port 0 --shared-state-port 0 --benchmark-port 0 2>"$work/agent.log" &
agent=$!
started=("$master" "$agent")
check 'the master listens' until_true 10 listens "$port"
check 'the agent listens' until_true 10 test -S "$work/agent"

export PCCL_AGENT_SOCKET=$work/agent
PCCL_MASTER=127.0.0.1:$port timeout 60 "$work/readme" >"$work/one" 2>&1 &
one=$!
timeout 60 "$work/first" "127.0.0.1:$port" >"$work/two" 2>&1 &
two=$!
check "the README's program" adds_up "$one" "$work/one" 'sum over 2 peers: 2 4 6 8'
check 'first.c' adds_up "$two" "$work/two" 'sum over 2 peers: 2 4 6 8'

for program in static-one static-two; do
	timeout 60 "$work/$program" "127.0.0.1:$port" >"$work/$program.log" 2>&1 &
	started+=($!)
done
check 'first.c, linked statically with libpccl-shim.pc' adds_up "${started[2]}" "$work/static-one.log" 'sum over 2 peers: 2 4 6 8'
check 'first.c, linked statically with pccl.pc' adds_up "${started[3]}" "$work/static-two.log" 'sum over 2 peers: 2 4 6 8'

check 'pcclctl asks the agent' \
	"$root$prefix/bin/pcclctl" --agent "$work/agent-admin.sock" status
check 'pcclctl asks the master' \
	"$root$prefix/bin/pcclctl" --json --master "$work/master.admin" peers
check 'the agent ends on SIGTERM' ends_well "$agent"
check 'the master ends on SIGTERM' ends_well "$master"
started=()
if [ "$failed" -ne 0 ]; then
	sed 's/^/    master: /' "$work/master.log"
	sed 's/^/    agent: /' "$work/agent.log"
fi

check 'make uninstall' make -C "$build" uninstall DESTDIR="$root"
left=$(find "$root" ! -type d)
check 'make uninstall leaves no file' test -z "$left"
exit "$failed"
