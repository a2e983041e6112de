#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several peers of one host die at once. After the same failed call all survivors see the same
world size, however late they called. So programs that depend on the size take the same branches."""

import lib
from lib import RANK_CONNECTION_LOST, check, ids_of, judge, together

OP = "type=f32 op=sum count=1000"
TRIALS = 6
STEPS = 20  # steps of a program within which it notices the deaths


def worlds(peers):
    answers = together(peers, "attr")
    return {tuple(a[k] for k in ("global", "group", "groups", "largest")) for a in answers}


def accepted(lab, number):
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == number,
              f"the master does not have {number} peers")


def start(lab):
    """Starts three peers on each of two hosts."""
    peers = lab.start_peers((0, 0, 0, 1, 1, 1))
    return peers, peers[:4], peers[4:]


def leave(lab, peers):
    for peer in peers:
        lab.drop_peer(peer)
    accepted(lab, 0)


def late(lab):
    """One survivor calls after both deaths are known, the others before the first death."""
    _, survivors, victims = start(lab)
    line = f"reduce {OP} tag=5 seed=3"
    for peer in survivors[:3]:
        peer.send(line)
    lab.drop_peer(victims[0])
    answers = [p.read() for p in survivors[:3]]
    lab.drop_peer(victims[1])
    accepted(lab, 4)
    answers.append(survivors[3].call(line))
    check({a["code"] for a in answers} == {RANK_CONNECTION_LOST},
          "a call during deaths fails for all survivors", answers)
    seen = worlds(survivors)
    check(len(seen) == 1, "a late caller sees the same world sizes as the others", seen)
    wrong = judge(together(survivors, f"{line} ids={ids_of(survivors)}"))
    check(not wrong, "the repeated call succeeds for the survivors", wrong)
    seen = worlds(survivors)
    check(seen == {(4, 4, 1, 4)}, "the world size is the number of survivors", seen)
    leave(lab, survivors)


def loop(peers):
    """Runs programs that check whether the world size has shrunk before they vote. Returns None, or what
    differed."""
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
    """Both victims are killed while all peers call."""
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
    check(not wrong,
          f"two of six die at once, {TRIALS} times: the survivors see the same results and world sizes", wrong)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        late(lab)
        at_once(lab)
        lab.check_alive()


lib.run(test, 120)
