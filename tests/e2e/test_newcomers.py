#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Newcomers that cannot be reached and connect again and again, or whose processes are stopped.
Members do not wait for them. Such a newcomer joins once it can be reached or its process runs."""

import pathlib
import re
import select
import signal
import time

import lib
import netns
from lib import RANK_CONNECTION_FAILED, SUCCESS, Failed, ask, check, ids_of, judge

STATE = 48149
P2P = 48150
ATTEMPTS = 4
INSISTS = 12  # seconds in which a newcomer repeats pcclConnect, 0.2 s after each answer
# An attempt tries other positions in the ring for 5 s (PROBING_MS), and failures are remembered, so
# the members open at most this many connections. Without that memory, each attempt every 0.2 s
# would need four connections.
CONNECTIONS = 16 * (1 + INSISTS // 5)
NARROW = 1300  # bytes of a packet
TOO_NARROW = 560  # bytes; not even the smallest segment size that is tried passes
LINE = "type=f32 op=sum count=1000 seed=3"
COMPUTES = 0.01  # seconds for which a program computes between two steps


class Firewall(lib.Namespaces):
    """Hosts that drop or reject connections to one of their ports."""

    def __init__(self, n_hosts):
        super().__init__(n_hosts)
        for host in range(n_hosts):  # this test's rules come before the rule for local addresses
            netns.ip("-n", self.name(host), "rule", "add", "pref", "100", "lookup", "local")
            netns.ip("-n", self.name(host), "rule", "del", "pref", "0")

    def p2p(self, host, what, on, source=None, port=P2P):
        """Blocks the port for all other hosts, or for one."""
        netns.ip("-n", self.name(host), "rule", "add" if on else "del", "pref", "1", "iif", "eth0",
                 *(("from", self.address(source)) if source is not None else ()),
                 "ipproto", "tcp", "dport", str(port), what)


class Newcomer:
    """A peer that repeats pcclConnect 0.2 s after each failure."""

    def __init__(self, lab, number, host):
        self.peer = lab.start_peer(number, host)
        self.peer.expect("create")
        self.answers, self.next = [], 0
        self.connect()

    def connect(self):
        self.peer.send("connect")
        self.waits = True

    def look(self):
        if self.waits and select.select([self.peer.process.stdout], [], [], 0)[0]:
            self.answers.append(self.peer.read())
            self.waits, self.next = False, time.monotonic() + 0.2
        if not self.waits and not self.is_in() and time.monotonic() > self.next:
            self.connect()

    def is_in(self):
        return bool(self.answers) and self.answers[-1]["code"] == SUCCESS

    def failures(self):
        return [a for a in self.answers if a["code"] != SUCCESS]


def step(peers):
    """A step as programs do it: a vote if a newcomer waits, and an operation."""
    asked = lib.together(peers, "pending")
    if any(a["code"] != SUCCESS for a in asked):
        raise Failed(f"pending: {asked}")
    if not asked[0]["pending"]:
        return len(peers)
    voted = lib.together(peers, "update")
    if any(a["code"] != SUCCESS for a in voted):
        raise Failed(f"update: {voted}")
    return voted[0]["world"]


def steps(lab, peers, fresh, done):
    """Runs steps until done() is true. Newcomers that have joined take part in the steps. Returns
    the number of connection rounds of the members."""
    before = ask("--master", lab.master, "status")[0]["rounds"]
    members = [*peers]
    deadline = time.monotonic() + 3 * lib.WAIT
    while not done():
        if time.monotonic() > deadline:
            raise Failed(f"newcomers: {[x.answers[-1:] for x in fresh]}")
        world = step(members)
        for x in fresh:
            x.look()
        while len(members) < world and time.monotonic() < deadline:
            for x in fresh:
                x.look()
                if x.is_in() and x.peer not in members:
                    members.append(x.peer)
        wrong = judge(lib.together(
            members, f"reduce {LINE} tag=1 verify=1 ids={ids_of(members)}"))
        if wrong:
            raise Failed(wrong)
        time.sleep(COMPUTES)
    return ask("--master", lab.master, "status")[0]["rounds"] - before


def members_do_not_wait(hosts, name, close, open_again, reason, n_fresh=1):
    """Two hosts work while other hosts cannot join."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        close()
        fresh = [Newcomer(lab, 2 + k, 2 + k) for k in range(n_fresh)]
        rounds = steps(lab, peers, fresh,
                       lambda: all(len(x.failures()) >= ATTEMPTS for x in fresh))
        check(rounds == 0, f"{name}: {ATTEMPTS} attempts of {n_fresh} newcomers: the members take part "
              "in no round", rounds)
        check(all(a["code"] == RANK_CONNECTION_FAILED and "could not reach" in a["text"]
                  and reason in a["text"] for x in fresh for a in x.failures()),
              f"{name}: newcomers that cannot be reached get the reason", [x.answers for x in fresh])
        open_again()
        steps(lab, peers, fresh, lambda: all(x.is_in() for x in fresh))
        everybody = [*peers, *(x.peer for x in fresh)]
        wrong = judge(lib.together(
            everybody, f"reduce {LINE} tag=2 verify=1 ids={ids_of(everybody)}"))
        check(not wrong, f"{name}: newcomers join when they can be reached", wrong)
        lab.check_alive()


def connections_begun(agents):
    """Returns the number of connections that the agents' hosts have opened."""
    begun = 0
    for agent in agents:
        head, row = re.findall(r"^Tcp: (.*)", pathlib.Path(f"/proc/{agent.pid}/net/snmp").read_text(
            "ascii"), re.M)
        begun += int(dict(zip(head.split(), row.split()))["ActiveOpens"])
    return begun


def members_are_left_alone(hosts):
    """A newcomer that insists costs the members little: no vote, no round, and fewer and fewer
    probes."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        hosts.p2p(2, "prohibit", True)
        fresh, agents = Newcomer(lab, 2, 2), [lab.agents[0], lab.agents[1]]
        before, end = connections_begun(agents), time.monotonic() + INSISTS
        votes = []

        def done():
            votes.append(lib.together(peers, "pending")[0]["pending"])
            return time.monotonic() > end
        rounds = steps(lab, peers, [fresh], done)
        begun = connections_begun(agents) - before
        check(rounds == 0 and not any(votes), f"{len(fresh.answers)} attempts in {INSISTS} s, during "
              f"{len(votes)} steps of the members: no member votes or takes part in a "
              "round", (rounds, sum(votes)))
        check(0 < begun <= CONNECTIONS, f"members have opened {begun} connections for probes, "
              f"at most {CONNECTIONS} are allowed", begun)
        lab.check_alive()


def another_place(hosts):
    """A newcomer that cannot reach the member next to it joins at another position."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 2), form=lib.form_ring)
        hosts.p2p(0, "prohibit", True, source=3)
        fresh = Newcomer(lab, 3, 3)
        steps(lab, peers, [fresh], fresh.is_in)
        everybody = [*peers, fresh.peer]
        wrong = judge(lib.together(
            everybody, f"reduce {LINE} tag=2 verify=1 ids={ids_of(everybody)}"))
        check(not wrong and not fresh.failures(),
              "a newcomer that cannot reach one of three members joins at once",
              (wrong, fresh.answers))
        hosts.p2p(0, "prohibit", False, source=3)
        lab.check_alive()


def with_hosts(case, *args, **words):
    hosts = lib.make_namespaces(4, kind=Firewall)
    if not hosts:
        raise lib.Skipped("no network namespaces")
    case(hosts, *args, **words)


def firewalled(what, name, n_fresh):
    def case(hosts):
        def each(on):
            for k in range(n_fresh):
                hosts.p2p(2 + k, what, on)
        members_do_not_wait(hosts, name, lambda: each(True), lambda: each(False), "host-",
                            n_fresh=n_fresh)
    with_hosts(case)


def one_way(hosts, name, port):
    def each(on):
        for member in (0, 1):
            hosts.p2p(member, "blackhole", on, source=2, port=port)
    members_do_not_wait(hosts, name, lambda: each(True), lambda: each(False), "host-2 could")


def narrow_path(hosts, size, done, algorithm="ring", then=None):
    """Packets above this size get lost on the path to a newcomer. The master's host sends only
    small packets."""
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(2, size)
        netns.ip("-n", hosts.name(3), "link", "set", "eth0", "mtu", str(TOO_NARROW))
        lab.start_master(3, options=("--algorithm", algorithm))
        for host in range(3):
            lab.start_agent(host)
        peers = lab.start_peers((0, 1))
        fresh = Newcomer(lab, 2, 2)
        rounds = steps(lab, peers, [fresh], lambda: done(fresh))
        if then:
            then(lab, [*peers, fresh.peer])
        lab.check_alive()
        return rounds, fresh.answers


def too_narrow(hosts):
    rounds, answers = narrow_path(hosts, TOO_NARROW,
                                 lambda x: len(x.failures()) >= ATTEMPTS)
    check(rounds == 0,
          f"on a path that is too narrow, {ATTEMPTS} attempts of a newcomer make members take part "
          "in no round", rounds)
    check(all(a["code"] == RANK_CONNECTION_FAILED and "check the MTU" in a["text"] for a in answers),
          "a newcomer on a path that is too narrow gets the reason", answers)


def narrow(hosts):
    _, answers = narrow_path(hosts, NARROW, lambda x: x.is_in())
    check(len(answers) == 1, f"packets above {NARROW} bytes get lost: a newcomer joins at once, and "
          "members see no error", answers)


def use_mesh(lab, peers):
    """Reduces until there are links between all hosts, and 20 times more."""
    left = 20

    def is_done():
        nonlocal left
        wrong = judge(lib.together(
            peers, f"reduce type=f32 op=sum count=100000 seed=3 tag=2 verify=1 ids={ids_of(peers)}"))
        if wrong:
            raise Failed(f"an operation after the newcomer has joined: {wrong}")
        left -= all(ask("--agent", lab.agents[host], "status")[0]["links_in"] == 2
                    for host in range(3))
        return left == 0

    lib.until(is_done, "there are no links between all hosts")


def narrow_mesh(hosts):
    rounds, answers = narrow_path(hosts, NARROW, lambda x: x.is_in(), "auto", use_mesh)
    check(len(answers) == 1, f"packets above {NARROW} bytes get lost: links of a mesh cost no "
          "operation", (rounds, answers))


def stopped():
    with lib.Lab(2) as lab:
        lab.start()
        member, fresh = lab.start_peer(0, 0), lab.start_peer(1, 1)
        lib.form_run([member])

        def pending():
            return member.call("pending")["pending"]

        fresh.expect("create")
        fresh.send("connect")
        lib.until(pending, "the newcomer is not pending")
        fresh.process.send_signal(signal.SIGSTOP)
        lib.until(lambda: not pending(), "a newcomer that is stopped is still pending")
        check(member.expect("update")["world"] == 1, "a newcomer that is stopped is not admitted")
        lib.wake(fresh)
        check(member.expect("until world=2")["code"] == SUCCESS == fresh.read()["code"],
              "a stopped newcomer joins when it runs again")
        lab.check_alive()


def test():
    stopped()
    firewalled("blackhole", "a firewall that drops", 1)
    firewalled("prohibit", "a firewall that rejects", 2)
    with_hosts(members_are_left_alone)
    with_hosts(one_way, "one way", P2P)
    with_hosts(one_way, "one way, shared state", STATE)
    with_hosts(too_narrow)
    with_hosts(narrow)
    with_hosts(narrow_mesh)
    with_hosts(another_place)


lib.run(test, 330)
