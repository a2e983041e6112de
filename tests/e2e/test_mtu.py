#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A way that loses large packets without a word, as one does whose routers send no ICMP: the
agents say so, and go on with packets that pass. Where none are small enough, the hosts are not
connected."""

import lib
from lib import check, ids_of, judge

NARROW = 1300  # bytes of a packet
TOO_NARROW = 560  # less than the smallest that is tried
SMALL = "type=f32 op=sum count=64"
BIG = f"type=f32 op=sum count={1 << 20}"  # 4 MiB
TEXT = "small packets pass, large ones do not: MTU?"


class Hosts(lib.Namespaces):
    def narrow(self, host, size):
        """The host gets a bridge of its own. Each bridge drops what is too large for the cable that
        joins them, and no sender leaves the division into packets to a bridge."""
        def middle(*args):
            lib.netns.ip("-n", self.name("net"), "link", *args)

        for each in range(self.n_hosts):
            lib.netns.ip("-n", self.name(each), "link", "set", "eth0", "gso_max_segs", "1")
        middle("add", "remote", "type", "bridge")
        middle("set", "remote", "up")
        middle("add", "near", "type", "veth", "peer", "name", "far")
        for end, bridge in (("near", "bridge"), ("far", "remote")):
            middle("set", end, "master", bridge)
            middle("set", end, "mtu", str(size), "up")
        middle("set", f"to-{host}", "master", "remote")


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
              "a small operation passes", wrong)
        answers = lib.together(peers, f"reduce {BIG} retry=5 ids={ids_of(peers)}", 40)
        check(not judge(answers), "a large one, too", judge(answers))
        check(max(a["losses"] for a in answers) <= 2 * (n_hosts - 1),
              "after an error for each direction of the way at most",
              [a["losses"] for a in answers], said(lab), answers)
        check({a["world"] for a in answers} == {n_hosts}, "with all", answers)
        check(said(lab), f"the log says: {TEXT}")
        answers = lib.together(peers, f"reduce {BIG} ids={ids_of(peers)}")
        check(not judge(answers), "the next one needs no second attempt", answers)
        lab.check_alive()


def is_too_narrow():
    """Two hosts go on without the third. The master's host, a fourth one, has small packets only."""
    hosts = make(4)
    with lib.Lab(hosts=hosts) as lab:
        hosts.narrow(2, TOO_NARROW)
        lib.netns.ip("-n", hosts.name(3), "link", "set", "eth0", "mtu", str(TOO_NARROW))
        lab.start_master(3)
        for host in range(3):
            lab.start_agent(host)
        peers = lab.start_peers(range(3))
        stay = peers[:2]
        for peer in stay:
            peer.send(f"reduce {BIG} retry=19 ids={ids_of(peers)} or={ids_of(stay)}")
        peers[2].send(f"reduce {BIG} retry=19")
        answers = [p.read(90) for p in stay]
        check(not judge(answers) and {a["world"] for a in answers} == {2},
              f"packets above {TOO_NARROW} bytes get lost on the way to a host: the others go on",
              answers)
        print(f"# {answers[0]['losses']} losses, {(answers[0]['end'] - answers[0]['begin']) / 1e9:.1f} s")
        lab.check_alive()


def test():
    passes(2)
    passes(3)
    is_too_narrow()


lib.run(test, 240)
