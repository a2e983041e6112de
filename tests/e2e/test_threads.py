#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On each of two hosts the main thread asks for newcomers while another thread reduces, and nothing
disturbs the other; what is not a thread's call is refused and changes nothing."""

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
              f"{answers[0]['asked']} questions are answered until a newcomer is there", answers)
        check(len({a["asked"] for a in answers}) == 1, "by the same answer for all", answers)
        check(all(a["result"] == SUCCESS and a["done"] == OPERATIONS and a["check"] == "ok"
                  for a in answers) and len({a["hash"] for a in answers}) == 1,
              f"meanwhile {OPERATIONS} operations are done by other threads", answers)
        check(all(a["update"] == PENDING_ASYNC_OPS for a in answers),
              "pcclUpdateTopology waits for no operation in flight: it is refused", answers)
        check(all(a["await"] == INVALID_USAGE for a in answers),
              "who awaits must be who launched", answers)
        check(all(a["launch"] == INVALID_USAGE for a in answers),
              "two threads do not launch at a time", answers)
        check(all(a["other_update"] == INVALID_USAGE for a in answers),
              "the topology is the main thread's", answers)
        peers.append(newcomer)
        answers = lib.together(peers[:-1], f"until world={len(peers)}")
        joined = [newcomer.read(), newcomer.read()]
        check(all(a["code"] == SUCCESS for a in (*answers, *joined)), "the newcomer comes in",
              (answers, joined))
        wrong = judge(lib.together(peers, f"reduce {LINE} ids={ids_of(peers)} verify=1"))
        check(not wrong, "and all go on", wrong)
        lab.check_alive()


lib.run(test, 120)
