#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hosts without IPv4: operations, shared state, a newcomer, and the deaths of a peer, an agent and
the master."""

import lib
from lib import SUCCESS, check, ids_of, judge

OP = "type=f32 op=sum count=100000"


class Hosts(lib.Namespaces):
    def __init__(self, n_hosts):
        super().__init__(n_hosts)
        for host, address in list(self.addresses.items()):
            at = ("-n", self.name(host), "addr")
            lib.netns.ip(*at, "add", f"fd00:84::{host + 1}/64", "dev", "eth0", "nodad")
            lib.netns.ip(*at, "del", f"{address}/24", "dev", "eth0")

    def address(self, host):
        return f"[fd00:84::{host + 1}]"


def works(peers, what):
    answers = lib.together(peers, f"reduce {OP} retry=5 ids={ids_of(peers)}", 40)
    check(not judge(answers) and {a["world"] for a in answers} == {len(peers)}, what, answers)


def test():
    hosts = lib.make_namespaces(3, Hosts)
    if not hosts:
        raise lib.Skipped("needs root and network namespaces")
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 1))
        works(peers, "two hosts without IPv4 reduce")
        for k, peer in enumerate(peers):
            peer.expect(f"state revision={int(k == 0)}")
            peer.expect(f"tensors name=big type=f32 count={1 << 20} seed=1 like={k}")
        answers = lib.together(peers, "sync", 40)
        check({a["code"] for a in answers} == {SUCCESS} and len({a["hash"] for a in answers}) == 1,
              "shared state is transferred over IPv6", answers)

        fresh = lab.start_peer(3, 2)
        fresh.expect("create")
        fresh.send("connect", "until world=4")
        lib.together(peers, "until world=4")
        check(fresh.read()["code"] == SUCCESS, "a newcomer connects over IPv6")
        fresh.read()
        peers.append(fresh)
        works(peers, "peers without IPv4 reduce with a newcomer")
        lab.drop_peer(peers.pop(1))
        works(peers, "peers without IPv4 reduce after the death of a peer")
        lib.restart_agent(lab, 1)
        works(peers, "peers without IPv4 reduce after the death of an agent")
        lab.drop(lab.master)
        lab.start_master(port=lab.master.port)
        works(peers, "peers without IPv4 reduce with the next master")
        lab.check_alive()


lib.run(test, 120)
