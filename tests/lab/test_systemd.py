#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the daemons under a real systemd: an installed build on two hosts, started, used by several
users, stopped, killed and frozen."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import host as hosts
import lib
from host import wait_until
from lib import Failed, Skipped, check

AGENT, MASTER = "pccl-agent.service", "ccoip-masterd.service"
UNITS = (AGENT, "pccl-agent.socket", "pccl-agent-admin.socket", MASTER)
PORT = 48148
NOBODY = 65534
OTHER = 4242  # a user without name and groups
WATCHDOG = 2  # seconds
FROZEN = 15  # seconds after which a frozen daemon must have been replaced
LIMIT = 120


class Lab:
    """The common parts of all scenarios: the build and its paths."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.ctl = build["bindir"] + "/pcclctl"
        self.admin = {AGENT: build["rundir"] + "/agent-admin.sock",
                      MASTER: build["rundir"] + "/master-admin.sock"}
        # A system call that a unit forbids kills the process, so that it cannot go unnoticed.
        # Sanitizers make some of these calls, and look for leaks by tracing.
        self.strict = (["Environment=ASAN_OPTIONS=detect_leaks=0"] if build.sanitized
                       else ["SystemCallErrorNumber=kill"])

    def install(self):
        root = self.folder / "installed"
        self.build.install(root)
        if not (root / self.build["systemdsystemunitdir"].lstrip("/") / AGENT).exists():
            raise Skipped("a build without systemd")
        (root / "opt").mkdir()
        shutil.copy(lib.BUILD / "tests/lab/first", root / "opt/first")
        return root

    def peer(self, host, master="127.0.0.1", user=None, env=None):
        return host.spawn("/opt/first", f"{master}:{PORT}", user=user, env={
            "LD_LIBRARY_PATH": self.build["libdir"], "PCCL_AGENT_AUTOSPAWN": "0",
            **(env or {})})


def finish(peer, seconds=20):
    """Waits for a peer. Returns its exit status and output."""
    try:
        said, _ = peer.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        peer.kill()
        raise Failed("a peer does not finish") from None
    return peer.returncode, said.strip()


def check_sums(peers, text):
    done = [finish(peer) for peer in peers]
    check(done == [(0, f"sum over {len(peers)} peers: 2 4 6 8")] * len(peers), text, done)


def service(host, unit, *names):
    return [host.show(unit, name) for name in names]


def main_pid(host, unit):
    return int(host.show(unit, "MainPID"))


def kill(host, unit, number):
    host.run("kill", f"-{int(number)}", main_pid(host, unit))


def await_restart(host, unit, count, seconds=10):
    wait_until(lambda: service(host, unit, "NRestarts", "ActiveState") == [str(count), "active"],
               f"restart {count} of {unit}", seconds)


# -------------------------------------------------------------------------- scenarios


def installed(_lab, host):
    failed = host.run("systemctl", "--failed", "--plain", "--no-legend").stdout.strip()
    check(not failed, "no unit fails when the host starts", failed)
    done = host.run("systemd-analyze", "verify", "--man=no", "--recursive-errors=one", *UNITS,
                    check=False)
    check(done.returncode == 0 and not done.stderr.strip(),
          "systemd-analyze verify accepts the units", done.stderr)
    done = host.run("getent", "passwd", "pccl-agent", "pccl-master", check=False)
    check(done.returncode == 0, "systemd-sysusers has created the users")


def started(lab, host):
    host.override(MASTER, "[Service]", *lab.strict)
    if lab.build.sanitized:
        host.override(AGENT, "[Service]", *lab.strict)
    # Keeps the unit loaded, so that systemd does not forget how the master ended.
    host.override("lab.target", "[Unit]", f"After={MASTER}")
    units = (MASTER, "pccl-agent.socket", "pccl-agent-admin.socket")
    host.run("systemctl", "enable", "--now", *units)
    said = host.run("systemctl", "is-enabled", *units, check=False).stdout.split()
    check(said == ["enabled"] * len(units), "the units can be enabled", said)
    check(service(host, MASTER, "Type", "ActiveState", "SubState") ==
          ["notify", "active", "running"], "the master reports to systemd that it is ready")
    check(host.show(AGENT, "ActiveState") == "inactive", "no agent runs before there is a peer")


def socket_activation(lab, host):
    peers = [lab.peer(host), lab.peer(host, user=NOBODY)]
    check_sums(peers, "two peers, one of them of an unprivileged user, start the agent and reduce")
    check(service(host, AGENT, "Type", "ActiveState", "NRestarts") == ["notify", "active", "0"],
          "the agent reports to systemd that it is ready")
    user = host.run("ps", "-o", "user:20=", "-p", main_pid(host, AGENT)).stdout.strip()
    check(user == "pccl-agent", "the agent runs as its own user", user)
    texts = [host.show(unit, "StatusText") for unit in (AGENT, MASTER)]
    check(texts[0].endswith(" operations") and texts[1].endswith(" registered"),
          "both daemons report their status to systemd", texts)
    said = host.run("systemctl", "status", "--no-pager", AGENT, MASTER).stdout
    check(all(f'Status: "{text}"' in said for text in texts),
          "systemctl status shows the status of both daemons", said)


def wrong_configuration(lab, host):
    """A typing error in the configuration, while a peer waits at the socket. The start limit allows
    only two starts within four seconds."""
    conf = lab.build["sysconfdir"] + "/pccl/pccl-agent.conf"
    sanitized = ["[Service]", *lab.strict] if lab.build.sanitized else []
    host.override(AGENT, "[Unit]", "StartLimitIntervalSec=4", "StartLimitBurst=2", *sanitized)
    host.run("sh", "-c", f"cp {conf} /run/right && printf '[agent]\\np2p_prot = 5\\n' >>{conf}")
    host.run("systemctl", "stop", AGENT)
    peer = lab.peer(host)
    wait_until(lambda: host.journal(AGENT).count("status=78/CONFIG") >= 3
               or host.show("pccl-agent.socket", "ActiveState") == "failed", "three starts", 30)
    check(host.show("pccl-agent.socket", "ActiveState") == "active",
          "a typing error in the configuration does not take the socket down")
    finish(peer)
    host.run("cp", "/run/right", conf)
    check_sums([lab.peer(host), lab.peer(host)],
               "peers are served after the agent's configuration is corrected")
    check("there is no setting" in host.journal(AGENT), "the journal names the wrong setting of the agent")


def wrong_configuration_of_master(lab, host):
    conf = lab.build["sysconfdir"] + "/pccl/ccoip-masterd.conf"
    host.run("sh", "-c", f"cp {conf} /run/right && printf '[master]\nlog_levle = info\n' >>{conf}")
    host.run("systemctl", "restart", MASTER, check=False)
    wait_until(lambda: host.show(MASTER, "ActiveState") == "failed", "the end of the master")
    check(service(host, MASTER, "ExecMainStatus", "NRestarts") == ["78", "0"],
          "a typing error in the master's configuration ends the master, and systemd does not start it again",
          service(host, MASTER, "ExecMainStatus", "NRestarts"))
    check("log_levle" in host.journal(MASTER), "the journal names the wrong setting of the master")
    host.run("cp", "/run/right", conf)
    host.run("systemctl", "restart", MASTER)
    check_sums([lab.peer(host), lab.peer(host)],
               "peers are served after the master's configuration is corrected")


def admin_access(lab, host):
    group = host.run("getent", "group", "pccl").stdout.split(":")[2]
    for unit, option in ((AGENT, "--agent"), (MASTER, "--master")):
        daemon = "the agent" if unit == AGENT else "the master"
        for name, who, allowed in (("root", {}, True),
                                   ("the group", {"user": OTHER, "group": group}, True),
                                   ("others", {"user": OTHER}, False)):
            done = host.run(lab.ctl, option, lab.admin[unit], "status", check=False, **who)
            if allowed:
                check(done.returncode == 0 and done.stdout, f"{name} may ask {daemon}",
                      done.stderr)
            else:
                check(done.returncode == os.EX_NOPERM and "may not ask" in done.stderr,
                      f"{name} may not ask {daemon}", done)
    done = host.run(lab.ctl, "status", check=False)
    check(done.returncode == 0, "pcclctl finds the agent of the host", done.stderr)


def two_hosts(lab, one, two, address):
    two.override(AGENT, "[Service]", f"WatchdogSec={WATCHDOG}s", *lab.strict)
    two.run("systemctl", "start", AGENT)
    check(service(two, AGENT, "ActiveState", "SubState") == ["active", "running"],
          "systemctl start waits for the agent")
    check(two.run(lab.ctl, "status", check=False).returncode == 0,
          "an agent that was started by name has its admin socket")
    check_sums([lab.peer(one, address), lab.peer(two, address, NOBODY)],
               "peers of two hosts reduce over the network")


def watchdog_fed(host):
    """Checks that the agent sends signs of life. Without them it would be killed after WatchdogSec."""
    def stamp():
        return int(host.show(AGENT, "WatchdogTimestampMonotonic"))

    begin, pid = stamp(), main_pid(host, AGENT)
    wait_until(lambda: stamp() > begin + 2.5 * WATCHDOG * 1e6, "two signs of life", 4 * WATCHDOG)
    check(main_pid(host, AGENT) == pid and host.show(AGENT, "NRestarts") == "0",
          f"the agent outlives twice its WatchdogSec of {WATCHDOG} s")


def watchdog_bites(lab, host, other, address):
    kill(host, AGENT, signal.SIGSTOP)
    await_restart(host, AGENT, 1, FROZEN)
    check("Watchdog timeout" in host.journal(AGENT), "a frozen agent is replaced")
    check_sums([lab.peer(other, address), lab.peer(host, address)],
               "peers reduce with the new agent")


def killed(lab, host):
    kill(host, MASTER, signal.SIGKILL)
    await_restart(host, MASTER, 1)
    check(host.run(lab.ctl, "--master", lab.admin[MASTER], "status", check=False).returncode == 0,
          "a killed master is replaced, and its successor has the admin socket")
    kill(host, AGENT, signal.SIGKILL)
    peers = [lab.peer(host), lab.peer(host, user=NOBODY)]
    await_restart(host, AGENT, 1)
    check_sums(peers, "peers that came while the agent was dead reduce with its successor")


def stopped(lab, host):
    """A peer waits for a second peer. When the agent stops, the peer waits for the next agent until
    the lease ends. The sockets are stopped, too, because they would start the agent again."""
    peer = lab.peer(host, env={"PCCL_AGENT_LEASE_MS": "500"})
    wait_until(lambda: host.run(lab.ctl, "peers").stdout.count("\n") > 1, "a peer")
    host.run("systemctl", "stop", "pccl-agent.socket", "pccl-agent-admin.socket", AGENT)
    code, said = finish(peer)
    check(code == 1 and said, "a peer gets an error when the agent stops", (code, said))
    host.run("systemctl", "stop", MASTER)
    for unit in (AGENT, MASTER):
        state = service(host, unit, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus")
        check(state == ["inactive", "success", "1", "0"], f"{unit} stops with status 0", state)
    check(host.run("test", "-e", lab.admin[MASTER], check=False).returncode != 0,
          "the master removes its admin socket when it stops")


def journals(two_of_them):
    for host in two_of_them:
        lines = "".join(host.journal(unit) for unit in (AGENT, MASTER)).splitlines()
        bad = [line for line in lines if any(word in line.lower() for word in (
            "denied", "not permitted", "status=31/sys", "sanitizer"))]
        check(not bad, f"no daemon on {host.name} needed anything that hardening forbids", bad)


# -------------------------------------------------------------------------------------


def scenarios(lab, one, two):
    address, _ = hosts.link(one, two)
    installed(lab, one)
    started(lab, one)
    socket_activation(lab, one)
    admin_access(lab, one)
    two_hosts(lab, one, two, address)
    watchdog_fed(two)
    watchdog_bites(lab, two, one, address)
    killed(lab, one)
    wrong_configuration(lab, one)
    wrong_configuration_of_master(lab, one)
    stopped(lab, one)
    journals((one, two))


def test():
    build = hosts.Build()
    hosts.require(build)
    os.umask(0o022)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{hosts.PREFIX}-{os.getpid()}-"))
    try:
        hosts.remove_left_over(folder)
        lab = Lab(build, folder)
        root = lab.install()
        with hosts.Host("one", folder, root) as one, hosts.Host("two", folder, root) as two:
            failed = True
            try:
                scenarios(lab, one, two)
                failed = lib.results.failed
            finally:
                if failed:
                    for host in (one, two):
                        print(f"--- {host.name}", host.journal()[-6000:], sep="\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


lib.run(test, LIMIT)
