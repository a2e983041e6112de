#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Links between hosts: the others wait for a slow host, but not for a host that has vanished.
tests/engine tests single streams; this test checks what the processes see."""

import pathlib
import re
import signal
import time

import lib
from lib import check, ids_of, judge

HOSTS = 3
BIG = f"type=f32 op=sum count={1 << 24}"
SMALL = "type=f32 op=sum count=4099"
SLOW = 8  # seconds; an agent ends sessions of processes that are stopped for 10 s
BOUND_NS = 3500 * 10**6
VANISHED = 2
CUT = 5  # seconds
BRIEF = (1.5, 3)
LONG = (2.2, 3.5)
TOLD = 6
TINY = "type=f32 op=sum count=16384 verify=1"  # 64 KiB, small enough for the eager path


def until_stopped(peer):
    deadline = time.monotonic() + lib.WAIT
    while not re.search(r"\) T ", pathlib.Path(f"/proc/{peer.pid}/stat").read_text("ascii")):
        if time.monotonic() > deadline:
            raise lib.Failed(f"peer {peer.number} does not stop")
        time.sleep(0.01)


def slow(hosts):
    """A process stops while it copies, so its host sends nothing for a while."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers(range(HOSTS), streams=2)
        for peer in peers:
            peer.send(f"reduce {BIG} ids={ids_of(peers)} freeze={int(peer is peers[1])}")
        until_stopped(peers[1])
        time.sleep(SLOW)
        peers[1].process.send_signal(signal.SIGCONT)
        wrong = judge([p.read() for p in peers])
        check(not wrong, f"a process is stopped for {SLOW} s, and all peers wait for it", wrong)
        lab.check_alive()


def received(daemon):
    """Returns the bytes that the daemon's host has received."""
    text = pathlib.Path(f"/proc/{daemon.pid}/net/dev").read_text("ascii")
    return int(re.search(r"eth0:\s*(\d+)", text)[1])


def until_received(daemon, goal):
    deadline = time.monotonic() + lib.WAIT
    while received(daemon) < goal:
        if time.monotonic() > deadline:
            raise lib.Failed("nothing is transferred")
        time.sleep(0.001)


def vanish(hosts, what, freeze):
    """Breaks all links of a host at once. freeze: whether a process is stopped before that, so that
    no data moves."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers(range(HOSTS), streams=2)
        survivors, victim = peers[:VANISHED], peers[VANISHED]
        before = received(lab.agents[VANISHED])
        for peer in survivors:
            peer.send(f"reduce {BIG} retry=5 ids={ids_of(peers)} or={ids_of(survivors)}")
        victim.send(f"reduce {BIG} freeze={int(freeze)}")
        if freeze:
            until_stopped(victim)
            time.sleep(1.5)
        until_received(lab.agents[VANISHED], before + 2**20)
        hosts.link(VANISHED, False)
        cut = time.monotonic_ns()
        answers = [p.read() for p in survivors]
        wrong = judge(answers)
        check(not wrong, f"{what}: the other hosts go on", wrong)
        took = [a["first_loss"] - cut for a in answers]
        check(all(a["losses"] == 1 for a in answers) and max(took) < BOUND_NS,
              f"{what}: the other hosts get the error after {max(took) / 1e6:.0f} ms", answers)
        lab.check_alive()


def part(hosts):
    """The path between two neighbours is cut, but both still reach the master. With three hosts,
    one host is evicted. With four hosts, the ring gets an order without this link."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers(range(hosts.n_hosts), form=lib.form_ring)
        before = received(lab.agents[2])
        for peer in peers:
            peer.send(f"reduce {BIG} retry=5 hurry=1 freeze={int(peer is peers[0])}")
        until_stopped(peers[0])  # so that the operation lasts until the path is gone
        until_received(lab.agents[2], before + 2**20)
        hosts.deafen(1, 2, True)
        hosts.deafen(2, 1, True)
        cut = time.monotonic_ns()
        peers[0].process.send_signal(signal.SIGCONT)
        answers = [p.read() for p in peers]
        stay = [a for a in answers if a["code"] == lib.SUCCESS]
        gone = [a for a in answers if a["code"] != lib.SUCCESS]
        expected = hosts.n_hosts - (hosts.n_hosts == 3)
        told = max(a["first_loss"] for a in answers) - cut
        check(told < BOUND_NS,
              f"the path between two of {hosts.n_hosts} hosts is gone: all peers get the error "
              f"after {told / 1e6:.0f} ms", answers)
        check(not judge(stay) and len(stay) == expected
              and all(a["world"] == expected and a["losses"] == 1 for a in stay),
              f"{expected} of {hosts.n_hosts} hosts go on after one error, "
              f"after {(max(a['end'] for a in stay) - cut) / 1e6:.0f} ms", answers)
        if gone:
            print(f"# {gone[0]['text']}")
        lab.check_alive()


def patient(hosts):
    """A cut that is shorter than the operator's host timeout, and longer than TCP's timeout. The
    agent and the master keep their connection."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start(master_options=["--host-timeout", 30])
        peers = lab.start_peers(range(HOSTS))
        hosts.link(VANISHED, False)
        time.sleep(CUT)
        hosts.link(VANISHED, True)
        wrong = judge(lib.together(peers, f"reduce {SMALL} retry=5 ids={ids_of(peers)} verify=1"))
        check(not wrong, f"a host that was cut off for {CUT} s goes on, because the host timeout is longer",
              wrong)
        lines = [x for x in lab.master.log_lines() if re.search("agent host-2 .* connected", x)]
        check(len(lines) == 1,
              "the agent keeps its connection to the master during a cut below the host timeout", lines)
        lab.check_alive()


def rejoin(other, peer):
    """Creates another communicator for a peer that was counted as lost. Its host may be refused
    until the cable works again."""
    def connected():
        peer.expect("destroy")
        peer.expect("create")
        return peer.call("connect")["code"] == lib.SUCCESS

    other.expect("until world=1")
    other.send("until world=2")
    lib.until(connected, f"peer {peer.number} does not come back")
    answer = other.read()
    check(answer["code"] == lib.SUCCESS, "a peer that was counted as lost connects again", answer)


def go_on(peers, line):
    """Returns the answers of two peers to an operation that succeeds at last. After a cut, TCP may
    go on waiting for as long as the cut lasted. A peer that is lost meanwhile connects again."""
    deadline = time.monotonic() + lib.WAIT
    while True:
        answers = lib.together(peers, line)
        if ({a["code"] for a in answers} == {lib.SUCCESS} or time.monotonic() > deadline
                or any(a["check"] != "ok" for a in answers)):
            return answers
        for peer, answer in zip(peers, answers):
            if answer["code"] == lib.INVALID_USAGE:
                rejoin(peers[1 - peer.number], peer)


def brief(hosts, seconds):
    """The cable of one of two hosts is out for about the time that a host may be silent, during a
    small operation. Both hosts know that the operation has started, but their data has not arrived.
    The master is on a third host."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master(2)
        for host in range(2):
            lab.start_agent(host)
        peers = lab.start_peers(range(2))
        line = f"reduce {TINY} ids={ids_of(peers)}"
        for host in range(2):
            hosts.deafen(host, 1 - host, True)
        for peer in peers:
            peer.send(line)
        lib.until(lambda: all([o["state"] for o in lib.ask("--agent", lab.agents[h], "ops")]
                              == ["running"] for h in range(2)), "the operation does not start")
        hosts.link(1, False)
        cut = time.monotonic_ns()
        for host in range(2):
            hosts.deafen(host, 1 - host, False)
        time.sleep(seconds)
        hosts.link(1, True)
        answers = [p.read() for p in peers]
        codes = {a["code"] for a in answers}
        took = (max(a["end"] for a in answers) - cut) / 1e9
        check(codes in ({lib.SUCCESS}, {lib.RANK_CONNECTION_LOST})
              and all(a["check"] == "ok" for a in answers),
              f"a cable is out for {seconds} s during a small operation: all peers get the same "
              "result", answers)
        check(took < seconds + BOUND_NS / 1e9,
              f"a cable is out for {seconds} s: the peers return after {took:.1f} s", answers)
        wrong = judge(go_on(peers, line))
        check(not wrong, "all peers go on with right sums after the cut", wrong)
        lab.check_alive()


def told(hosts):
    """The master's operator sets how long a link may be silent, in one place for all agents."""
    with lib.Lab(hosts=hosts) as lab:
        file = lab.folder / "master.conf"
        file.write_text(f"[master]\nlink_timeout_ms = {1000 * TOLD}\n", "utf-8")
        lab.start_master(2, options=("--config", file))
        for host in range(2):
            lab.start_agent(host)
        peers = lab.start_peers(range(2))
        for host in range(2):
            hosts.deafen(host, 1 - host, True)
        for peer in peers:
            peer.send(f"reduce {TINY} ids={ids_of(peers)}")
        for peer in peers:
            peer.read()
        said = [float(s) for daemon in lab.agents.values() for s in
                re.findall(r"nothing was received from the other host for ([0-9.]+) s",
                           "\n".join(daemon.log_lines()))]
        check(said and min(said) >= TOLD,
              f"agents abandon a silent link after the {TOLD} s of the master's file", said)
        lab.check_alive()


def cut_off(hosts, place, seconds):
    """The cable of the master's host is out for longer than the host timeout. No peer loses its
    membership, because all hosts fell silent at once. place: the hosts of the peers; host 0 runs
    the master."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master()
        for host in place:
            lab.start_agent(host)
        peers = lab.start_peers(place)
        hosts.link(0, False)
        for peer in peers:
            peer.send(f"reduce {TINY} retry=5 ids={ids_of(peers)} verify=1")
        time.sleep(seconds)
        hosts.link(0, True)
        answers = [p.read() for p in peers]
        wrong = judge(answers)
        what = f"the master's host {place} is cut off for {seconds} s: its run goes on"
        check(not wrong and {a["world"] for a in answers} == {len(place)}, what, wrong or answers)
        lab.check_alive()


def test():
    for n, scene in ((HOSTS, slow), (HOSTS, patient), (HOSTS, told), (HOSTS, part),
                     (HOSTS + 1, part),
                     *((HOSTS, lambda h, s=s: brief(h, s)) for s in BRIEF),
                     *((HOSTS, lambda h, s=s: cut_off(h, (1, 2), s)) for s in LONG),
                     *((HOSTS, lambda h, s=s: cut_off(h, (0, 1, 2), s)) for s in LONG),
                     (HOSTS, lambda h: vanish(h, "a host vanishes during transfers", False)),
                     (HOSTS, lambda h: vanish(h, "a host vanishes during a standstill", True))):
        hosts = lib.make_namespaces(n)
        if not hosts:
            raise lib.Skipped("needs root and network namespaces")
        scene(hosts)


lib.run(test, 240)
