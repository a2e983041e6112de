#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Agents and masters with limits so low that they hardly start. They log the limit and end, or they
name it to each process that connects. No such daemon looks stopped or disconnected."""

import os
import pathlib
import re
import signal

import lib
from lib import OUT_OF_MEMORY, SUCCESS, check
from private import SYSTEM_SOCKET

SOON = 5  # seconds; no call here waits for another peer
OS_ERROR = 71


class Short(lib.Loopback):
    """Hosts that start programs with this name under a limit."""

    name, limit = None, None

    def command(self, host, args):
        short = self.name and pathlib.Path(args[0]).name == self.name
        return ["prlimit", self.limit, *args] if short else args


def serves(daemon):
    """Returns whether the daemon serves; false if it has ended. A daemon without a descriptor for
    pcclctl names the limit."""
    option, said = "--master" if "master" in daemon.name else "--agent", None

    def is_known():
        nonlocal said
        if not daemon.alive():
            return True
        said = lib.ctl(option, daemon.admin, "status")
        return said.returncode == 0 or "RLIMIT_NOFILE" in said.stderr

    lib.until(is_known, f"{daemon.name} neither ends nor answers")
    return daemon.alive()


def start_daemon(lab, start):
    """Starts a daemon without waiting until it listens."""
    lab.await_socket = lambda *_: None
    try:
        return start()
    finally:
        del lab.await_socket


def until_it_serves(program, start, ask):
    """Starts a program again and again until it serves. Each start gets one more descriptor than
    the last one. start(lab) may fail; ask(lab) returns the answer that a process gets."""
    ended, refused, served = [], [], False
    for n in range(4, 40):
        with lib.Lab(hosts=Short(1)) as lab:
            lab.hosts.name, lab.hosts.limit = program.name, f"--nofile={n}:{n}"
            daemon = start(lab)
            if not serves(daemon):
                said = daemon.log.read_text("utf-8")
                lab.daemons.remove(daemon)
                if "shared libraries" in said:
                    continue
                ended.append(n)
                check(daemon.ended() == OS_ERROR and
                      re.search(rf"err: .*RLIMIT_NOFILE\) of {program.name} .* is {n}\n", said),
                      f"{program.name} does not start with {n} descriptors: "
                      f"{''.join(said.splitlines()[-1:])}", (daemon.process.returncode, said))
                continue
            answer = ask(lab)
            served = answer["code"] == SUCCESS
            if served:
                break
            refused.append(n)
            check(answer["code"] == OUT_OF_MEMORY and "RLIMIT_NOFILE" in answer["text"]
                  and f"{program.name}" in answer["text"] and answer["text"].endswith(f" is {n}"),
                  f"{program.name} with {n} descriptors: {answer['text']}", answer)
            check(daemon.alive(), "a daemon without descriptors for a process keeps running")
    check(served and ended and refused, f"{program.name} with {n} descriptors serves",
          (ended, refused))


def join(lab):
    return join_as(lab.start_peer(0))


def join_as(peer):
    answer = peer.call("create", SOON)
    return answer if answer["code"] != SUCCESS else peer.call("connect", SOON)


def agents():
    def start(lab):
        lab.start_master()
        return start_daemon(lab, lab.start_agent)

    until_it_serves(lib.AGENTD, start, join)


def masters():
    def ask(lab):
        lab.start_agent()
        return join(lab)

    until_it_serves(lib.MASTERD, lambda lab: start_daemon(lab, lab.start_master), ask)


def private_agent(limit):
    """Returns the answer that a program gets if its private agent inherits a limit."""
    with lib.Lab(hosts=Short(1)) as lab:
        lab.start_master()
        lab.hosts.name, lab.hosts.limit = lib.PEER.name, limit
        try:
            peer = lab.start_peer(0, env={"PCCL_AGENTD": str(lib.AGENTD)}, ready=False)
            try:
                peer.read()
            except lib.Failed:  # the program itself does not start
                return None
            return join_as(peer)
        finally:
            for pid in lib.processes(lib.AGENTD, str(lab.folder)):
                os.kill(pid, signal.SIGKILL)


def private_agents(option, name, values):
    """Tries the values in ascending order until an agent starts. At least one value must be too
    low."""
    told = 0
    for value in values:
        answer = private_agent(f"--{option}={value}:{value}")
        if not answer:
            continue
        if answer["code"] == SUCCESS:
            break
        told += 1
        check(answer["code"] == OUT_OF_MEMORY and f"({name})" in answer["text"]
              and re.search(rf" of (pcclagentd|peer) \(pid \d+\) on host .* is {value}\b", answer["text"]),
              f"a private agent with {option} {value}: {answer['text']}", answer)
    check(answer and answer["code"] == SUCCESS and told,
          f"a private agent with {option} {value} serves", (answer, told))


def test():
    lib.forget_leaks()
    agents()
    masters()
    if os.path.exists(SYSTEM_SOCKET):
        print("# this system has an agent, so private agents are not tested")
        return
    private_agents("nofile", "RLIMIT_NOFILE", range(4, 40))
    if lib.sanitized():  # sanitizers need more memory than these limits allow
        return
    private_agents("as", "RLIMIT_AS", (8000000, 9000000, 10000000, 12000000, 13000000, 14000000, 400000000))
    private_agents("data", "RLIMIT_DATA", (100000, 262144, 500000, 800000, 400000000))
    private_agents("stack", "RLIMIT_STACK", (32768, 65536, 131072, 8388608))


lib.run(test, 120)
