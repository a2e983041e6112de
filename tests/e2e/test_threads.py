#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On each of two hosts the main thread asks for newcomers while another thread reduces. Neither
disturbs the other. A call that a thread is not allowed to make is refused and changes nothing."""

import lib
from lib import INVALID_USAGE, PENDING_ASYNC_OPS, SUCCESS, check, ids_of, judge

OPERATIONS = 100
LINE = "type=f32 op=sum count=300007 tag=3"


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 1), streams=2)
        for peer in peers:
            peer.send(f"threads n={OPERATIONS} {LINE} ids={ids_of(peers)} verify=1")
        newcomer = lab.start_peer(9, 0)
        newcomer.send("create streams=2", "connect")
        answers = [p.read() for p in peers]
        check(all(a["code"] == SUCCESS and a["asked"] >= 20 for a in answers),
              f"{answers[0]['asked']} pending votes are answered until a newcomer is there", answers)
        check(len({a["asked"] for a in answers}) == 1,
              "all peers ask equally often until the newcomer is there", answers)
        check(all(a["result"] == SUCCESS and a["done"] == OPERATIONS and a["check"] == "ok"
                  for a in answers) and len({a["hash"] for a in answers}) == 1,
              f"other threads complete {OPERATIONS} operations during the pending votes", answers)
        check(all(a["update"] == PENDING_ASYNC_OPS for a in answers),
              "pcclUpdateTopology is refused while an operation is in flight", answers)
        check(all(a["await"] == INVALID_USAGE for a in answers),
              "a thread cannot await an operation that another thread has launched", answers)
        check(all(a["launch"] == INVALID_USAGE for a in answers),
              "two threads cannot launch operations at the same time", answers)
        check(all(a["other_update"] == INVALID_USAGE for a in answers),
              "only the main thread can update the topology", answers)
        peers.append(newcomer)
        answers = lib.together(peers[:-1], f"until world={len(peers)}")
        joined = [newcomer.read(), newcomer.read()]
        check(all(a["code"] == SUCCESS for a in (*answers, *joined)),
              "the newcomer joins after the pending votes",
              (answers, joined))
        wrong = judge(lib.together(peers, f"reduce {LINE} ids={ids_of(peers)} verify=1"))
        check(not wrong, "all peers reduce with the newcomer", wrong)
        lab.check_alive()


lib.run(test, 120)
