#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Agents that are killed or end while a process that knows them is in no run. What needs an agent waits
for the next one, as it does for peers; what does not need one does not."""

import signal
import time

import lib
from lib import AGENT_UNAVAILABLE, SUCCESS, Failed, check


def amid_restart(lab, peer, line, number):
    """A call that is made while there is no agent."""
    old = lab.agents[0]
    if number == signal.SIGKILL:
        lab.drop(old)
    else:
        lab.end(old, number)
    peer.send("attr", line)
    peer.read()  # the line is next
    lab.start_agent(0, path=old.socket, admin=old.admin)
    listens = time.monotonic_ns()
    answer = peer.read()
    if answer["code"] != SUCCESS or answer["begin"] >= listens:
        raise Failed(f"{line}, without an agent for a while: {answer}")


def agents_that_return():
    """Its process has known an agent, and has no communicator that is connected."""
    with lib.Lab(1) as lab:
        lab.start()
        peer = lab.start_peer(0)
        peer.expect("create")
        answer = peer.call("connect")  # there is a session from here on
        check(answer["code"] == SUCCESS, "a peer alone", answer)
        peer.expect("destroy")
        for number in (signal.SIGKILL, signal.SIGTERM):
            peer.expect("create")
            amid_restart(lab, peer, "alloc bytes=300000", number)
            amid_restart(lab, peer, "connect", number)
            peer.expect("destroy")
            check(peer.expect("free")["check"] == "ok", "memory and pcclConnect wait for an agent "
                  f"that ends by {number.name}, and for the one after it")
        lab.check_alive()


def agents_for_good():
    """One that does not come back: what needs it waits, and not for ever; nothing else does."""
    with lib.Lab(1) as lab:
        lab.start()
        agent = lab.agents[0]
        bounded = [lab.start_peer(k, env={"PCCL_AGENT_LEASE_MS": "900"}) for k in range(2)]
        patient = lab.start_peer(2, env={"PCCL_AGENT_LEASE_MS": "1000000"})
        for peer in (*bounded, patient):
            peer.expect("create")
            peer.expect("alloc bytes=5000")
        bounded[0].expect("free")
        lab.drop(agent)
        for peer, line in zip(bounded, ("alloc bytes=300000", "connect")):
            answer = peer.call(line)
            check(answer["code"] == AGENT_UNAVAILABLE and "within 900 ms" in answer["text"]
                  and answer["end"] - answer["begin"] >= 900 * 10**6,
                  f"{line}: the bound is kept: {answer['text']}", answer)
        patient.expect("destroy")
        check(patient.expect("free")["check"] == "ok",
              "nobody waits for an agent to give a communicator or memory back")
        stranger = lab.start_peer(3, env={"PCCL_AGENT_LEASE_MS": "1000000"})
        stranger.expect("create")
        for line in ("alloc bytes=1", "connect"):
            answer = stranger.call(line)
            check(answer["code"] == AGENT_UNAVAILABLE and "PCCL_AGENT_SOCKET" in answer["text"],
                  f"{line}: who has known no agent does not wait for one", answer)
        lab.start_agent(0, path=agent.socket, admin=agent.admin)
        for peer in (*bounded, stranger):
            if peer is not bounded[1]:
                peer.expect("alloc bytes=5000")
            peer.expect("free")
        check(True, "an agent at last: the calls succeed when they are repeated")
        lab.check_alive()


def test():
    agents_that_return()
    agents_for_good()


lib.run(test, 120)
