#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pcclctl shows which peer or host an operation waits for. The process of the awaited peer was
stopped before it took part or during a transfer, or it does not call, or the agent of the peer was
stopped or is gone. The peer is on the host of pcclctl or on another host."""

import json
import re
import signal
import time

import lib
from lib import ask, check, ctl

OPERATION = "type=f32 op=sum count=1000 tag=77"
SINCE = 3600 * 10**9  # ns; no operation of this test is so old


def until_ops(option, daemon, good):
    """Returns the operations in flight as soon as good(rows) is true, or after the time limit."""
    deadline = time.monotonic() + lib.WAIT
    while True:
        rows = ask(option, daemon, "ops")
        if good(rows) or time.monotonic() > deadline:
            return rows


def until_logged(daemon, pattern):
    """Returns whether a line that matches the pattern appears in the daemon's log within the time
    limit."""
    deadline = time.monotonic() + lib.WAIT
    while time.monotonic() < deadline:
        if any(re.search(pattern, line) for line in daemon.log_lines()):
            return True
        time.sleep(0.01)
    return False


def names_only(rows, who):
    """Returns whether there is exactly one operation, which waits for `who`."""
    return len(rows) == 1 and who in rows[0]["awaited"]


def agents_name(lab, others, idle, who):
    """Checks that an agent names the stopped peer, on its own host or on another host."""
    rows = until_ops("--agent", lab.agents[others[0].host], lambda r: names_only(r, who))
    if idle.host == others[0].host:
        check(names_only(rows, who) and rows[0]["tag"] == 77
              and rows[0]["submitted"] < rows[0]["members"],
              "an agent names the awaited peer on its own host", rows)
    else:
        check(names_only(rows, who) and f"; peer@host-{idle.host} {who} (is stopped)"
              in rows[0]["awaited"] and rows[0]["age"] < 2 * 10**9,
              "the agent of another host names the stopped peer soon", rows)


def master_names(lab, others, idle, who):
    """Checks that the master names the stopped peer, and no other peer."""
    where = f"{'the same' if idle.host == others[0].host else 'another'} host"
    rows = until_ops("--master", lab.master, lambda r: names_only(r, who)
                     and r[0]["votes"] == len(others) and "stopped" in r[0]["awaited"])
    check(names_only(rows, who) and not any(f"pid {p.pid}" in rows[0]["awaited"] for p in others)
          and "(is stopped" in rows[0]["awaited"] and rows[0]["tag"] == 77 and rows[0]["elements"] == 1000
          and rows[0]["bytes"] == 4000 and 0 < rows[0]["age"] < SINCE,
          f"the master names the peer that is awaited, on {where}", rows)


def logs_name(lab, others, idle, who):
    """Checks that the logs of the master and of the agents that wait also name the stopped peer."""
    line = f"tag 77 .*has waited for .* 1 of 3 peers: peer@host-{idle.host} {who} \\(is stopped"
    check(until_logged(lab.master, line),
          "the master's log names the stopped peer", lab.master.log_lines()[-3:])
    hosts = {p.host for p in others}
    if idle.host == others[0].host:
        line = f"tag 77 .*has waited for .* local {who} \\(peer\\), which has been stopped for "
        hosts = {idle.host}
    for host in hosts:
        check(until_logged(lab.agents[host], line),
              f"the log of the agent of host {host} names the stopped peer",
              lab.agents[host].log_lines()[-3:])
        rows = until_ops("--agent", lab.agents[host], lambda r: names_only(r, who))
        check(names_only(rows, who), f"the agent of host {host} shows the stopped peer", rows)


def stalled(lab, peers, idle):
    """One peer is stopped, and the others wait for it in an operation."""
    idle.process.send_signal(signal.SIGSTOP)
    others = [p for p in peers if p is not idle]
    for peer in others:
        peer.send(f"reduce {OPERATION}")
    who = f"pid {idle.pid}"
    agents_name(lab, others, idle, who)
    master_names(lab, others, idle, who)
    logs_name(lab, others, idle, who)
    text = ctl("--master", lab.master.admin, "ops").stdout
    check(who in text and "77" in text, "the table for people names the stopped peer", text)
    idle.process.send_signal(signal.SIGCONT)
    idle.send(f"reduce {OPERATION}")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on when the stopped peer runs again", wrong)
    rows = until_ops("--master", lab.master, lambda r: not r)
    check(not rows, "an operation that has ended is not listed", rows)


def late(lab, peers):
    """One peer does not call. The master and the agents of the other hosts name it at once, and
    after 2 s in their logs."""
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
        check(until_logged(daemon, pattern),
              f"{daemon.name} logs which peer has not called", daemon.log_lines()[-3:])
    slow.send("reduce type=f32 op=sum count=1000 tag=80")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on when the late peer calls", wrong)
    for daemon in (lab.master, lab.agents[0], lab.agents[2]):
        check(until_logged(daemon, "tag 80 .*goes on after "), f"{daemon.name} logs that the operation goes on",
              daemon.log_lines()[-3:])


def gone(lab, waiting, idle):
    """An agent is gone. The master and the other agents know that operations wait for its peer. The
    agent comes back in time."""
    waiting.send("reduce type=f32 op=sum count=1000 tag=81")
    rows = until_ops("--agent", lab.agents[waiting.host], lambda r: len(r) == 1
                     and f"pid {idle.pid} (has not called)" in r[0]["awaited"])
    old = lab.agents[idle.host]
    lab.drop(old)
    rows = until_ops("--master", lab.master, lambda r: len(r) == 1
                     and "s of its lease left" in r[0]["awaited"])
    check(len(rows) == 1 and f"pid {idle.pid} (its agent is gone, " in rows[0]["awaited"],
          "the master shows that the agent of the awaited peer is gone", rows)
    rows = until_ops("--agent", lab.agents[waiting.host], lambda r: len(r) == 1
                     and "gone" in r[0]["awaited"])
    check(len(rows) == 1 and f"pid {idle.pid} (its agent is gone)" in rows[0]["awaited"],
          "the agent of the waiting peer shows that the other agent is gone", rows)
    lab.start_agent(idle.host, path=old.socket, admin=old.admin)
    idle.send("reduce type=f32 op=sum count=1000 tag=81")
    wrong = lib.judge([p.read() for p in (waiting, idle)])
    check(not wrong, "the operation goes on when the agent is back", wrong)


BIG = f"type=f32 op=sum count={1 << 20}"


def neighbour(lab):
    """Returns the agent that waits for data from host 1. The ring has the order in which the hosts
    joined, which is random."""
    deadline = time.monotonic() + lib.WAIT
    while time.monotonic() < deadline:
        for agent in (lab.agents[0], lab.agents[2]):
            if any("data from host-1" in row["awaited"] for row in ask("--agent", agent, "ops")):
                return agent
    raise lib.Failed("nobody waits for data from host-1")


def standstill(lab, peers):
    """A process of host 1 is stopped while it copies. All daemons name the process. Returns the
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
          "an agent names the process on its own host that has stopped copying", rows)
    culprit = f"peer@host-1 pid {slow.pid} (is stopped"
    for option, daemon in (("--master", lab.master), ("--agent", lab.agents[0]),
                           ("--agent", lab.agents[2])):
        rows = until_ops(option, daemon, named(culprit))
        check(named(culprit)(rows) and rows[0]["awaited"].startswith(
            (culprit, f"data; {culprit}")),
            f"{daemon.name} names the process that has stopped copying", rows)
    near = neighbour(lab)
    rows = until_ops("--agent", near, named("host-1 was last heard"))
    check(named("waits for data from host-1 for ")(rows) and named("host-1 was last heard")(rows)
          and rows[0]["standstill"] > 0,
          "the neighbour names the host whose data is missing, and when it was last heard", rows)
    logged = [f"tag 78 of group 0 of master .* {text}"
              for text in (f"stands still.*{who}", "stands still.*data from host-1")]
    for daemon, pattern in zip((far, near), logged):
        check(until_logged(daemon, pattern), "the standstill is logged", daemon.log_lines()[-3:])
    slow.process.send_signal(signal.SIGCONT)
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on when the copying process runs again", wrong)
    check(until_logged(near, "tag 78 .* goes on after "), "the end of the standstill is logged",
          near.log_lines()[-3:])
    return near


def silence(lab, peers, near):
    """The agent of host 1 stops during a transfer. Its neighbour names it, and the call fails
    because of the silence of the agent."""
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
    check(any("host-1" in text for text in seen), "the neighbour names the host of a stopped agent", seen[-3:])
    answers = [p.read() for p in (peers[0], peers[2])]
    check(all(a["code"] == lib.RANK_CONNECTION_LOST and "bound" in a["text"] for a in answers),
          "the error names the silence of the agent and its bound", answers)
    for process in (far.process, peers[1].process):
        process.send_signal(signal.SIGCONT)
    check(peers[1].read()["code"] != lib.SUCCESS, "the peer of the silent agent gets an error", "")


def recovering(lab, peers):
    """A master that takes over the run shows what it has learned from snapshots, and how many peers
    it still waits for."""
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
          and rows[0]["awaited"] == text,
          "a recovering master shows the pending operation, and that it waits for 1 of 3 peers", answer)
    peers[2].send("reduce type=f32 op=sum count=1000 tag=82")
    wrong = lib.judge([p.read() for p in peers])
    check(not wrong, "the operation goes on after the takeover", wrong)


def one_stays(lab, leaver, victim):
    """One peer leaves, another is killed."""
    leaver.expect("destroy")
    lab.drop_peer(victim)
    deadline = time.monotonic() + lib.WAIT
    status = ask("--master", lab.master, "status")[0]
    while status["accepted"] != 1 and time.monotonic() < deadline:
        status = ask("--master", lab.master, "status")[0]
    check([status[k] for k in ("accepted", "joins", "leaves", "lost_members", "kicks")]
          == [1, 3, 1, 1, 0], "the master counts leaves and losses separately", status)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        stalled(lab, peers, peers[2])
        stalled(lab, peers, peers[1])

        status = ask("--master", lab.master, "status")[0]
        check(status["accepted"] == 3 and status["agents"] == 2 and status["ops_done"] == 2,
              "pcclctl shows the status of the master", status)
        status = ask("--agent", lab.agents[0], "status")[0]
        check(status["sessions"] == 2 and status["peers"] == 2 and status["ops_done"] == 2
              and status["p2p_port"] in lab.agents[0].tcp_ports(),
              "pcclctl shows the status of an agent", status)
        check(status["links_in"] == status["links_out"] == 1 and status["streams"] >= 4,
              "pcclctl shows an agent's links and streams", status)
        rows = ask("--master", lab.master, "peers")
        check(sorted(r["pid"] for r in rows) == sorted(p.pid for p in peers)
              and all(r["phase"] == "PEER_ACCEPTED" for r in rows), "pcclctl shows the master's peers", rows)
        rows = ask("--agent", lab.agents[1], "peers")
        check([r["pid"] for r in rows] == [peers[2].pid] and rows[0]["world_size"] == 3,
              "pcclctl shows an agent's peers", rows)
        for verb in ("status", "peers", "ops"):
            for option, daemon in (("--master", lab.master), ("--agent", lab.agents[0])):
                done = ctl(option, daemon.admin, verb)
                check(done.returncode == 0 and done.stdout and not done.stderr,
                      f"{option} {verb} prints a table for people", done)
        done = ctl("--agent", lab.folder / "nobody", "status")
        check(done.returncode != 0 and "nobody" in done.stderr,
              "pcclctl reports an error if no daemon is there", done)
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
