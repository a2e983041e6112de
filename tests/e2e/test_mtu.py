#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A path that loses large packets without an error, because its routers send no ICMP. The agents
log this, and go on with smaller packets. If even the smallest packets are lost, the hosts are not
connected."""

import re
import subprocess

import lib
from lib import check, ids_of, judge

NARROW = 1300  # bytes of a packet
NARROWER = 600  # bytes; of the segment sizes that are tried, only the smallest passes
TOO_NARROW = 560  # bytes; not even the smallest segment size that is tried passes
SMALL = "type=f32 op=sum count=64"
MEDIUM = "type=f32 op=sum count=100000"  # direct exchange, if there are links between all hosts
BIG = f"type=f32 op=sum count={1 << 20}"  # 4 MiB
TEXT = "large packets are lost: check the MTU"


class Hosts(lib.Namespaces):
    def narrow_pair(self, a, b, size):
        """Gives these two hosts their own path. See pair()."""
        net = self.name("net")
        for host, bridge in ((a, "bridge-a"), (b, "bridge-b")):
            lib.netns.ip("-n", net, "link", "add", bridge, "type", "bridge")
            lib.netns.ip("-n", net, "link", "set", bridge, "up")
            lib.netns.ip("-n", net, "link", "add", f"pair-{host}", "type", "veth",
                         "peer", "name", "eth1", "netns", self.name(host))
            lib.netns.ip("-n", net, "link", "set", f"pair-{host}", "master", bridge, "up")
            lib.netns.ip("-n", self.name(host), "link", "set", "eth1", "gso_max_segs", "1", "up")
        lib.netns.ip("-n", net, "link", "add", "end-a", "type", "veth", "peer", "name", "end-b")
        for end in "ab":
            lib.netns.ip("-n", net, "link", "set", f"end-{end}", "master", f"bridge-{end}", "up")
        self.pair(size)
        for host, other in ((a, b), (b, a)):
            lib.netns.ip("-n", self.name(host), "route", "add", f"{self.address(other)}/32",
                         "dev", "eth1", "src", self.address(host))

    def pair(self, size):
        """Sets the size in bytes of the largest packet that passes between the two hosts of
        narrow_pair()."""
        for end in "ab":
            lib.netns.ip("-n", self.name("net"), "link", "set", f"end-{end}", "mtu", str(size))

    def add_addresses(self, host, count):
        """Adds addresses, so that the description of the host needs more than one packet."""
        for k in range(count):
            lib.netns.ip("-n", self.name(host), "addr", "add", f"2001:db8:{host}::{k + 1:x}/128",
                         "dev", "lo")


def make(n_hosts):
    hosts = lib.make_namespaces(n_hosts, Hosts)
    if not hosts:
        raise lib.Skipped("needs root and network namespaces")
    return hosts


def said(lab):
    return [x for a in lab.agents.values() for x in a.log_lines() if TEXT in x]


def passes(n_hosts):
    hosts = make(n_hosts)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(n_hosts - 1, NARROW)
        lab.start()
        peers = lab.start_peers(range(n_hosts))
        wrong = judge(lib.together(peers, f"reduce {SMALL} ids={ids_of(peers)}"))
        check(not wrong, f"{n_hosts} hosts, packets above {NARROW} bytes get lost: "
              "a small operation succeeds", wrong)
        answers = lib.together(peers, f"reduce {BIG} retry=5 ids={ids_of(peers)}", 40)
        check(not judge(answers),
              f"{n_hosts} hosts, packets above {NARROW} bytes get lost: a large operation "
              "succeeds", judge(answers))
        check(max(a["losses"] for a in answers) <= 2 * (n_hosts - 1),
              "packet loss costs at most one error for each direction of the path",
              ([a["losses"] for a in answers], said(lab), answers))
        check({a["world"] for a in answers} == {n_hosts}, "all hosts stay when large packets get lost", answers)
        check(said(lab), f"the log names the cause: {TEXT}")
        answers = lib.together(peers, f"reduce {BIG} ids={ids_of(peers)}")
        check(not judge(answers), "the next operation over a narrow path needs no second attempt", answers)
        lab.check_alive()


def becomes_narrow(n_hosts):
    """Each link breaks twice before its segments are small enough. The links need not break at the
    same time."""
    hosts = make(n_hosts)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(n_hosts - 1, 1500)
        lab.start()
        peers = lab.start_peers(range(n_hosts))
        hosts.cable(NARROWER)
        answers = lib.together(peers, f"reduce {BIG} retry=9 ids={ids_of(peers)}", 60)
        check(not judge(answers) and {a.get("world") for a in answers} == {n_hosts},
              f"{n_hosts} hosts, packets above {NARROWER} bytes get lost from now on: all hosts go on",
              answers)
        lab.check_alive()


def is_too_narrow():
    """Two hosts go on without the third. The master is on a fourth host, which sends only small
    packets."""
    hosts = make(4)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(2, 1500)
        lib.netns.ip("-n", hosts.name(3), "link", "set", "eth0", "mtu", str(TOO_NARROW))
        lab.start_master(3)
        for host in range(3):
            lab.start_agent(host)
        peers = lab.start_peers(range(3))
        hosts.cable(TOO_NARROW)
        stay = peers[:2]
        for peer in stay:
            peer.send(f"reduce {BIG} retry=19 ids={ids_of(peers)} or={ids_of(stay)}")
        peers[2].send(f"reduce {BIG} retry=19")
        answers = [p.read(90) for p in stay]
        check(not judge(answers) and {a["world"] for a in answers} == {2},
              f"packets above {TOO_NARROW} bytes get lost on the path to a host: the others go on",
              answers)
        print(f"# {answers[0]['losses']} losses, {(answers[0]['end'] - answers[0]['begin']) / 1e9:.1f} s")
        lab.check_alive()


def way_to_master():
    """The messages between an agent and the master are long."""
    hosts = make(2)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(1, NARROW)
        for host in range(2):
            hosts.add_addresses(host, 63)
        lab.start()
        peers = lab.start_peers(range(2))
        answers = lib.together(peers, f"reduce {SMALL} ids={ids_of(peers)}")
        check(not judge(answers), f"packets above {NARROW} bytes get lost on the path to the master: "
              "a host with many addresses joins", answers)
        check({a["losses"] for a in answers} == {0},
              "a host on a narrow path to the master loses no call", answers)
        lab.check_alive()


def shared_state(known):
    """Shared state uses the segment sizes that the links have found."""
    hosts = make(2)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(1, NARROWER if known else 1500)
        lab.start()
        peers = lab.start_peers(range(2))
        hosts.cable(NARROWER if known else NARROW)
        for k, peer in enumerate(peers):
            peer.expect(f"state revision={1 - k}")
            peer.expect(f"tensors name=big type=f32 count={1 << 20} seed=1 like={k}")
        answers = lib.together(peers, "sync", 40)
        check({a["code"] for a in answers} == {0} and len({a["hash"] for a in answers}) == 1,
              f"packets above {NARROWER if known else NARROW} bytes get lost: shared state is transferred",
              answers)
        missed = [x for x in said(lab) if "no shared state comes" in x]
        if known:
            check(not missed, "shared state comes at once, because the links know the segment size", missed)
        else:
            check(missed, f"the log of shared state names the cause: {TEXT}")
        lab.check_alive()


def bad_pair(n_hosts, world):
    """No large packet passes between the first two hosts. If a ring can avoid this pair, all hosts
    stay."""
    hosts = make(n_hosts + 1)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow_pair(0, 1, 1500)
        lab.start_master(n_hosts)
        for host in range(n_hosts):
            lab.start_agent(host)
        peers = lab.start_peers(range(n_hosts), form=lib.form_ring)
        hosts.pair(TOO_NARROW)
        for peer in peers:
            peer.send(f"reduce {BIG} retry=19")
        answers = [p.read(90) for p in peers]
        stay = [a for a in answers if a["code"] == 0]
        print(f"# {max(a['losses'] for a in answers)} losses, "
              f"{max(a['end'] - a['begin'] for a in answers) / 1e9:.1f} s")
        check(len(stay) == world and {a["world"] for a in stay} == {world},
              f"{n_hosts} hosts, one pair has a path that is too narrow: {world} hosts go on", answers)
        check(len({a["hash"] for a in stay}) == 1,
              "hosts that go on without a pair have equal results", answers)
        check(len([x for x in said(lab) if "not even segments" in x]) > 0,
              "the log says that not even small segments pass between the pair", said(lab))
        lab.check_alive()


def bad_pair_in_mesh():
    """No large packet passes between two hosts that are not next to each other in the ring. No
    operation fails, because the links between them are not used."""
    hosts = make(5)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow_pair(0, 2, 1500)
        lab.start_master(4, options=("--algorithm", "auto"))
        for host in range(4):
            lab.start_agent(host)
        peers = lab.start_peers(range(4), form=lib.form_ring)
        hosts.pair(TOO_NARROW)
        lib.restart_agent(lab, 2)  # its links, and the links to it, are opened again
        answers = lib.together(peers, f"reduce {MEDIUM} retry=1 ids={ids_of(peers)}")
        check(not judge(answers), "the operation after the restart of an agent succeeds", answers)
        pairs = ((0, 2), (2, 0))

        def are_named():
            """Reduces. Returns whether the logs name both directions of the path."""
            wrong = judge(lib.together(peers, f"reduce {MEDIUM} ids={ids_of(peers)}"))
            if wrong:
                raise lib.Failed(f"an operation fails: {wrong}")
            return all(any(f"to host host-{other}" in x and "cannot be opened" in x and TEXT in x
                           for x in lab.agents[host].log_lines()) for host, other in pairs)

        lib.until(are_named, "the logs do not name the path that is too narrow")
        answers = lib.together(peers, f"reduce {MEDIUM} ids={ids_of(peers)}")
        check(not judge(answers) and answers[0]["world"] == 4,
              "4 hosts, one pair beside the ring has a path that is too narrow: no operation fails",
              answers)
        lab.check_alive()


def segments(lab, host):
    """Returns the segment sizes in bytes of the host's links."""
    done = subprocess.run(
        lab.hosts.command(host, ["ss", "-HtinO", "state", "established", "dport = :48150"]),
        check=True, capture_output=True, text=True, timeout=30)
    return [int(x) for x in re.findall(r"\bmss:(\d+)", done.stdout)]


def heals():
    """While operations run, agents check whether larger packets pass again. New links then use
    larger segments."""
    hosts = make(2)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(1, NARROW)
        lab.start()
        peers = lab.start_peers((0, 1))
        answers = lib.together(peers, f"reduce {BIG} retry=5 ids={ids_of(peers)}", 40)
        check(not judge(answers), "an operation succeeds on a path that loses large packets", answers)
        check(max(segments(lab, 0)) <= 1200, "the segments of a narrow path are small", segments(lab, 0))
        hosts.cable(1500)
        narrow = [a for a in lab.agents.values() if any(TEXT in x for x in a.log_lines())]
        lib.until(lambda: all(any("pass again" in x for x in a.log_lines()) for a in narrow),
                  "the agents do not notice that large packets pass again")
        lab.drop_peer(peers[1])
        lib.together(peers[:1], "until world=1")
        peers[1] = lab.start_peer(2, 1)
        peers[1].expect("create")
        peers[1].send("connect")
        peers[0].expect("until world=2")
        check(peers[1].read()["code"] == lib.SUCCESS, "a peer joins after large packets pass again")
        check(min(segments(lab, 0)) > 1200, "new links use large segments when large packets pass again",
              segments(lab, 0))
        answers = lib.together(peers, f"reduce {BIG} ids={ids_of(peers)}")
        check(not judge(answers), "an operation with large segments needs no second attempt", answers)
        lab.check_alive()


def test():
    heals()
    passes(2)
    passes(3)
    becomes_narrow(2)
    becomes_narrow(3)
    is_too_narrow()
    way_to_master()
    shared_state(known=True)
    shared_state(known=False)
    bad_pair(4, 4)
    bad_pair(3, 2)
    bad_pair_in_mesh()


lib.run(test, 300)
