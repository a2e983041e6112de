#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cases that a run refuses without harm to its members: calls that disagree or are wrong, and a
newcomer that one member cannot reach."""

import time

import lib
from lib import INVALID_ARGUMENT, RANK_CONNECTION_FAILED, SUCCESS, ask, check, ids_of, judge

INTERNAL_ERROR = 2
LINE = "type=f32 op=sum count=1000"
# The deviating call of one peer, and the names of both values in the error.
OTHERWISE = (("count", "type=f32 op=sum count=999", ("1000", "999")),
             ("data type", "type=u32 op=sum count=1000", ("float", "uint32")),
             ("operator", "type=f32 op=max count=1000", ("sum", "max")))
UNREACHABLE_NS = 5 * 10**9
SLACK_NS = 10**9  # for a busy machine


def disagreements():
    """One peer disagrees with peers of its host and of another host."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        for odd in (peers[2], peers[1]):
            where = "this" if odd.host == 0 else "another"
            for what, otherwise, values in OTHERWISE:
                for peer in peers:
                    peer.send(f"reduce {otherwise if peer is odd else LINE} tag=5")
                answers = [p.read() for p in peers]
                check(all(a["code"] == INVALID_ARGUMENT and a["check"] == "ok" and "tag 5" in a["text"]
                          and all(v in a["text"] for v in (what, *values)) for a in answers),
                      f"a peer of {where} host disagrees: {answers[0]['text']}", answers)
                wrong = judge(lib.together(
                    peers, f"reduce {LINE} tag=5 ids={ids_of(peers)} verify=1"))
                check(not wrong, "all peers remain members, and the next call of this tag succeeds", wrong)
        # Several operations in one call. One peer may have fewer of them in flight than the others.
        for peer in peers:
            line = OTHERWISE[0][1] if peer is peers[0] else LINE
            peer.send(f"several n=4 window={1 if peer is peers[0] else 4} {line} tag=10")
        answers = [peer.read() for peer in peers for _ in range(4)]
        check(all(a["code"] == INVALID_ARGUMENT and a["check"] == "ok" for a in answers),
              "all peers get the error of a disagreement when their windows differ", answers)
        status = ask("--master", lab.master, "status")[0]
        check([status[k] for k in ("accepted", "lost_members", "kicks")] == [3, 0, 0],
              "no peer is lost because of a disagreement", status)
        lab.check_alive()


# The invalid value that one peer passes, the code, and a part of the error.
WRONG = (("type", INVALID_ARGUMENT, "datatype"), ("count", INVALID_ARGUMENT, "the limit"),
         ("op", INVALID_ARGUMENT, "no operation 77"),
         ("quantization", INVALID_ARGUMENT, "there is no quantization algorithm 3"))


def all_told(peers, n, code, words):
    """Checks that the next n answers of each peer have this code and words. Buffers are unchanged."""
    answers = [peer.read() for peer in peers for _ in range(n)]
    return all(a["code"] == code and a["check"] == "ok" and words in a["text"]
               for a in answers), answers


def wrong_calls():
    """If the library of one peer refuses a call, the others do not wait for it."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        for odd in peers[1:]:
            for wrong, code, words in WRONG:
                for peer in peers:
                    peer.send(f"reduce {LINE} tag=5 {f'wrong={wrong}' if peer is odd else ''}")
                good, answers = all_told(peers, 1, code, words)
                check(good, f"{wrong} is wrong at peer {odd.number}: {answers[0]['text']}", answers)
        for peer in peers:
            odd = peer is peers[0]
            peer.expect(f"submit slot=0 {LINE} tag=5 {'wrong=type' if odd else ''}")
            peer.send("await slot=0")
        good, answers = all_told(peers, 1, INVALID_ARGUMENT, "datatype")
        check(good, "a refused operation gives all peers the error when it is awaited later", answers)
        for peer in peers:
            peer.send(f"several n=3 window=2 {LINE} tag=10 {'wrong=op' if peer is peers[2] else ''}")
        good, answers = all_told(peers, 3, INVALID_ARGUMENT, "no operation 77")
        check(good, "pcclAllReduceMultipleWithRetry gives all peers the error of a refused operation", answers)
        wrong = judge(lib.together(peers, f"reduce {LINE} tag=5 ids={ids_of(peers)} verify=1"))
        status = ask("--master", lab.master, "status")[0]
        check(not wrong and [status[k] for k in ("accepted", "lost_members", "kicks")] == [3, 0, 0],
              "no peer is lost because of a refused call, and the next call succeeds", f"{wrong} {status}")
        lab.check_alive()


# The invalid table of one peer, its number of descriptors, and a part of the error.
TABLES = (("window=0", 3, "max_in_flight must be at least 1, not 0"),
          ("window=2 twice=1", 4, "tag 10 is already that of descriptors[0]"))


def wrong_tables():
    """If the library of one peer refuses a table, all peers get the error, whatever their windows
    are."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        for odd in peers:
            for wrong, n, words in TABLES:
                for peer in peers:
                    peer.send(f"several n={n} {wrong} {LINE} tag=10" if peer is odd else
                              f"several n=3 window={1 + peer.number} {LINE} tag=10")
                good, answers = all_told([odd], n, INVALID_ARGUMENT, words)
                check(good and all(a["text"].startswith(("max", "descriptors[3]")) for a in answers),
                      f"{wrong} is wrong at peer {odd.number}: {answers[0]['text']}", answers)
                others = [p for p in peers if p is not odd]
                good, answers = all_told(others, 3, INVALID_ARGUMENT, words)
                check(good and all(f"pid {odd.process.pid}" in a["text"] for a in answers),
                      f"the others get the error of a refused table: {answers[0]['text']}", answers)
        wrong = judge(lib.together(peers, f"reduce {LINE} tag=10 ids={ids_of(peers)} verify=1"))
        status = ask("--master", lab.master, "status")[0]
        check(not wrong and [status[k] for k in ("accepted", "lost_members", "kicks")] == [3, 0, 0],
              "no peer is lost because of a refused table, and the next call succeeds", f"{wrong} {status}")
        # One peer already has an operation with this tag in flight. It meets the operations that
        # the others start with the same tag.
        peers[0].expect(f"submit slot=9 {LINE} tag=10")
        for peer in peers:
            peer.send(f"several n=3 window=2 {LINE} tag=10 ids={ids_of(peers)}")
        good, answers = all_told(peers[:1], 3, INVALID_ARGUMENT, "tag 10")
        peers[0].send("await slot=9")
        answers = [[p.read() for _ in range(3)] for p in peers[1:]] + [[peers[0].read()]]
        check(all(a["code"] == SUCCESS for x in answers for a in x),
              "a tag in flight meets the same tag in a table", answers)
        lab.check_alive()


def unreachable(hosts):
    """A newcomer reaches the master and host 0, but not host 1."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers((0, 1), streams=2)
        hosts.deafen(1, 2, True)
        hosts.deafen(2, 1, True)
        fresh = lab.start_peer(2, 2)
        fresh.expect("create streams=2")
        fresh.send("connect")
        pending = lib.together(peers, "pending")
        voted = time.monotonic_ns()
        answers = lib.together(peers, "update")
        took = max(a["end"] for a in answers) - voted
        joined = fresh.read()
        check(joined["code"] == RANK_CONNECTION_FAILED and "host-1" in joined["text"],
              f"a newcomer that cannot be reached gets the reason: {joined['text']}", joined)
        check(all(a["code"] == SUCCESS and a["world"] == 2 for a in answers)
              and not any(a["pending"] for a in pending) and took < SLACK_NS,
              f"no vote waits for a newcomer that cannot be reached, {took / 1e6:.0f} ms", (pending, answers))
        line = f"reduce {LINE} tag=1 verify=1"
        wrong = judge(lib.together(peers, f"{line} ids={ids_of(peers)}"))
        check(not wrong, "no call of the members fails because of the newcomer", wrong)
        hosts.deafen(1, 2, False)
        hosts.deafen(2, 1, False)
        fresh.send("connect")
        answers = [*lib.together(peers, "until world=3"), fresh.read()]
        wrong = judge(lib.together([*peers, fresh], f"{line} ids={ids_of([*peers, fresh])}"))
        check(not wrong and all(a["code"] == SUCCESS for a in answers),
              "a newcomer joins once it can be reached", f"{wrong} {answers}")
        lab.check_alive()


def test():
    disagreements()
    wrong_calls()
    wrong_tables()
    hosts = lib.make_namespaces(3)
    if hosts:
        unreachable(hosts)
    else:
        print("# the unreachable newcomer is not tested: needs root and network namespaces")


lib.run(test, 120)
