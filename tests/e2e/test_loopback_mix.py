#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Peers that reach the master through loopback and peers of other hosts form one run."""

import lib
from lib import check, ids_of, judge


def mixed(listen, loopback, peers_here, peers_there):
    hosts = lib.make_namespaces(3)
    if not hosts:
        raise lib.Skipped("needs network namespaces")
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master(0, listen=listen)
        for host in range(3):
            lab.start_agent(host)
        near, far = f"{loopback}:{lab.master.port}", f"{hosts.address(0)}:{lab.master.port}"
        peers = [lab.start_peer(k, 0, master=near) for k in range(peers_here)]
        peers += [lab.start_peer(k + 10, 1 + k % 2, master=far) for k in range(peers_there)]
        lib.form_run(peers, streams=2)
        answers = lib.together(
            peers, f"reduce type=f32 op=avg count=100003 tag=1 ids={ids_of(peers)} verify=1")
        wrong = judge(answers)
        check(not wrong and all(a["tx"] for a in answers),
              f"{peers_here} peers by {loopback} and {peers_there} from other hosts reduce, "
              f"master on {listen}", wrong)
        lab.check_alive()


def refused():
    """A peer whose host cannot reach the loopback address of another host gets an error that
    explains it."""
    hosts = lib.make_namespaces(2)
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master(0, listen="127.0.0.1")
        for host in range(2):
            lab.start_agent(host)
        peer = lab.start_peer(1, 1)
        peer.expect("create")
        answer = peer.call("connect")
        check(answer["code"] == lib.MASTER_CONNECTION_FAILED,
              f"the address names no master: {answer['text']}", answer)
        # the network address of a master that listens only on loopback
        peer = lab.start_peer(2, 1, master=f"{hosts.address(0)}:{lab.master.port}")
        peer.expect("create")
        answer = peer.call("connect")
        check(answer["code"] == lib.MASTER_CONNECTION_FAILED,
              f"a master that listens on loopback only: {answer['text']}", answer)


def test():
    mixed("[::]", "127.0.0.1", 1, 1)
    mixed("[::]", "[::1]", 1, 2)
    mixed("0.0.0.0", "127.0.0.1", 2, 3)
    refused()


lib.run(test, 120)
