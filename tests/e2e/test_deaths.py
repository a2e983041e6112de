#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several peers of one host die at once. After the same failed call all survivors see the same world,
however late they have called, so that programs which go by its size take the same turns."""

import lib
from lib import RANK_CONNECTION_LOST, check, ids_of, judge, together

OP = "type=f32 op=sum count=1000"
TRIALS = 6
STEPS = 20  # of a program, in which it tells of the deaths


def worlds(peers):
    answers = together(peers, "attr")
    return {tuple(a[k] for k in ("global", "group", "groups", "largest")) for a in answers}


def accepted(lab, number):
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == number,
              f"the master has not {number} peers")


def start(lab):
    """Three peers on each of two hosts."""
    peers = lab.start_peers((0, 0, 0, 1, 1, 1))
    return peers, peers[:4], peers[4:]


def leave(lab, peers):
    for peer in peers:
        lab.drop_peer(peer)
    accepted(lab, 0)


def late(lab):
    """One survivor calls when both deaths are known, the others before the first one."""
    _, survivors, victims = start(lab)
    line = f"reduce {OP} tag=5 seed=3"
    for peer in survivors[:3]:
        peer.send(line)
    lab.drop_peer(victims[0])
    answers = [p.read() for p in survivors[:3]]
    lab.drop_peer(victims[1])
    accepted(lab, 4)
    answers.append(survivors[3].call(line))
    check({a["code"] for a in answers} == {RANK_CONNECTION_LOST}, "the call fails for all", answers)
    seen = worlds(survivors)
    check(len(seen) == 1, "a late caller sees the same world after it", seen)
    wrong = judge(together(survivors, f"{line} ids={ids_of(survivors)}"))
    check(not wrong, "the call succeeds for those who are left", wrong)
    seen = worlds(survivors)
    check(seen == {(4, 4, 1, 4)}, "who then see their number", seen)
    leave(lab, survivors)


def loop(peers):
    """Programs that ask whether the world has shrunk before they vote. Which step each was in."""
    for _ in range(STEPS):
        answers = together(peers, f"reduce {OP} tag=5 seed=3")
        seen = worlds(peers)
        if len(seen) != 1 or len({a["code"] for a in answers}) != 1:
            return (answers, seen)
        if next(iter(seen))[0] < 5:
            together(peers, "update")
            return None
    return "nobody sees the deaths"


def at_once(lab):
    """Both are killed while all call."""
    wrong = []
    for _ in range(TRIALS):
        peers, survivors, victims = start(lab)
        for peer in peers:
            peer.send(f"reduce {OP} tag=5 seed=3")
        for peer in victims:
            peer.process.kill()
        answers = [p.read() for p in survivors]
        seen = worlds(survivors)
        if len({a["code"] for a in answers}) != 1 or len(seen) != 1:
            wrong.append((answers, seen))
        bad = loop(survivors)
        if bad:
            wrong.append(bad)
        for peer in victims:
            lab.drop_peer(peer)
        leave(lab, survivors)
    check(not wrong, f"two of six die at once, {TRIALS} times: the survivors see the same", wrong)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        late(lab)
        at_once(lab)
        lab.check_alive()


lib.run(test, 120)
