# SPDX-License-Identifier: MIT
"""Hosts that run a real systemd as PID 1 of their own namespaces.

A host sees the file system of this machine through an overlay, with an installed build on top. All
that it writes is gone when it ends. It ends with the test, however the test ends. Hosts share
nothing but the kernel, and the cable that link() connects.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

from lib import BUILD, Failed, Skipped, _die_with_parent

SCRIPT = pathlib.Path(__file__).with_name("host.sh")
PREFIX = "pccllab"
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "systemctl", "systemd-sysusers", "dbus-daemon")
BOOT = 20  # seconds


def wait_until(good, what, seconds=10):
    """Polls until good() is true, because no host reports changes of its state."""
    deadline = time.monotonic() + seconds
    while not good():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.02)


# -------------------------------------------------------------------------- the build


class Build:
    """The variables that configure has set."""

    def __init__(self):
        text = (BUILD / "Makefile").read_text("utf-8")
        self.values = dict(re.findall(r"^(\w+) = (.*)$", text, re.M))

    def __getitem__(self, name):
        """Returns a variable of the Makefile, expanded."""
        return re.sub(r"\$[{(](\w+)[)}]", lambda m: self[m[1]], self.values[name])

    @property
    def sanitized(self):
        return bool(self["SANITIZE_CFLAGS"].strip())

    def install(self, to):
        """Installs the build into a folder that is to be laid over /. Returns this folder."""
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("MAKE") and k not in ("MFLAGS", "DESTDIR")}
        done = subprocess.run(["make", "-s", "-C", BUILD, "install", f"DESTDIR={to}"], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode:
            raise Failed("make install: " + done.stderr.strip()[-500:])
        return to


# ------------------------------------------------------------------------------ hosts


def _namespace_script(*args):
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", SCRIPT,
                           *(str(a) for a in args)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=20, check=False)


class Host:
    """One host, to be used as a context."""

    def __init__(self, name, folder, installed):
        self.name, self.folder, self.installed = name, folder / name, installed
        self.cgroup = f"{PREFIX}-{os.getpid()}-{name}"
        self.outer = self.pid = None

    def __enter__(self):
        self.folder.mkdir()
        try:
            self._boot()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_error):
        self._end()

    def _boot(self):
        log = self.folder / "boot.log"
        with open(log, "wb") as out:
            self.outer = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "bash", SCRIPT, "boot",
                 self.folder, self.cgroup, self.installed, self.name],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=_die_with_parent)
        deadline = time.monotonic() + BOOT
        while not self._has_systemd():
            if self.outer.poll() is not None or time.monotonic() > deadline:
                said = " / ".join(log.read_text("utf-8", "replace").splitlines()[-2:])
                raise Skipped(f"systemd cannot be started in namespaces here: {said}")
            time.sleep(0.01)
        # The outer process leaves the control group, because the host could not see this process in
        # the group's list of processes.
        _namespace_script("leave", self.folder, self.cgroup, self.outer.pid)
        state = "unknown"
        while state not in ("running", "degraded"):
            if time.monotonic() > deadline:
                raise Skipped(f"systemd does not finish its start-up here: {state}")
            time.sleep(0.02)
            state = self.run("systemctl", "is-system-running", check=False).stdout.strip()

    def _has_systemd(self):
        outer = self.outer.pid
        try:
            pids = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text("ascii").split()
            comm = pathlib.Path(f"/proc/{pids[0]}/comm").read_text("ascii") if pids else ""
        except OSError:
            return False
        self.pid = int(pids[0]) if comm == "systemd\n" else None
        return self.pid is not None

    def _end(self):
        """Kills the first process. The kernel then kills all processes of its PID namespace."""
        if self.outer:
            self.outer.kill()
            self.outer.wait()
            self.outer = None
        deadline = time.monotonic() + 5
        while self.pid and os.path.exists(f"/proc/{self.pid}") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.pid = None
        _namespace_script("remove", self.folder, self.cgroup)

    # ---- commands

    def command(self, args, user=None, group=None, env=None):
        """Returns the command for args as this user and group (numbers, default root), with only
        the environment `env`."""
        words = ["nsenter", "-t", str(self.pid), "-a", "env", "-i",
                 "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                 *(f"{k}={v}" for k, v in (env or {}).items())]
        if user is not None:
            words += ["setpriv", f"--reuid={user}", f"--regid={user}",
                      f"--groups={group}" if group is not None else "--clear-groups"]
        return words + [str(a) for a in args]

    def run(self, *args, check=True, timeout=20, **who):
        done = subprocess.run(self.command(args, **who), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode:
            raise Failed(f"{self.name}: {' '.join(str(a) for a in args)}: status "
                         f"{done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        return done

    def spawn(self, *args, **who):
        return subprocess.Popen(self.command(args, **who), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                preexec_fn=_die_with_parent)

    def show(self, unit, name):
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()

    def override(self, unit, *text):
        """Adds a drop-in for a unit."""
        folder = f"/run/systemd/system/{unit}.d"
        self.run("sh", "-c", f"mkdir -p {folder} && printf '%s\\n' \"$@\" >{folder}/lab.conf && "
                 "systemctl daemon-reload", "sh", *text)

    def journal(self, unit=None):
        args = ["-u", unit] if unit else []
        return self.run("journalctl", "-b", "--no-pager", "-o", "short-monotonic", *args,
                        check=False).stdout


def link(one, two, net="192.0.2"):
    """Connects two hosts with a cable: `one` gets address .1, `two` gets .2. Returns both
    addresses."""
    one.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "peer0")
    # The PID is the one that the machine sees, so the command runs on the machine's side.
    subprocess.run(["nsenter", "-t", str(one.pid), "-n", "ip", "link", "set", "peer0", "netns",
                    str(two.pid)], check=True, timeout=20)
    two.run("ip", "link", "set", "peer0", "name", "eth0")
    for number, host in enumerate((one, two), 1):
        host.run("ip", "addr", "add", f"{net}.{number}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
    return f"{net}.1", f"{net}.2"


def require(build):
    """Raises Skipped if such hosts are not possible here."""
    if build["prefix"] not in ("/usr", "/usr/local"):
        raise Skipped(f"systemd does not look below the prefix {build['prefix']}")
    if os.geteuid() != 0:
        raise Skipped("only root can start systemd in namespaces")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing or not os.path.exists("/lib/systemd/systemd"):
        raise Skipped(f"not installed: {' '.join(missing) or 'systemd'}")
    done = subprocess.run(["unshare", "-C", "-m", "-p", "-n", "-u", "-i", "--fork", "true"],
                          capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise Skipped(f"no namespaces: {done.stderr.strip()}")


def _is_left_over(name):
    owner = re.match(PREFIX + r"-(\d+)-", name)
    return owner and not os.path.exists(f"/proc/{owner[1]}")


def remove_left_over(folder):
    """Removes the control groups of earlier runs that were killed before they could clean up. Also
    removes the folders of those runs, which lie next to this folder."""
    for name in filter(_is_left_over, _namespace_script("list", folder).stdout.split()):
        _namespace_script("remove", folder, name)
    for other in folder.parent.iterdir():
        if _is_left_over(other.name):
            shutil.rmtree(other, ignore_errors=True)
