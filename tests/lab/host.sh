#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The parts of host.py that need their own mount namespace.
set -eu
umask 022

fail()
{
	echo "host.sh: $1" >&2
	exit 1
}

# Mounts the control groups only in this mount namespace, so it does not matter where the machine
# mounts them.
mount_cgroups()
{
	mkdir -p "$1/cgroup"
	mount -t cgroup2 cgroup2 "$1/cgroup" || fail "no cgroup2"
}

boot()
{
	local folder=$1 cgroup=$2

	mount_cgroups "$folder"
	mkdir -p "$folder/cgroup/$cgroup"
	echo $$ >"$folder/cgroup/$cgroup/cgroup.procs"
	umount "$folder/cgroup"
	exec unshare --cgroup --mount --pid --net --uts --ipc --propagation private --fork \
		--kill-child=SIGKILL bash "$0" init "$@"
}

# ---- PID 1 of the host

mount_root()
{
	mount -t tmpfs -o mode=755 pccllab "$folder/upper"
	mkdir "$folder/upper/files" "$folder/upper/work" "$root"
	cp -a --no-preserve=ownership "$installed/." "$folder/upper/files/"
	chmod 755 "$folder/upper/files"
	mount -t overlay -o "lowerdir=/,upperdir=$folder/upper/files,workdir=$folder/upper/work" \
		pccllab "$root" || fail "no overlay"
}

mount_kernel_interfaces()
{
	mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
	# The kernel belongs to the machine. A host may set only its own network.
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro,nosuid,nodev,noexec "$root/proc/sys"
	mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
	mount -o remount,bind,rw,nosuid,nodev,noexec "$root/proc/sys/net"
	mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
	mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
}

make_devices()
{
	local device name major minor

	mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
	mkdir "$root/dev/pts" "$root/dev/shm"
	for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
		IFS=: read -r name major minor <<<"$device"
		mknod -m 666 "$root/dev/$name" c "$major" "$minor"
	done
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s fd/0 "$root/dev/stdin"
	ln -s fd/1 "$root/dev/stdout"
	ln -s fd/2 "$root/dev/stderr"
	mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
}

# Masks the machine's own services, and services that would change its kernel or need a device.
configure()
{
	local unit

	mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
	mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
	mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/var/tmp"
	mount -t tmpfs -o mode=755 tmpfs "$root/etc/systemd/system"
	for unit in dev-hugepages.mount modprobe@.service proc-sys-fs-binfmt_misc.automount \
		sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount \
		sys-kernel-tracing.mount systemd-binfmt.service systemd-firstboot.service \
		systemd-initctl.socket systemd-journal-flush.service \
		systemd-journald-audit.socket systemd-modules-load.service \
		systemd-pcrphase-sysinit.service systemd-pcrphase.service \
		systemd-random-seed.service systemd-remount-fs.service systemd-sysctl.service \
		systemd-timesyncd.service systemd-tmpfiles-clean.timer systemd-udevd.service \
		systemd-update-utmp.service; do
		ln -s /dev/null "$root/etc/systemd/system/$unit"
	done
	printf '%s\n' '[Unit]' 'Requires=sysinit.target dbus.socket' \
		'After=sysinit.target dbus.socket' 'AllowIsolate=yes' \
		>"$root/etc/systemd/system/lab.target"
	mkdir -p "$root/run/systemd/journald.conf.d" "$root/run/systemd/system.conf.d"
	printf '%s\n' '[Journal]' Storage=volatile Audit=no ReadKMsg=no RuntimeMaxUse=32M \
		RateLimitIntervalSec=0 >"$root/run/systemd/journald.conf.d/lab.conf"
	printf '%s\n' '[Manager]' DefaultLimitCORE=0 \
		>"$root/run/systemd/system.conf.d/lab.conf"
	rm -f "$root/etc/machine-id"
	tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
	echo "$name" >"$root/etc/hostname"
	: >"$root/etc/fstab"
}

init()
{
	folder=$1 installed=$3 name=$4 root=$1/upper/root

	mkdir -p "$folder/upper"
	mount_root
	mount_kernel_interfaces
	make_devices
	configure
	ip link set lo up
	cd "$root"
	mkdir -p old
	pivot_root . old
	umount -l /old
	rmdir /old
	# A real machine has shared mounts after its boot. Without shared mounts, services get no
	# credentials.
	mount --make-rshared /
	exec env -i container=pccllab PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
		/lib/systemd/systemd --system --unit=lab.target --log-target=journal \
		--show-status=no </dev/null >/dev/null 2>&1
}

# ---- afterwards

list()
{
	mount_cgroups "$1"
	find "$1/cgroup" -mindepth 1 -maxdepth 1 -type d -name 'pccllab-*' -printf '%f\n'
}

# The group may still contain processes that were just killed.
remove()
{
	local end=$((SECONDS + 5))

	mount_cgroups "$1"
	while [ -d "$1/cgroup/$2" ] && [ "$SECONDS" -lt "$end" ]; do
		find "$1/cgroup/$2" -depth -type d -exec rmdir '{}' ';' 2>/dev/null || sleep 0.02
	done
}

leave()
{
	mount_cgroups "$1"
	echo "$3" >"$1/cgroup/cgroup.procs"
}

command=$1
shift
"$command" "$@"
