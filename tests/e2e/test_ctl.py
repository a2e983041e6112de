#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pcclctl tells who holds up an operation: a stopped process, on this host and on another one,
before it takes part and amid a transfer; one that does not call; a stopped agent, and one that is
gone."""

import json
import re
import signal
import time

import lib
from lib import ask, check, ctl

OPERATION = "type=f32 op=sum count=1000 tag=77"
SINCE = 3600 * 10**9  # ns; nothing here is so old


def until_ops(option, daemon, good):
    """The operations in flight, as soon as they are as wanted, or as they are in the end."""
    deadline = time.monotonic() + lib.WAIT
    while True:
        rows = ask(option, daemon, "ops")
        if good(rows) or time.monotonic() > deadline:
            return rows


def until_logged(daemon, pattern):
    """Whether such a line is in the log, at last."""
    deadline = time.monotonic() + lib.WAIT
    while time.monotonic() < deadline:
        if any(re.search(pattern, line) for line in daemon.log_lines()):
            return True
        time.sleep(0.01)
    return False


def names_only(rows, who):
    """Whether there is one operation, which waits for who."""
    return len(rows) == 1 and who in rows[0]["awaited"]


def agents_name(lab, others, idle, who):
    """An agent names the peer that is stopped: its own, or one of another host."""
    rows = until_ops("--agent", lab.agents[others[0].host], lambda r: names_only(r, who))
    if idle.host == others[0].host:
        check(names_only(rows, who) and rows[0]["tag"] == 77
              and rows[0]["submitted"] < rows[0]["members"],
              "an agent names its own peer that is awaited", rows)
    else:
        check(names_only(rows, who) and f"; peer@host-{idle.host} {who} (is stopped)"
              in rows[0]["awaited"] and rows[0]["age"] < 2 * 10**9,
              "the other agent names it before the master waits for long", rows)


def master_names(lab, others, idle, who):
    """The master names the peer that is stopped, and nobody else."""
    where = f"{'the same' if idle.host == others[0].host else 'another'} host"
    rows = until_ops("--master", lab.master, lambda r: names_only(r, who)
                     and r[0]["votes"] == len(others) and "stopped" in r[0]["awaited"])
    check(names_only(rows, who) and not any(f"pid {p.pid}" in rows[0]["awaited"] for p in others)
          and "(is stopped" in rows[0]["awaited"] and rows[0]["tag"] == 77 and rows[0]["elements"] == 1000
          and rows[0]["bytes"] == 4000 and 0 < rows[0]["age"] < SINCE,
          f"the master names the peer that is awaited, on {where}", rows)


def logs_name(lab, others, idle, who):
    """The logs name it, too: of the master, and of the agents that wait."""
    line = f"tag 77 .*has waited for .* 1 of 3 peers: peer@host-{idle.host} {who} \\(is stopped"
    check(until_logged(lab.master, line), "and so does its log", lab.master.log_lines()[-3:])
    hosts = {p.host for p in others}
    if idle.host == others[0].host:
        line = f"tag 77 .*has waited for .* local {who} \\(peer\\), which has been stopped for "
        hosts = {idle.host}
    for host in hosts:
        check(until_logged(lab.agents[host], line), f"and the log of the agent of host {host}",
              lab.agents[host].log_lines()[-3:])
        rows = until_ops("--agent", lab.agents[host], lambda r: names_only(r, who))
        check(names_only(rows, who), "which shows it, too", rows)


def stalled(lab, peers, idle):
    """One peer is stopped, the others wait for it in an operation."""
    idle.process.send_signal(signal.SIGSTOP)
    others = [p for p in peers if p is not idle]
    for peer in others:
        peer.send(f"reduce {OPERATION}")
    who = f"pid {idle.pid}"
    agents_name(lab, others, idle, who)
    master_names(lab, others, idle, who)
    logs_name(lab, others, idle, who)
    text = ctl("--master", lab.master.admin, "ops").stdout
    check(who in text and "77" in text, "and so does the table for people", text)
    idle.process.send_signal(signal.SIGCONT)
    idle.send(f"reduce {OPERATION}")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on", wrong)
    rows = until_ops("--master", lab.master, lambda r: not r)
    check(not rows, "and is listed no more", rows)


def late(lab, peers):
    """One peer does not call: it is named at once, on the other hosts and in logs after 2 s."""
    slow = peers[1]
    for peer in (peers[0], peers[2]):
        peer.send("reduce type=f32 op=sum count=1000 tag=80")
    who = f"1 of 3 peers: peer@host-1 pid {slow.pid} (has not called)"
    pattern = f"tag 80 .*has waited for 2.* s for {re.escape(who)}"

    def named(rows):
        return len(rows) == 1 and who in rows[0]["awaited"]

    for option, daemon in (("--master", lab.master), ("--agent", lab.agents[0]),
                           ("--agent", lab.agents[2])):
        rows = until_ops(option, daemon, named)
        check(named(rows), f"{daemon.name} names the peer that has not called", rows)
        check(until_logged(daemon, pattern), f"{daemon.name} logs it", daemon.log_lines()[-3:])
    slow.send("reduce type=f32 op=sum count=1000 tag=80")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on", wrong)
    for daemon in (lab.master, lab.agents[0], lab.agents[2]):
        check(until_logged(daemon, "tag 80 .*goes on after "), f"{daemon.name} logs that, too",
              daemon.log_lines()[-3:])


def gone(lab, waiting, idle):
    """An agent is gone: those who wait for its peer know that. It comes back in time."""
    waiting.send("reduce type=f32 op=sum count=1000 tag=81")
    rows = until_ops("--agent", lab.agents[waiting.host], lambda r: len(r) == 1
                     and f"pid {idle.pid} (has not called)" in r[0]["awaited"])
    old = lab.agents[idle.host]
    lab.drop(old)
    rows = until_ops("--master", lab.master, lambda r: len(r) == 1
                     and "s of its lease left" in r[0]["awaited"])
    check(len(rows) == 1 and f"pid {idle.pid} (its agent is gone, " in rows[0]["awaited"],
          "the master says that an agent is gone", rows)
    rows = until_ops("--agent", lab.agents[waiting.host], lambda r: len(r) == 1
                     and "gone" in r[0]["awaited"])
    check(len(rows) == 1 and f"pid {idle.pid} (its agent is gone)" in rows[0]["awaited"],
          "and so does the agent of who waits", rows)
    lab.start_agent(idle.host, path=old.socket, admin=old.admin)
    idle.send("reduce type=f32 op=sum count=1000 tag=81")
    wrong = lib.judge([p.read() for p in (waiting, idle)])
    check(not wrong, "the operation goes on when it is back", wrong)


BIG = f"type=f32 op=sum count={1 << 20}"


def neighbour(lab):
    """The agent that waits for data from host 1. The ring goes by the order of joining, which is
    left to chance."""
    deadline = time.monotonic() + lib.WAIT
    while time.monotonic() < deadline:
        for agent in (lab.agents[0], lab.agents[2]):
            if any("data from host-1" in row["awaited"] for row in ask("--agent", agent, "ops")):
                return agent
    raise lib.Failed("nobody waits for data from host-1")


def standstill(lab, peers):
    """A process of host 1 is stopped amid its copying: all know whom they wait for. Returns the
    agent of the next host in the ring."""
    far, slow = lab.agents[1], peers[1]

    def named(text):
        return lambda rows: len(rows) == 1 and text in rows[0]["awaited"]

    for peer in (peers[0], peers[2]):
        peer.send(f"reduce {BIG} tag=78")
    slow.send(f"reduce {BIG} tag=78 freeze=1")
    who = f"waits for local pid {slow.pid} "
    rows = until_ops("--agent", far, named(who))
    check(named(who)(rows) and named("is stopped")(rows) and rows[0]["state"] == "running"
          and rows[0]["standstill"] > 0 and rows[0]["done"] < rows[0]["bytes"],
          "an agent names its own process that copies no further", rows)
    culprit = f"peer@host-1 pid {slow.pid} (is stopped"
    for option, daemon in (("--master", lab.master), ("--agent", lab.agents[0]),
                           ("--agent", lab.agents[2])):
        rows = until_ops(option, daemon, named(culprit))
        check(named(culprit)(rows) and rows[0]["awaited"].startswith(
            (culprit, f"data; {culprit}")),
            f"so does {daemon.name}", rows)
    near = neighbour(lab)
    rows = until_ops("--agent", near, named("host-1 was last heard"))
    check(named("waits for data from host-1 for ")(rows) and named("host-1 was last heard")(rows)
          and rows[0]["standstill"] > 0, "the neighbour names the host, which is there", rows)
    logged = [f"tag 78 of group 0 of master .* {text}"
              for text in (f"stands still.*{who}", "stands still.*data from host-1")]
    for daemon, pattern in zip((far, near), logged):
        check(until_logged(daemon, pattern), "the standstill is logged", daemon.log_lines()[-3:])
    slow.process.send_signal(signal.SIGCONT)
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on", wrong)
    check(until_logged(near, "tag 78 .* goes on after "), "that is logged, too",
          near.log_lines()[-3:])
    return near


def silence(lab, peers, near):
    """The agent of host 1 stops amid a transfer: its neighbour names it, the master gives it up."""
    far = lab.agents[1]
    for peer in (peers[0], peers[2]):
        peer.send(f"reduce {BIG} tag=79")
    peers[1].send(f"reduce {BIG} tag=79 freeze=1")
    until_ops("--agent", near, lambda rows: rows and rows[0]["state"] == "running")
    far.process.send_signal(signal.SIGSTOP)
    seen = []

    def named(rows):
        seen.extend(row["awaited"] for row in rows)
        return not rows or "host-1" in rows[0]["awaited"]

    until_ops("--agent", near, named)
    check(any("host-1" in text for text in seen), "a stopped agent's host is named", seen[-3:])
    answers = [p.read() for p in (peers[0], peers[2])]
    check(all(a["code"] == lib.RANK_CONNECTION_LOST and "bound" in a["text"] for a in answers),
          "the reason names the silence and its bound", answers)
    for process in (far.process, peers[1].process):
        process.send_signal(signal.SIGCONT)
    check(peers[1].read()["code"] != lib.SUCCESS, "who was given up is told", "")


def recovering(lab, peers):
    """A master that takes the run over says what it was told, and that it waits for others."""
    for peer in peers[:2]:
        peer.send("reduce type=f32 op=sum count=1000 tag=82")
    until_ops("--master", lab.master, lambda r: r and r[0]["votes"] == 2)
    far, old = lab.agents[1], lab.master
    far.process.send_signal(signal.SIGSTOP)
    lab.drop(old)
    lab.start_master(port=old.port)
    text = "recovering: waiting for 1 of 3 peers"
    deadline = time.monotonic() + lib.WAIT
    answer = {}
    while text not in str(answer.get("recovery")) and time.monotonic() < deadline:
        answer = json.loads(ctl("--json", "--master", lab.master.admin, "ops").stdout)
    far.process.send_signal(signal.SIGCONT)
    rows = answer["ops"]
    check(answer.get("recovery") == [{"waiting": text}] and len(rows) == 1
          and rows[0]["tag"] == 82 and rows[0]["votes"] == 2 and rows[0]["world_size"] == 3
          and rows[0]["awaited"] == text, "a recovering master shows what it was told", answer)
    peers[2].send("reduce type=f32 op=sum count=1000 tag=82")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on", wrong)


def one_stays(lab, leaver, victim):
    """One peer leaves, one is killed."""
    leaver.expect("destroy")
    lab.drop_peer(victim)
    deadline = time.monotonic() + lib.WAIT
    status = ask("--master", lab.master, "status")[0]
    while status["accepted"] != 1 and time.monotonic() < deadline:
        status = ask("--master", lab.master, "status")[0]
    check([status[k] for k in ("accepted", "joins", "leaves", "lost_members", "kicks")]
          == [1, 3, 1, 1, 0], "the master tells leaves from losses", status)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        stalled(lab, peers, peers[2])
        stalled(lab, peers, peers[1])

        status = ask("--master", lab.master, "status")[0]
        check(status["accepted"] == 3 and status["agents"] == 2 and status["ops_done"] == 2,
              "status of the master", status)
        status = ask("--agent", lab.agents[0], "status")[0]
        check(status["sessions"] == 2 and status["peers"] == 2 and status["ops_done"] == 2
              and status["p2p_port"] in lab.agents[0].tcp_ports(), "status of an agent", status)
        check(status["links_in"] == status["links_out"] == 1 and status["streams"] >= 4,
              "its links and their streams", status)
        rows = ask("--master", lab.master, "peers")
        check(sorted(r["pid"] for r in rows) == sorted(p.pid for p in peers)
              and all(r["phase"] == "PEER_ACCEPTED" for r in rows), "peers of the master", rows)
        rows = ask("--agent", lab.agents[1], "peers")
        check([r["pid"] for r in rows] == [peers[2].pid] and rows[0]["world_size"] == 3,
              "peers of an agent", rows)
        for verb in ("status", "peers", "ops"):
            for option, daemon in (("--master", lab.master), ("--agent", lab.agents[0])):
                done = ctl(option, daemon.admin, verb)
                check(done.returncode == 0 and done.stdout and not done.stderr,
                      f"{option} {verb} for people", done)
        done = ctl("--agent", lab.folder / "nobody", "status")
        check(done.returncode != 0 and "nobody" in done.stderr, "nobody is there", done)
        recovering(lab, peers)
        one_stays(lab, peers[1], peers[2])
        lab.check_alive()
    with lib.Lab(3) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 2))
        late(lab, peers)
        silence(lab, peers, standstill(lab, peers))
        gone(lab, peers[0], peers[2])
        lab.check_alive()


lib.run(test, 120)
