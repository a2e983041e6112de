#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that find no agent start one private agent together. This agent ends after the last of
these programs. A program can also run its own master."""

import os
import signal
import time
import types

import lib
from lib import INVALID_USAGE, MASTER_CONNECTION_FAILED, SUCCESS, check, ids_of, judge
from private import IDLE_SECONDS, PrivateAgents, skip_beside_system_agent, until

OPERATION = "type=f32 op=sum count=10007 tag=1 verify=1"


def shared_agent(lab, private):
    # all start at once, before one of them has an agent
    lab.start_master()
    peers = [lab.start_peer(k, env=private.env, ready=False) for k in range(3)]
    for peer in peers:
        peer.read()
    lib.form_run(peers)
    agents = private.running()
    check(len(agents) == 1, "three processes started at once share one agent", agents)
    wrong = judge(lib.together(peers, f"reduce {OPERATION} ids={ids_of(peers)} mem=shared"))
    check(not wrong, "peers reduce through a shared private agent", wrong)
    sock = lab.folder / "pccl/agent.sock"
    check(sock.is_socket() and (sock.parent.stat().st_mode & 0o777) == 0o700,
          "the socket of a private agent is in a private folder")
    lab.drop_peer(peers.pop())
    lab.drop_peer(peers.pop())
    # longer than an agent without processes would stay
    gone = until(lambda: not private.running(), IDLE_SECONDS + 0.5)
    check(not gone, "a private agent stays while it has a process")
    began = time.monotonic()
    lab.drop_peer(peers.pop())
    gone = until(lambda: not private.running(), IDLE_SECONDS + 10)
    check(gone, f"a private agent ends after its last process: {time.monotonic() - began:.1f} s")
    check(not sock.exists(), "a private agent removes its socket when it ends")
    peers = lab_peers_again(lab, private)
    check(len(private.running()) == 1, "the next programs start a private agent again")
    return peers


def lab_peers_again(lab, private):
    peers = [lab.start_peer(10 + k, env=private.env) for k in range(2)]
    lib.form_run(peers)
    return peers


def kill_agent(private, number=signal.SIGKILL):
    pid = private.running()[0]
    os.kill(pid, number)
    return pid


STANDARD_PORTS = [48149, 48150, 48151]


def ports_of(pid):
    return lib.Daemon(types.SimpleNamespace(pid=pid), "a private agent", 0, None).tcp_ports()


def killed_agent(lab, private, peers):
    """A private agent that is killed leaves its socket behind, and its processes start another
    agent. If SIGTERM ends a private agent, its processes start another agent, too."""
    for number in (signal.SIGKILL, signal.SIGTERM):
        old = kill_agent(private, number)
        answers = lib.together(peers, f"reduce {OPERATION} retry=5 ids={ids_of(peers)}")
        wrong = judge(answers)
        check(not wrong, "after the death of the agent its peers reduce through another one", wrong)
        check(all(a["losses"] <= 1 for a in answers),
              "each call fails at most once after the death of the agent", answers)
        check(until(lambda gone=old: gone not in private.running(), lib.WAIT),
              "the killed private agent is gone")
        agents = private.running()
        check(len(agents) == 1, "the peers have started one new agent together", agents)
        ports = ports_of(agents[0])
        check(ports == STANDARD_PORTS, "the new private agent has the ports of the previous agent", ports)
    for peer in peers:
        lab.drop_peer(peer)
    kill_agent(private)
    peers = lab_peers_again(lab, private)
    wrong = judge(lib.together(peers, f"reduce {OPERATION} ids={ids_of(peers)}"))
    check(not wrong, "after the death of an idle agent new processes start a new agent", wrong)
    for peer in peers:
        lab.drop_peer(peer)


def forbidden(lab, private):
    until(lambda: not private.running(), IDLE_SECONDS + 10)
    peer = lab.start_peer(20, env={**private.env, "PCCL_AGENT_AUTOSPAWN": "0"})
    answer = peer.call("create")
    if answer["code"] == SUCCESS:
        answer = peer.call("connect")
    check(answer["code"] == lib.AGENT_UNAVAILABLE and "PCCL_AGENT_AUTOSPAWN" in answer["text"],
          f"PCCL_AGENT_AUTOSPAWN=0: {answer['text']}", answer)
    check(not private.running(), "PCCL_AGENT_AUTOSPAWN=0: no agent is started")
    lab.drop_peer(peer)
    peer = lab.start_peer(21, env={"PCCL_AGENTD": "/nonexistent"})
    answer = peer.call("create")
    if answer["code"] == SUCCESS:
        answer = peer.call("connect")
    check(answer["code"] == lib.AGENT_UNAVAILABLE and "/nonexistent" in answer["text"],
          f"the agent's program does not exist: {answer['text']}", answer)


def own_master(lab, private):
    address = f"127.0.0.1:{lib.free_port()}"
    owner = lab.start_peer(30, master=address, env=private.env)
    other = lab.start_peer(31, master=address, env=private.env)
    owner.expect(f"master addr={address}")
    mark = f"XDG_RUNTIME_DIR={lab.folder}"

    def masters():
        return [p for p in lib.processes(lib.MASTERD, mark) if p != lab.master.pid]

    # a process that has just been started does not show its environment yet
    check(until(lambda: len(masters()) == 1, lib.WAIT), "pcclRunMaster starts a master")
    lib.form_run([owner, other])
    wrong = judge(lib.together([owner, other], f"reduce {OPERATION} ids=30,31"))
    check(not wrong, "peers use the master of pcclRunMaster, also in the process that started it", wrong)
    answer = owner.call("master-destroy")
    check(answer["code"] == INVALID_USAGE, "a master cannot be destroyed while it runs", answer)
    owner.expect("master-signal")
    owner.expect("master-await")
    check(not masters(), "pcclInterruptMaster in a signal handler ends the master", masters())
    owner.expect("master-destroy")
    answer = other.call(f"reduce {OPERATION}")
    check(answer["code"] == MASTER_CONNECTION_FAILED and answer["check"] == "ok",
          f"the peers of a master that has ended get an error: {answer['text']}", answer)
    owner.expect(f"master addr={address}")
    check(until(lambda: len(masters()) == 1, lib.WAIT), "the next master can use the same address")
    lab.drop_peer(owner)
    check(until(lambda: not masters(), lib.WAIT), "a master ends with the program that started it")


def standard_ports():
    """A private agent has the standard ports until another agent of its host needs them. Then its
    peers keep their membership, and other hosts reach it at its new ports."""
    hosts = lib.make_namespaces(3)
    if not hosts:
        return
    with lib.Lab(hosts=hosts) as lab, PrivateAgents(lab) as private:
        lab.start_master()
        for host in (1, 2):
            lab.start_agent(host)
        peers = [lab.start_peer(k, host=k, env=private.env) for k in range(2)]
        lib.form_run(peers)
        agent = private.running()[0]
        check(ports_of(agent) == STANDARD_PORTS, "a private agent alone has the standard ports",
              ports_of(agent))
        others = [lab.start_peer(2, host=2)]
        # the notice of the new ports can reach the others before or after the round with a newcomer
        lab.master.process.send_signal(signal.SIGSTOP)
        for peer in peers:
            peer.send("until world=3")
        others[0].send("create", "connect", "until world=3")
        system = lab.start_agent(0)
        lib.until(lambda: len(system.tcp_ports()) == 3, "the second agent does not listen")
        lab.master.process.send_signal(signal.SIGCONT)
        check(system.tcp_ports() == STANDARD_PORTS, "a private agent gives the standard ports to another agent",
              system.tcp_ports())
        ports = ports_of(agent)
        check(not set(ports) & set(STANDARD_PORTS) and len(ports) == 3,
              "a private agent gets other ports after it gave up the standard ports", ports)
        answers = [p.read() for p in peers] + [others[0].read() for _ in range(3)]
        check({a["code"] for a in answers} == {SUCCESS},
              "a newcomer joins while a private agent changes its ports", answers)
        peers += others
        others = [lab.start_peer(3, host=1), lab.start_peer(4, host=0)]
        for peer in others:
            peer.send("create", "connect", "until world=5")
        for peer in peers:
            peer.send("until world=5")
        answers = [p.read() for p in peers] + [p.read() for p in others for _ in range(3)]
        check({a["code"] for a in answers} == {SUCCESS},
              "newcomers join through both agents after the change of ports", answers)
        peers += others
        wrong = judge(lib.together(peers, f"reduce {OPERATION} retry=2 ids={ids_of(peers)}"))
        check(not wrong, "all peers reduce after the change of ports", wrong)
        check(private.running() == [agent], "no agent was replaced during the change of ports")
        lab.check_alive()


def test():
    skip_beside_system_agent()
    with lib.Lab() as lab, PrivateAgents(lab) as private:
        peers = shared_agent(lab, private)
        killed_agent(lab, private, peers)
        forbidden(lab, private)
        own_master(lab, private)
        lab.check_alive()
    standard_ports()


lib.run(test, 120)
