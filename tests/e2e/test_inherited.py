#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A private agent serves all processes of its user. It starts with the usual settings of its host,
whatever settings its trainer has. If the system does not allow a change, the agent's log says so."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import lib
from lib import check
from private import PrivateAgents, skip_beside_system_agent

NOBODY = 65534
USUAL_SLACK = 50000  # ns
USUAL_STACK = str(8 << 20)
IGNORED = {signal.SIGPIPE, signal.SIGXFSZ}
VARIABLES = {"NOTIFY_SOCKET": "@nobody", "JOURNAL_STREAM": "8:1", "LISTEN_FDS": "1",
             "PCCL_AGENT_LEASE_MS": "30000", "OMP_NUM_THREADS": "1"}
if not lib.sanitized():  # a sanitizer has to be loaded first
    VARIABLES["LD_PRELOAD"] = "libm.so.6"
# Settings that a trainer may change for itself.
HABITS = """
import ctypes, fcntl, os, resource, signal, sys, termios
prctl = ctypes.CDLL(None).prctl
prctl(29, 10000000)  # PR_SET_TIMERSLACK
prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.umask(0)
os.setsid()
os.openpty()
main, terminal = os.openpty()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.set_inheritable(main, True)
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1})
for what, soft in ((resource.RLIMIT_NOFILE, 200), (resource.RLIMIT_FSIZE, 1 << 20),
                   (resource.RLIMIT_MEMLOCK, 0)):
    resource.setrlimit(what, (soft, resource.getrlimit(what)[1]))
os.execvp(sys.argv[1], sys.argv[1:])
"""
USER = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"


class Trainers(lib.Loopback):
    """Hosts on which each peer is started through a command."""

    def __init__(self, way):
        super().__init__(1)
        self.way = way

    def command(self, _host, args):
        if args[0] != str(lib.PEER):
            return args
        return [sys.executable, "-c", HABITS, *self.way, *args]


class Agent:
    """Reads the settings of a private agent from /proc and from its log."""

    def __init__(self, pid, log):
        self.pid, self.log = pid, log

    def file(self, name):
        return pathlib.Path(f"/proc/{self.pid}/{name}").read_text("ascii")

    def status(self, key):
        return re.search(rf"^{key}:\s+(\S+)", self.file("status"), re.M)[1]

    def signals(self, key):
        mask = int(self.status(key), 16)
        return {n for n in range(1, 32) if mask >> (n - 1) & 1}

    def said(self, word):
        return [line for line in self.log.read_text("utf-8").splitlines() if word in line]

    def limits(self):
        """Returns soft and hard limits by name."""
        found = re.findall(r"^(Max [\w ]+?)  +(\S+) +(\S+)", self.file("limits"), re.M)
        return {what: (soft, hard) for what, soft, hard in found}

    def low_limits(self):
        """Returns the limits that are below the hard limit, except those for stacks and core dumps."""
        return [what for what, (soft, hard) in self.limits().items() if soft != hard
                and what not in ("Max stack size", "Max core file size")]


def check_shed(agent, peer):
    """Checks the settings that any user may change."""
    environment = agent.file("environ").split("\0")
    left = [v for v in environment if v.split("=")[0] in VARIABLES]
    check(not left, "the private agent has no environment variable of the trainer", left)
    check(not agent.low_limits(), "the private agent has the hard limits", agent.low_limits())
    check(agent.limits()["Max stack size"][0] == USUAL_STACK, "the private agent has the usual stack size",
          agent.limits()["Max stack size"])
    check(int(agent.file("timerslack_ns")) == USUAL_SLACK, "the private agent has exact timers",
          agent.file("timerslack_ns"))
    priority = subprocess.run(["ionice", "-p", str(agent.pid)], capture_output=True, text=True,
                              check=True).stdout
    check(priority.startswith("none"), "the private agent has the usual I/O priority", priority)
    check(agent.status("THP_enabled") == "1", "the private agent may have huge pages")
    check(agent.status("Umask") == "0077",
          "files of the private agent are accessible only to its user", agent.status("Umask"))
    check(not agent.signals("SigBlk"), "the private agent blocks no signal", agent.signals("SigBlk"))
    check(agent.signals("SigIgn") == IGNORED,
          "the private agent ignores only the signals that agents ignore", agent.signals("SigIgn"))
    check(os.readlink(f"/proc/{agent.pid}/cwd") == "/"
          and os.getsid(agent.pid) != os.getsid(peer.pid),
          "the private agent has its own session, in the root folder")
    terminal = agent.file("stat").rsplit(")", 1)[1].split()[4]
    check(terminal == "0", "the private agent has no terminal", terminal)
    ours = {os.readlink(f"/proc/{peer.pid}/fd/{fd}") for fd in (0, 1)}
    kept = {os.readlink(f"/proc/{agent.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{agent.pid}/fd")}
    check(not ours & kept, "the private agent has no descriptor of the trainer", ours & kept)


def check_scheduling(agent, nice, policy, oom, cpus):
    check(os.getpriority(os.PRIO_PROCESS, agent.pid) == nice, f"the private agent has nice value {nice}",
          os.getpriority(os.PRIO_PROCESS, agent.pid))
    check(os.sched_getscheduler(agent.pid) == policy, f"the private agent has scheduling policy {policy}",
          os.sched_getscheduler(agent.pid))
    check(int(agent.file("oom_score_adj")) == oom, f"the private agent has oom_score_adj {oom}",
          agent.file("oom_score_adj"))
    check(agent.status("Cpus_allowed_list") == cpus, f"the private agent may use the CPUs {cpus}",
          agent.status("Cpus_allowed_list"))


def check_said(agent, words):
    """Checks that one line of the log names the settings that could not be changed."""
    lines = agent.said("the trainer that started it")
    check(len(lines) == bool(words) and all(w in line for line in lines for w in words),
          f"the private agent logs what it could not change: {lines[0].split(': ', 1)[-1]}" if words and lines
          else "the private agent logs no setting that it could not change", lines)


def private_agent(way, *expected, said=(), cpus=None):
    """Starts a trainer through a command, and checks its private agent."""
    tried = subprocess.run([*way, "true"], stderr=subprocess.DEVNULL, check=False)
    possible = tried.returncode == 0
    print(f"# {'' if possible else 'not possible here: '}{' '.join(way)}")
    if not possible:
        return
    with lib.Lab(hosts=Trainers(way)) as lab, PrivateAgents(lab) as private:
        os.chmod(lab.folder, 0o711)
        runtime = lab.folder / "runtime"
        runtime.mkdir()
        if "setpriv" in way:
            os.chown(runtime, NOBODY, NOBODY)
        lab.start_master()
        peer = lab.start_peer(
            0, env={**private.env, **VARIABLES, "XDG_RUNTIME_DIR": str(runtime)})
        lib.form_run([peer])
        agent = Agent(private.running()[0], runtime / "pccl/agent.log")
        check_shed(agent, peer)
        everywhere = Agent(os.getpid(), None).status("Cpus_allowed_list")
        check_scheduling(agent, *expected, cpus or everywhere)
        check_said(agent, said)


def in_a_cgroup():
    """A cgroup of the trainer also limits the CPUs of the agent."""
    home = pathlib.Path("/sys/fs/cgroup/cpuset")
    folder = home / f"{lib.PREFIX}-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        print(f"# no cgroup with CPUs: {error}")
        return
    first = str(min(os.sched_getaffinity(0)))
    (folder / "cpuset.cpus").write_text(first, "ascii")
    (folder / "cpuset.mems").write_text((home / "cpuset.mems").read_text("ascii"), "ascii")
    private_agent(["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"],
                  0, os.SCHED_OTHER, 0, cpus=first,
                  said=(f"1 of {os.cpu_count()} CPUs",) if os.cpu_count() > 1 else ())
    lib.until(lambda: not (folder / "cgroup.procs").read_text("ascii"), "the cgroup is not empty")
    folder.rmdir()


def test():
    skip_beside_system_agent()
    if os.geteuid() != 0:
        raise lib.Skipped("needs root, to be several users")
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    small_stack = () if lib.sanitized() else (
        ("prlimit --stack=65536:", 0, os.SCHED_OTHER, 0, ()),)
    for way, *expected, said in (
            *small_stack,
            ("nice -n 7 chrt --idle 0 ionice -c 3 choom -n 300 --", 0, os.SCHED_OTHER, 0, ()),
            # protected by a privileged process
            ("choom -n -300 --", 0, os.SCHED_OTHER, -300, ()),
            (f"{USER} nice -n 10 chrt --batch 0 ionice -c 3", 10, os.SCHED_OTHER, 0,
             ("nice 10", "RLIMIT_NICE")),
            (f"{USER} nice -n 3 chrt --idle 0", 3, os.SCHED_IDLE, 0,
             ("nice 3", "SCHED_IDLE", "RLIMIT_NICE")),
            (f"prlimit --nice=0:25 {USER} nice -n 10 chrt --idle 0", 0, os.SCHED_OTHER, 0, ()),
            (f"prlimit --nice=0:15 {USER} nice -n 10 chrt --idle 0", 5, os.SCHED_OTHER, 0,
             ("nice 5",)),
            (f"{USER} choom -n 300 --", 0, os.SCHED_OTHER, 0, ()),
            (f"choom -n -100 -- choom -n 100 -- {USER} choom -n 300 --", 0, os.SCHED_OTHER, 100,
             ("oom_score_adj 100",))):
        private_agent(way.split(), *expected, said=said)
    in_a_cgroup()


lib.run(test, 120)
