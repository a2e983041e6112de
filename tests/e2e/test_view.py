#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks all four attributes after each kind of call on every peer. They describe the state at the
end of the peer's last call, are the same for all peers of this call, and do not change between
calls."""

import json
import signal
import subprocess
import time

import lib
from lib import (RANK_CONNECTION_LOST, SUCCESS, TOO_FEW_PEERS, UPDATE_TOPOLOGY_FAILED, Failed, check,
                 ids_of, judge, together)

AGENT_OPTIONS = ("--stopped-timeout-ms", "1000")
OP = "type=f32 op=sum count=1000"


def rows(lab, table):
    done = subprocess.run([lib.CTL, "--json", "--master", lab.master.admin, table], check=True,
                          capture_output=True, text=True, timeout=10)
    return json.loads(done.stdout)[table]


def await_accepted(lab, number):
    """Waits until the master has `number` accepted peers."""
    deadline = time.monotonic() + lib.WAIT
    while rows(lab, "status")[0]["accepted"] != number:
        if time.monotonic() > deadline:
            raise Failed(f"the master does not have {number} peers: {rows(lab, 'status')}")
        time.sleep(0.01)


def attributes(peer):
    answer = peer.call("attr")
    return tuple(answer[k] for k in ("global", "group", "groups", "largest"))


def see(what, *expected):
    """Checks attributes. expected: pairs of peers and the attributes that each of them must have."""
    seen = [(p.number, attributes(p), want) for peers, want in expected for p in peers]
    check(all(got == want for _, got, want in seen), f"every peer has the expected attributes {what}",
          [s for s in seen if s[1] != s[2]])


def reduce(peers, what=SUCCESS, op=OP, ids=None):
    answers = together(peers, f"reduce {op} tag=5 seed=3 ids={ids or ids_of(peers)}")
    wrong = judge(answers) if what == SUCCESS else any(a["code"] != what for a in answers)
    check(not wrong, f"an all-reduce of {len(peers)} returns {what}", answers)


def done_before(lab, a, b, c, others):
    """The critical case: two operations are in flight, the first one is done, and then a peer is
    lost."""
    old, new = (5, 3, 2, 3), (4, 2, 2, 2)
    members, ids = (a, b, c), ids_of((a, b, c))
    for peer in members:
        peer.send(f"submit slot=1 tag=1 seed=1 ids={ids} {OP}")
    for peer in (a, b):
        peer.send(f"submit slot=2 tag=2 seed=2 ids={ids} {OP}")
    for peer in (a, b, c, a, b):
        if peer.read()["code"] != SUCCESS:
            raise Failed("submit")
    first = a.call("await slot=1")
    see("after an operation that succeeded", ((a,), old))
    lab.drop_peer(c)
    await_accepted(lab, 4)
    second = b.call("await slot=1")
    check(judge([first, second]) is None, "the operation before the loss succeeds for all", (first, second))
    see("after the same operation, awaited after the loss of a peer", ((a, b), old))
    answers = together((a, b), "await slot=2")
    check(all(x["code"] == RANK_CONNECTION_LOST for x in answers),
          "the operation during the loss fails for the remaining peers", answers)
    see("after the call that fails because of the loss", ((a, b), new))
    see("peers of the other group before their next call", (others, (5, 2, 2, 3)))
    reduce(others)
    see("after a call of the other group", (others, new))


def votes(lab, peers, victim):
    """a and b are in group 0, the others in group 1."""
    a, b, d = peers
    lab.drop_peer(victim)
    await_accepted(lab, 3)
    see("between calls, after a loss", (peers, (4, 2, 2, 2)))
    together(peers, "pending")
    see("after pcclArePeersPending", ((a, b), (3, 2, 2, 2)), ((d,), (3, 1, 2, 2)))
    reduce((d,), TOO_FEW_PEERS, f"{OP} retry=2")  # the first call fails because of the loss
    see("after pcclTooFewPeers", ((d,), (3, 1, 2, 2)))
    newcomer = lab.start_peer(7, 0, group=9)
    newcomer.send("create", "connect")
    newcomer.read()
    deadline = time.monotonic() + lib.WAIT
    while not together(peers, "pending")[0]["pending"]:
        if time.monotonic() > deadline:
            raise Failed("the newcomer is not pending")
    see("while a newcomer waits", ((a, b), (3, 2, 2, 2)), ((d,), (3, 1, 2, 2)))
    together(peers, "update")
    if newcomer.read()["code"] != SUCCESS:
        raise Failed("connect")
    see("after pcclUpdateTopology and pcclConnect", ((a, b), (4, 2, 3, 2)),
        ((d, newcomer), (4, 1, 3, 2)))
    return newcomer


def daemons(lab, a, b, others):
    """Agents and masters are restarted, with a loss in between that no call has reported."""
    now = (4, 2, 3, 2)
    path, admin = lab.agents[1].socket, lab.agents[1].admin
    lab.drop(lab.agents[1])
    see("after the death of the agent", ((a, b), now))
    lab.start_agent(1, path=path, admin=admin, options=AGENT_OPTIONS)
    answers = together((a, b), f"reduce {OP} tag=5 seed=4 ids={ids_of((a, b))} retry=5")
    check(judge(answers) is None, "an all-reduce succeeds with a new agent", answers)
    see("after an all-reduce with a new agent", ((a, b), now))
    lab.drop_peer(others[1])
    await_accepted(lab, 3)
    port = lab.master.port
    lab.drop(lab.master)
    see("after the death of the master", ((a, b), now), ((others[0],), (4, 1, 3, 2)))
    lab.start_master(port=port)
    reduce((a, b))
    see("after an all-reduce with a new master", ((a, b), (3, 2, 2, 2)),
        ((others[0],), (4, 1, 3, 2)))
    together((a, b, others[0]), "pending")
    see("after a vote with a new master", ((a, b), (3, 2, 2, 2)), ((others[0],), (3, 1, 2, 2)))


def removed(lab, a, b):
    """Peer b is stopped for too long."""
    b.process.send_signal(signal.SIGSTOP)
    await_accepted(lab, 2)
    b.process.send_signal(signal.SIGCONT)
    see("a removed peer and the others before their next call", ((a, b), (3, 2, 2, 2)))
    answers = [p.call(f"reduce {OP} tag=6 seed=4 ids={ids_of((a, b))}") for p in (a, b)]
    check([x["code"] for x in answers] == [RANK_CONNECTION_LOST] * 2,
          "the next call fails because a peer was removed", answers)
    see("after the call that fails because a peer was removed", ((a,), (2, 1, 2, 1)), ((b,), (-1, -1, -1, -1)))
    answer = b.call("update")
    check(answer["code"] == UPDATE_TOPOLOGY_FAILED, "a removed peer cannot update the topology", answer)


def test():
    with lib.Lab(2) as lab:
        lab.start(agent_options=AGENT_OPTIONS)
        peers = [lab.start_peer(k, host, group=group) for k, (host, group) in
                 enumerate(((0, 0), (1, 0), (1, 0), (0, 1), (1, 1)))]
        a, b, c, d, e = peers
        lib.form_run(peers)
        see("after all peers have connected", ((a, b, c), (5, 3, 2, 3)), ((d, e), (5, 2, 2, 3)))
        reduce((a, b, c))
        reduce((d, e))
        see("after an all-reduce of each group", ((a, b, c), (5, 3, 2, 3)), ((d, e), (5, 2, 2, 3)))
        done_before(lab, a, b, c, (d, e))
        newcomer = votes(lab, (a, b, d), e)
        daemons(lab, a, b, (d, newcomer))
        removed(lab, a, b)
        lab.check_alive()


lib.run(test, 120)
