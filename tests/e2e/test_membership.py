#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Large operations whose results stand where staged operands were, whose operands go through a
window, or whose outputs are disposable: a trainer, and then an agent, is killed in the middle. The
others are told, find their buffers as they were, and have the right result when they call again."""

import lib
from lib import RANK_CONNECTION_LOST, check, ids_of, judge

COUNT = 9437184  # 36 MiB: such operands go through windows
LARGE = f"type=f32 op=avg count={COUNT} tag=1 verify=1"
APART = (0, 1, 2)  # each peer on a host of its own
TOGETHER = (0, 0, 0)
MIXED = (0, 0, 1)
# What each of the peers does with its buffers. The last one is killed: it stops itself when the end
# of its operand is read, which must be memory of its own.
CASES = (
    ("staged in place", APART, ("place=in",) * 3),
    ("staged out of place", APART, ("place=out",) * 3),
    ("staged, with kept outputs of pcclMemAlloc", APART, ("place=out mem=recv",) * 3),
    ("through windows in place", TOGETHER, ("place=in",) * 3),
    ("through windows out of place", TOGETHER, ("place=out",) * 3),
    ("through a window beside registered memory", TOGETHER,
     ("place=in mem=shared", "place=out", "place=in")),
    ("with disposable outputs between hosts", APART,
     ("place=out mem=recv disposable=1", "place=out mem=shared disposable=1",
      "place=out mem=recv disposable=1")),
    ("with disposable outputs through windows", TOGETHER,
     ("place=out mem=recv disposable=1",) * 3),
    ("with disposable outputs of some", MIXED,
     ("place=out mem=recv disposable=1", "place=out mem=recv",
      "place=out mem=recv disposable=1")),
)


def started(peers, places, seed, frozen=None, retry=0):
    """Has all of them reduce. frozen: this one's operand is not read to its end."""
    for peer, place in zip(peers, places):
        peer.send(f"reduce {LARGE} seed={seed} {place} ids={ids_of(peers)} retry={retry} "
                  f"freeze={2 * int(peer is frozen)}")


def amid(lab, peers, frozen):
    """Until it has stopped, and hosts of others have some of the result."""
    def some():
        rows = [lib.ask("--agent", lab.agents[p.host], "ops") for p in peers if p is not frozen]
        return any(len(r) == 1 and 0 < r[0]["done"] < r[0]["bytes"] for r in rows)

    lib.await_stop(frozen)
    lib.until(some, "nobody has any of the result")


def killed_trainer(name, where, places):
    """Without a retry first: what the call says and leaves. Then again, on a smaller ring."""
    with lib.Lab(max(where) + 1) as lab:
        lab.start()
        peers = lab.start_peers(where, streams=2, form=lib.form_ring)
        survivors, victim = peers[:-1], peers[-1]
        started(peers, places, 1)
        wrong = judge([p.read() for p in peers])
        check(not wrong, f"{name}: a result", wrong)
        started(peers, places, 2, frozen=victim)
        amid(lab, peers, victim)
        victim.kill()
        answers = [p.read() for p in survivors]
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers),
              f"{name}: the others are told, and their buffers are as before", answers)
        started(survivors, places, 3)
        answers = [p.read() for p in survivors]
        wrong = judge(answers)
        check(not wrong and all(a["world"] == 2 for a in answers),
              f"{name}: called again, it succeeds", wrong or answers)
        lab.check_alive()


def killed_agent(name, where, places):
    """Its peers are told once, and others too; with the same buffers all succeed together."""
    with lib.Lab(max(where) + 1) as lab:
        lab.start()
        peers = lab.start_peers(where, streams=2, form=lib.form_ring)
        started(peers, places, 1)
        wrong = judge([p.read() for p in peers])
        if wrong:
            raise lib.Failed(f"{name}: {wrong}")
        started(peers, places, 2, frozen=peers[-1], retry=5)
        amid(lab, peers, peers[-1])
        lib.restart_agent(lab, 0)
        lib.wake(peers[-1])
        answers = [p.read() for p in peers]
        wrong = judge(answers)
        check(not wrong and all(a["world"] == 3 for a in answers)
              and max(a["losses"] for a in answers) == 1,
              f"{name}: an agent is killed, and the call repeated with the same buffers",
              wrong or answers)


def test():
    for case in CASES:
        killed_trainer(*case)
        killed_agent(*case)


lib.run(test, 900)
