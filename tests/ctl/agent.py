#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the real pcclagentd with the real pcclctl: master addresses, and processes that are
stopped."""
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from programs import BUILD, LIMIT, MASTERD, PCCLCTL, Daemon, Master, main, run  # noqa: E402

TRAINER = os.path.join(BUILD, "examples/first")
NOBODY = 65534


class Agent(Daemon):
    program = os.path.join(BUILD, "pcclagentd/pcclagentd")

    def __init__(self, folder, *arguments):
        self.socket = os.path.join(folder, "agent.sock")
        self.admin = os.path.join(folder, "agent-admin.sock")
        super().__init__(folder, "--socket", self.socket, "--p2p-port", "0", "--bind",
                         "127.0.0.1", "--shared-state-port", "0", "--benchmark-port", "0",
                         *arguments)
        self.await_line("ports:")
        self.await_admin()

    def await_admin(self):
        end = time.monotonic() + LIMIT
        while self.ctl("status").returncode != 0:
            assert time.monotonic() < end and self.process.poll() is None

    def ctl(self, *arguments, **more):
        return run(PCCLCTL, "--agent", self.admin, *arguments, **more)

    def rows(self, command, table):
        r = self.ctl("--json", *command.split())
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)[table]

    def await_row(self, command, table, wanted):
        """Returns the first row for which wanted(row) is true. Asks pcclctl until there is one."""
        end = time.monotonic() + LIMIT
        while True:
            rows = self.rows(command, table)
            found = [row for row in rows if wanted(row)]
            if found:
                return found[0]
            assert time.monotonic() < end, rows


class Trainer:
    def __init__(self, agent, master):
        self.process = subprocess.Popen(
            [TRAINER, master], env=dict(os.environ, PCCL_AGENT_SOCKET=agent.socket),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self.process

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate()


def test_ports_are_shown(folder):
    """The log and the status show the ports on which the agent listens, whatever ports it
    advertises."""
    told = [f"--advertise-port-{what}={50149 + k}" for k, what in
            enumerate(("shared-state", "p2p", "benchmark"))]
    with Agent(folder, *told) as a:
        row, = a.rows("status", "status")
        listens = [row[name] for name in ("p2p_port", "shared_state_port", "benchmark_port")]
        assert len(set(listens)) == 3 and not set(listens) & {50149, 50150, 50151}, row
        line = "ports: p2p {}, shared state {}, benchmark {}".format(*listens)
        assert any(line in said for said in a.lines), a.lines


def test_set_master_shows_the_runs_concerned(folder):
    with Master(folder, "--listen", "127.0.0.1:0") as m, Agent(folder) as a:
        old, = m.addresses
        assert a.rows("status", "runs") == []
        assert a.ctl("agent", "set-master", old, "127.0.0.1:1").stdout == "no runs\n"
        with Trainer(a, old):
            a.await_row("peers", "peers", lambda p: p["state"] == "connected")
            row = a.await_row("status", "runs", lambda r: r["state"] == "up")
            assert row["master"] == row["at"] == old and row["peers"] == 1 and row["id"]
            row, = a.rows(f"agent set-master {old} 127.0.0.1:2", "runs")
            assert row["master"] == old and row["state"] == "up"
            assert a.rows("agent set-master 127.0.0.1:9 127.0.0.1:2", "runs") == []
            row, = a.rows(f"agent set-master --run {row['run']} none", "runs")
            r = a.ctl("agent", "set-master", "--run", "4711", "none")
            assert r.returncode == 69 and "no such run" in r.stderr
            r = a.ctl("agent", "set-master", old, "[fe80::1]:7")
            assert r.returncode == 69 and "link-local addresses (fe80::/10) cannot" in r.stderr, r
        assert a.end() == 0


def take_over(folder, restart):
    """A process that is alone in its run continues with the next master, and another process can
    join it there."""
    with Master(folder, "--listen", "127.0.0.1:0") as m, Agent(folder) as a:
        old, = m.addresses
        with Trainer(a, old) as first:
            a.await_row("status", "runs", lambda r: r["state"] == "up")
            a.await_row("peers", "peers", lambda p: p["state"] == "connected")
            m.process.kill()
            m.wait()
            a.await_row("status", "runs", lambda r: r["state"] == "orphan")
            with restart(a, old) as other:
                row = a.await_row("status", "runs", lambda r: r["state"] == "up")
                assert row["at"] == other.addresses[0] and row["term"] == 2, row
                with Trainer(a, old) as second:
                    for t in (first, second):
                        out, _ = t.communicate(timeout=LIMIT)
                        assert out.startswith("sum over 2 peers: 2 4 6 8"), out
                assert other.end() == 0
        assert a.end() == 0


def test_run_continues_with_a_master_that_comes_back(folder):
    take_over(folder, lambda a, old: Master(folder, "--listen", old))


def test_run_continues_with_a_master_at_another_address(folder):
    def elsewhere(agent, old):
        m = Master(folder, "--listen", "127.0.0.1:0")
        row, = agent.rows(f"agent set-master {old} {m.addresses[0]}", "runs")
        assert row["master"] == old
        return m

    take_over(folder, elsewhere)


def test_set_master_now_moves_the_run_at_once(folder):
    def leave(agent, old):
        row, = agent.rows(f"agent set-master --now {old} {other.addresses[0]}", "runs")
        assert row["state"] != "up", row

    with Master(folder, "--listen", "127.0.0.1:0") as m, Agent(folder) as a, \
            Master(folder, "--listen", "127.0.0.1:0") as other, Trainer(a, m.addresses[0]):
        a.await_row("peers", "peers", lambda p: p["state"] == "connected")
        leave(a, m.addresses[0])
        row = a.await_row("status", "runs", lambda r: r["state"] == "up")
        assert row["at"] == other.addresses[0]
        row, = a.rows(f"agent set-master {other.addresses[0]} 127.0.0.1:3", "runs")
        assert row["master"] == m.addresses[0], "the run is also known by its current address"


def test_other_users_may_not_set_masters(folder):
    if os.geteuid() != 0:
        return
    with Agent(folder) as a:
        os.chmod(folder, 0o755)
        os.chmod(a.admin, 0o666)
        r = a.ctl("agent", "set-master", "127.0.0.1:1", "127.0.0.1:2", user=NOBODY)
        assert r.returncode == 77 and "root" in r.stderr, r
        r = a.ctl("status", user=NOBODY)
        assert r.returncode == 0, r
        assert a.end() == 0


def test_sighup_reads_the_masters_again(folder):
    path = os.path.join(folder, "a.conf")

    def write(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    write("[masters]\n127.0.0.1:1 = 127.0.0.1:2\n")
    with Agent(folder, "--config", path) as a:
        write("[masters]\n127.0.0.1:1 = 127.0.0.1:3\n")
        a.process.send_signal(signal.SIGHUP)
        a.await_line("read again")
        write("[masters]\n127.0.0.1:1 = nonsense\n")
        a.process.send_signal(signal.SIGHUP)
        a.await_line("stay unchanged")
        assert a.end() == 0
    assert run(Agent.program, "--config", path).returncode == 78
    with Agent(folder) as a:
        a.process.send_signal(signal.SIGHUP)
        a.await_line("no configuration file")
        assert a.end() == 0


def test_a_file_with_a_typing_error_is_not_read_again(folder):
    """After an error in any section, the agent keeps its masters, even if section [masters] is
    right."""
    path = os.path.join(folder, "typing.conf")

    def write(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    with Master(folder, "--listen", "127.0.0.1:0") as m:
        write(f"[masters]\n127.0.0.1:1 = {m.addresses[0]}\n")
        with Agent(folder, "--config", path) as a:
            for text, line, key in (("[agent]\np2p_prot = 5\n", 2, "p2p_prot"),
                                    ("[agent]\n\np2p_port = here\n", 3, "p2p_port"),
                                    ("[agnet]\np2p_port = 5\n", 2, "agnet")):
                write(f"{text}[masters]\n127.0.0.1:1 = 127.0.0.1:2\n")
                a.process.send_signal(signal.SIGHUP)
                a.await_line(f"{path}, line {line}: .*{key}")
                a.await_line("stay unchanged")
                r = run(Agent.program, "--config", path)
                assert r.returncode == 78 and key in r.stderr, r
            with Trainer(a, "127.0.0.1:1"):
                row = a.await_row("status", "runs", lambda r: r["state"] == "up")
                assert row["at"] == m.addresses[0], row
            assert a.end() == 0


def test_stopped_process_is_shown(folder):
    with Master(folder, "--listen", "127.0.0.1:0") as m, Agent(folder) as a, \
            Trainer(a, m.addresses[0]) as trainer:
        a.await_row("peers", "peers", lambda p: p["state"] == "connected")
        trainer.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        row = a.await_row("peers", "peers", lambda p: p["stopped"] > 0)
        assert time.monotonic() - start < 1 and row["pid"] == trainer.pid
        trainer.send_signal(signal.SIGCONT)
        a.await_row("peers", "peers", lambda p: p["stopped"] == 0)


def test_stopped_process_is_lost(folder):
    with Master(folder, "--listen", "127.0.0.1:0") as m, \
            Agent(folder, "--stopped-timeout-ms", "600") as a, \
            Trainer(a, m.addresses[0]) as trainer:
        a.await_row("peers", "peers", lambda p: p["state"] == "connected")
        trainer.send_signal(signal.SIGSTOP)
        a.await_row("status", "status", lambda s: s["sessions"] == 0)
        trainer.send_signal(signal.SIGCONT)


def test_closed_standard_descriptors_become_no_sockets(folder):
    """A daemon that starts without standard descriptors opens /dev/null in their place. Otherwise
    it would log into one of its connections."""
    for program, option, more in (
            (Agent.program, "--agent", ["--socket", os.path.join(folder, "closed.sock"), "--p2p-port",
                                        "0", "--shared-state-port", "0", "--benchmark-port", "0"]),
            (MASTERD, "--master", ["--listen", "127.0.0.1:0"])):
        admin = os.path.join(folder, "closed-admin.sock")
        process = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", program,
                                    "--admin-socket", admin, *more])
        try:
            end = time.monotonic() + LIMIT
            while run(PCCLCTL, option, admin, "status").returncode != 0:
                assert time.monotonic() < end and process.poll() is None
            assert {os.readlink(f"/proc/{process.pid}/fd/{n}") for n in range(3)} == {"/dev/null"}
        finally:
            process.terminate()
            assert process.wait(LIMIT) == 0


if __name__ == "__main__":
    sys.exit(main(globals()))
