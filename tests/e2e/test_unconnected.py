#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Agents are killed or end while a process that knows them is in no run. Calls that need an agent
wait for the next one, like the calls of peers. Other calls do not wait."""

import signal
import time

import lib
from lib import AGENT_UNAVAILABLE, SUCCESS, Failed, check


def amid_restart(lab, peer, line, number):
    """Makes a call while there is no agent."""
    old = lab.agents[0]
    if number == signal.SIGKILL:
        lab.drop(old)
    else:
        lab.end(old, number)
    peer.send("attr", line)
    peer.read()  # the result of the line is the next answer
    lab.start_agent(0, path=old.socket, admin=old.admin)
    listens = time.monotonic_ns()
    answer = peer.read()
    if answer["code"] != SUCCESS or answer["begin"] >= listens:
        raise Failed(f"{line}, without an agent for a while: {answer}")


def agents_that_return():
    """The process has known an agent, and has no connected communicator."""
    with lib.Lab(1) as lab:
        lab.start()
        peer = lab.start_peer(0)
        peer.expect("create")
        answer = peer.call("connect")  # from here on there is a session
        check(answer["code"] == SUCCESS, "a single peer connects", answer)
        peer.expect("destroy")
        for number in (signal.SIGKILL, signal.SIGTERM):
            peer.expect("create")
            amid_restart(lab, peer, "alloc bytes=300000", number)
            amid_restart(lab, peer, "connect", number)
            peer.expect("destroy")
            check(peer.expect("free")["check"] == "ok", "pcclMemAlloc and pcclConnect wait "
                  f"for the next agent after {number.name} has ended the agent")
        lab.check_alive()


def agents_for_good():
    """An agent does not come back. Calls that need it wait, but not for ever. Other calls do not
    wait."""
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
                  f"{line}: the call ends after the lease: {answer['text']}", answer)
        patient.expect("destroy")
        check(patient.expect("free")["check"] == "ok",
              "destroying a communicator and freeing memory do not wait for an agent")
        stranger = lab.start_peer(3, env={"PCCL_AGENT_LEASE_MS": "1000000"})
        stranger.expect("create")
        for line in ("alloc bytes=1", "connect"):
            answer = stranger.call(line)
            check(answer["code"] == AGENT_UNAVAILABLE and "PCCL_AGENT_SOCKET" in answer["text"],
                  f"{line}: a process that has known no agent does not wait for one", answer)
        lab.start_agent(0, path=agent.socket, admin=agent.admin)
        for peer in (*bounded, stranger):
            if peer is not bounded[1]:
                peer.expect("alloc bytes=5000")
            peer.expect("free")
        check(True, "repeated calls succeed when there is an agent again")
        lab.check_alive()


def test():
    agents_that_return()
    agents_for_good()


lib.run(test, 120)
