#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A master is stopped. Meanwhile all peers of a host make a call, except for one late peer. They
wait until their agent votes without the late peer. Then one of the peers that have voted leaves.
When the master runs again, it does not know of the agent's vote. The remaining peers and the late
peer go on, on all hosts."""

import json
import re
import signal
import subprocess
import time

import lib
from lib import Failed, check, ids_of, judge

COUNT = 4099
STILL = 2.4  # seconds, after which the master takes over its run again


def await_vote(lab, host, tag):
    """Waits until the agent has voted for the peers that have called."""
    deadline = time.monotonic() + lib.WAIT
    ops = {}
    while ops.get(tag) != "voting":
        if time.monotonic() > deadline:
            raise Failed(f"the agent does not vote without the late peer: {ops}")
        done = subprocess.run([lib.CTL, "--json", "--agent", lab.agents[host].admin, "ops"],
                              capture_output=True, text=True, timeout=lib.WAIT, check=True)
        ops = {op["tag"]: op["state"] for op in json.loads(done.stdout)["ops"]}


def await_recovery(lab, n):
    """Waits until the master has taken its run over n times."""
    deadline = time.monotonic() + lib.WAIT
    while sum(bool(re.search(r"\brecovered: ", line)) for line in lab.master.log_lines()) < n:
        if time.monotonic() > deadline:
            raise Failed("the master does not take its run over")
        time.sleep(0.05)


def kill(lab, peer):
    lab.drop_peer(peer)


def destroy(lab, peer):
    peer.expect("destroy")
    lab.drop_peer(peer)


def scene(lab, peers, tag, leave, early):
    """On the first host the last peer is late, and the peer before it leaves. early: the late
    peer calls before the master goes on. Returns the remaining peers."""
    *callers, late = [p for p in peers if p.host == 0]
    victim = callers.pop()
    far = [p for p in peers if p.host]
    left = callers + [late] + far
    line = (f"type=f32 op=sum count={COUNT} tag={tag} seed={tag} ids={ids_of(left)} verify=1 "
            "retry=5")
    stop = lab.master.process.send_signal
    stop(signal.SIGSTOP)
    began = time.monotonic()
    for peer in callers + far:
        peer.send(f"reduce {line}")
    victim.expect(f"submit slot=0 {line}")
    await_vote(lab, 0, tag)
    leave(lab, victim)
    if early:
        late.send(f"reduce {line}")
    time.sleep(max(0.0, began + STILL - time.monotonic()))
    stop(signal.SIGCONT)
    if not early:
        await_recovery(lab, tag)
        late.send(f"reduce {line}")
    answers = [p.read() for p in left]
    wrong = judge(answers)
    worlds = [a["world"] for a in answers]
    losses = [a["losses"] for a in answers]
    if not wrong and (set(worlds) != {len(left)} or max(losses) > 1):
        wrong = f"world sizes {worlds}, losses {losses}"
    check(not wrong, f"{leave.__name__}, {'before' if early else 'after'} the master goes on: the "
          f"{len(left)} remaining peers succeed, losses {losses}", wrong)
    return left


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 0, 0, 0, 1))
        peers = scene(lab, peers, 1, kill, early=False)
        peers = scene(lab, peers, 2, destroy, early=False)
        peers = scene(lab, peers, 3, kill, early=True)
        lab.check_alive()
    with lib.Lab(1) as lab:
        lab.start()
        peers = scene(lab, lab.start_peers((0, 0, 0, 0)), 1, kill, early=False)
        peers = scene(lab, peers, 2, destroy, early=True)
        lab.check_alive()


lib.run(test, 120)
