#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Large operations whose results overwrite staged operands, whose operands go through a window, or
whose outputs are disposable. A trainer, and then an agent, is killed during the operation. The
others get the error, their buffers are unchanged, and the repeated call has the right result."""

import lib
from lib import RANK_CONNECTION_LOST, check, ids_of, judge

COUNT = 9437184  # 36 MiB; operands of this size go through windows
LARGE = f"type=f32 op=avg count={COUNT} tag=1 verify=1"
APART = (0, 1, 2)  # each peer on its own host
TOGETHER = (0, 0, 0)
MIXED = (0, 0, 1)
# The buffers of the peers. The last peer is killed. It stops itself when the end of its operand is
# read, so its operand must be in the memory of its process.
CASES = (
    ("staged in place", APART, ("place=in",) * 3),
    ("staged out of place", APART, ("place=out",) * 3),
    ("staged, with outputs from pcclMemAlloc", APART, ("place=out mem=recv",) * 3),
    ("through windows in place", TOGETHER, ("place=in",) * 3),
    ("through windows out of place", TOGETHER, ("place=out",) * 3),
    ("through a window beside registered memory", TOGETHER,
     ("place=in mem=shared", "place=out", "place=in")),
    ("with disposable outputs between hosts", APART,
     ("place=out mem=recv disposable=1", "place=out mem=shared disposable=1",
      "place=out mem=recv disposable=1")),
    ("with disposable outputs through windows", TOGETHER,
     ("place=out mem=recv disposable=1",) * 3),
    ("with disposable outputs of some peers", MIXED,
     ("place=out mem=recv disposable=1", "place=out mem=recv",
      "place=out mem=recv disposable=1")),
)


def started(peers, places, seed, frozen=None, retry=0):
    """Makes all peers reduce. frozen: the peer whose operand is not read to its end."""
    for peer, place in zip(peers, places):
        peer.send(f"reduce {LARGE} seed={seed} {place} ids={ids_of(peers)} retry={retry} "
                  f"freeze={2 * int(peer is frozen)}")


def amid(lab, peers, frozen):
    """Waits until the peer has stopped, and the agent of another peer has a part of the result."""
    def some():
        rows = [lib.ask("--agent", lab.agents[p.host], "ops") for p in peers if p is not frozen]
        return any(len(r) == 1 and 0 < r[0]["done"] < r[0]["bytes"] for r in rows)

    lib.await_stop(frozen)
    lib.until(some, "no agent has any part of the result")


def killed_trainer(name, where, places):
    """Kills a trainer during the operation, and checks the error and the buffers of the others. Then
    the others repeat the call, on a smaller ring."""
    with lib.Lab(max(where) + 1) as lab:
        lab.start()
        peers = lab.start_peers(where, streams=2, form=lib.form_ring)
        survivors, victim = peers[:-1], peers[-1]
        started(peers, places, 1)
        wrong = judge([p.read() for p in peers])
        check(not wrong, f"{name}: the operation succeeds before a death", wrong)
        started(peers, places, 2, frozen=victim)
        amid(lab, peers, victim)
        victim.kill()
        answers = [p.read() for p in survivors]
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers),
              f"{name}: the others get the loss of the killed trainer, and their buffers are "
              "unchanged", answers)
        started(survivors, places, 3)
        answers = [p.read() for p in survivors]
        wrong = judge(answers)
        check(not wrong and all(a["world"] == 2 for a in answers),
              f"{name}: the repeated call succeeds without the killed trainer", wrong or answers)
        lab.check_alive()


def killed_agent(name, where, places):
    """All peers get one error. With the same buffers the repeated call succeeds for all."""
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
              f"{name}: an agent is killed, and the call succeeds when it is repeated with the same buffers",
              wrong or answers)


def test():
    for case in CASES:
        killed_trainer(*case)
        killed_agent(*case)


lib.run(test, 900)
