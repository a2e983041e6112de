#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Situations of programs that were written for PCCL 1.0: deaths during pcclSynchronizeSharedState,
after which no peer repeats its call; pcclOptimizeTopology; counts of zero; calls without other
peers."""

import lib
from lib import (INVALID_USAGE, SUCCESS, TOO_FEW_PEERS, TOPOLOGY_OPTIMIZATION_FAILED,
                 UPDATE_TOPOLOGY_FAILED, check, ids_of, together)

TENSOR = "tensors name=w type=f32 count=1000 seed=1 like=0"
REDUCE = "reduce type=f32 op=sum count=1000 place=in tag=1 seed={} ids={} verify=1"


def give_state(peers, revision):
    for peer in peers:
        peer.expect(f"state revision={revision}")
        peer.expect(TENSOR)


def sync_survives(lab, first, voted):
    """Kills the last peer while the others wait for it. voted: whether the victim votes before its
    death."""
    peers = lab.start_peers([0, 1, 1, 0], first=first)
    give_state(peers, 3)
    answers = together(peers, "sync")
    check({a["code"] for a in answers} == {SUCCESS}, "all peers synchronize", answers)
    give_state(peers, 4)
    waiting, victim = peers[:2] + ([peers[3]] if voted else []), peers[3]
    for peer in waiting:
        peer.send("sync")
    lib.until(lambda: any(o["votes"] == len(waiting)
                          for o in lib.ask("--master", lab.master, "ops")),
              "the votes do not arrive")
    victim.kill()
    lab.drop_peer(victim)
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == 3,
              "the master does not notice the death")
    peers[2].send("sync")
    answers = [peer.read() for peer in peers[:3]]
    check([a["code"] for a in answers] == [SUCCESS] * 3,
          f"survivors synchronize, {'after' if voted else 'before'} the vote of the peer that died", answers)
    answers = together(peers[:3], REDUCE.format(1, ids_of(peers[:3])))
    check([a["code"] for a in answers] == [SUCCESS] * 3,
          "survivors reduce after a synchronization in which a peer died",
          answers)
    leave(lab, peers[:3])


def leave(lab, peers):
    for peer in peers:
        peer.expect("destroy")
        lab.drop_peer(peer)
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == 0,
              "the master does not notice that the peers have left")


def optimize(lab):
    peers = lab.start_peers([0, 1], first=20)
    peers[0].send("optimize")
    peers[1].send("optimize")
    answers = [peer.read() for peer in peers]
    check([a["code"] for a in answers] == [SUCCESS] * 2, "pcclOptimizeTopology succeeds", answers)
    peers[0].send("optimize")
    peers[1].send("update")
    answers = [peer.read() for peer in peers]
    check([a["code"] for a in answers] == [SUCCESS] * 2,
          "pcclOptimizeTopology of one peer meets pcclUpdateTopology of another", answers)
    peers[1].expect("destroy")
    lab.drop_peer(peers[1])
    peers[0].expect("update")
    answer = peers[0].call("optimize")
    check(answer["code"] == INVALID_USAGE,
          "pcclOptimizeTopology without other peers returns pcclInvalidUsage", answer)
    answer = peers[0].call("submit slot=0 type=f32 op=sum count=4 place=in tag=1 seed=1")
    check(answer["code"] == TOO_FEW_PEERS,
          "pcclAllReduceAsync without other peers returns pcclTooFewPeers at once",
          answer)
    leave(lab, peers[:1])


def kicked(lab):
    peers = lab.start_peers([0, 1], first=30)
    give_state(peers, 3)
    together(peers, "sync")
    give_state(peers, 9)
    answers = together(peers, "sync")
    check([a["code"] for a in answers] == [INVALID_USAGE] * 2,
          "peers that offer a wrong revision are kicked", answers)
    for peer, call, code, text in zip(
            peers, ("update", "optimize"), (UPDATE_TOPOLOGY_FAILED, TOPOLOGY_OPTIMIZATION_FAILED),
            ("pcclUpdateTopology returns pcclUpdateTopologyFailed",
             "pcclOptimizeTopology returns pcclTopologyOptimizationFailed")):
        answer = peer.call(call)
        check(answer["code"] == code, f"after a kick {text}", answer)
        answer = peer.call("update")
        check(answer["code"] == INVALID_USAGE,
              "a repeated call after a kick returns pcclInvalidUsage, so that a retry loop ends", answer)
        lab.drop_peer(peer)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        sync_survives(lab, 0, voted=False)
        sync_survives(lab, 10, voted=True)
        optimize(lab)
        kicked(lab)
        lab.check_alive()


lib.run(test, 120)
