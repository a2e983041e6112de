#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two hundred operations in flight on one communicator. Operations are started while others end.
Each peer starts and awaits them in its own order. If a peer dies, the others repeat the operations
that were lost."""

import random

import lib
from lib import RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge

COUNT = 200
MEMORY = ("place=in mem=own", "place=in mem=shared", "place=out mem=own", "place=out mem=recv")


def operation(k, count=None):
    return f"type=f32 op=sum count={count or 1 + 97 * k % 4000} {MEMORY[k % 4]}"


def submit(peer, order, ids, count=None):
    peer.send(*(f"submit slot={k} tag={k} {operation(k, count)} ids={ids}" for k in order))


def started(peers, order):
    answers = [peer.read() for peer in peers for _ in order]
    return all(a["code"] == SUCCESS for a in answers), answers


def ended(peers, orders):
    """Returns the answers of all peers to each operation. Each peer awaits the operations in its
    own order."""
    for peer, order in zip(peers, orders):
        peer.send(*(f"await slot={k}" for k in order))
    answers = {k: [] for k in orders[0]}
    for peer, order in zip(peers, orders):
        for k in order:
            answers[k].append(peer.read())
    return answers


def orders_of(peers, rng):
    """Returns the orders in which each peer starts and awaits operations."""
    forth, back = list(range(COUNT)), list(range(COUNT))[::-1]
    mixed = [rng.sample(forth, COUNT) for _ in peers]
    again = [rng.sample(forth, COUNT) for _ in peers]
    opposite = [back if k % 2 else forth for k in range(len(peers))]
    return (("in one order, awaited backwards", [forth] * len(peers), [back] * len(peers)),
            ("in opposite orders, awaited backwards", opposite, [back] * len(peers)),
            ("in opposite orders, awaited as started", opposite, opposite),
            ("in any order, awaited in any order", mixed, again))


def rounds(lab, places, rng):
    peers = lab.start_peers(places, streams=2)
    ids = ids_of(peers)
    for what, starts, awaits in orders_of(peers, rng):
        for peer, order in zip(peers, starts):
            submit(peer, order, ids)
        good, answers = started(peers, starts[0])
        check(good, f"{len(peers)} peers start {COUNT} operations {what}",
              [a for a in answers if a["code"] != SUCCESS][:3])
        wrong = {k: judge(v) for k, v in ended(peers, awaits).items() if judge(v)}
        check(not wrong, f"all {COUNT} operations end, started {what}", wrong)
    # A blocking call is made while the operations that were started before it are in flight.
    for peer in peers:
        submit(peer, range(COUNT), ids)
    peers[0].send(f"reduce {operation(1)} tag=1000 ids={ids} verify=1")
    started(peers, range(COUNT))
    for peer in peers[1:]:
        peer.send(*(f"await slot={k}" for k in range(COUNT)))
        peer.send(f"reduce {operation(1)} tag=1000 ids={ids} verify=1")
    answers = [[peer.read() for _ in range(COUNT)] for peer in peers[1:]]
    last = [peer.read() for peer in peers]
    peers[0].send(*(f"await slot={k}" for k in range(COUNT)))
    answers.append([peers[0].read() for _ in range(COUNT)])
    wrong = [judge(list(a)) for a in zip(*answers) if judge(list(a))] + [judge(last) or ""]
    check(not any(wrong), "pcclAllReduce succeeds while other operations are in flight", wrong)


def death(lab, places):
    """One peer dies. The others have started all operations; the victim has started all except the
    last one."""
    peers = lab.start_peers(places)
    ids, rest = ids_of(peers), peers[:-1]
    for peer in rest:
        submit(peer, range(COUNT), ids, 20000)
    submit(peers[-1], range(COUNT - 1), ids, 20000)
    good, answers = started(rest, range(COUNT))
    started(peers[-1:], range(COUNT - 1))
    peers[-1].send(*(f"await slot={k}" for k in range(COUNT // 2)))
    peers[-1].read()
    peers[-1].kill()
    answers = ended(rest, [range(COUNT)[::-1]] * len(rest))
    lost = [k for k, v in answers.items() if v[0]["code"] == RANK_CONNECTION_LOST]
    wrong = [v for v in answers.values()
             if len({a["code"] for a in v}) != 1 or any(a["check"] != "ok" for a in v)
             or v[0]["code"] not in (SUCCESS, RANK_CONNECTION_LOST)]
    check(good and not wrong and lost,
          f"a peer dies: {len(lost)} of {COUNT} operations are lost, the same ones for all "
          "survivors", wrong[:2])
    for peer in rest:
        submit(peer, lost, ids_of(rest))
    good, answers = started(rest, lost)
    wrong = [judge(v) for v in ended(rest, [lost] * len(rest)).values() if judge(v)]
    check(good and not wrong,
          "operations that were lost by the death of a peer succeed when they are repeated", wrong[:2])


def test():
    rng = random.Random(5)
    for places in ([0, 1], [0, 0, 1]):
        with lib.Lab(2) as lab:
            lab.start()
            rounds(lab, places, rng)
            lab.check_alive()
    with lib.Lab(2) as lab:
        lab.start()
        death(lab, [0, 1, 1])
        lab.check_alive()


lib.run(test, 240)
