#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who knows the addresses and is no member: neither results nor places are lost to him, whatever he
says and in whose name."""

import os
import socket
import struct
import threading

import lib
import wire
from lib import check

STALE, IMPOSTORS, LINKS, JOINS, RUNS = 20, 20, 200, 2000, 50


class Work:
    """Peers that reduce without pause and hold each result against what it must be."""

    def __init__(self, peers):
        self.peers, self.count, self.wrong, self.slowest = peers, 0, None, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.is_set() and not self.wrong:
                size = (1, 1009, 300001)[self.count % 3]
                answers = lib.together(self.peers, f"reduce type=f32 op=sum count={size} ids=0,1 "
                                       f"tag={self.count % 2} seed={self.count} verify=1")
                self.wrong = lib.judge(answers)
                self.slowest = max([self.slowest, *(a["end"] - a["begin"] for a in answers)])
                self.count += 1
        except lib.Failed as error:
            self.wrong = str(error)

    def during(self, name, attack, *args):
        before = self.count
        outcome = attack(*args)
        lib.until(lambda: self.wrong or self.count >= before + 3, "no operation ends any more")
        check(not self.wrong, f"{name}: {self.count - before} operations go on", self.wrong)
        return outcome

    def end(self):
        self.stop.set()
        self.thread.join(lib.WAIT)


def run_of(master):
    """Id and term of the run, which are told to anybody."""
    agent = wire.Agent(master.address)
    ack = wire.parse(agent.expect(wire.HELLO_ACK))
    agent.close()
    return ack


def refused(master, claims, identity=None):
    """Why; or None if the hello is answered."""
    agent = wire.Agent(master.address, identity=identity, claims=claims)
    try:
        agent.expect(wire.HELLO_ACK)
        return None
    except (ConnectionRefusedError, ConnectionResetError) as error:
        return str(error)
    finally:
        agent.close()


def claim_a_higher_term(master, ack):
    """With a key of his own."""
    claims = wire.data(11, ack[3]) + wire.data(12, os.urandom(16)) + wire.number(13, ack[8] + 1)
    for _ in range(STALE):
        refused(master, claims)


def claim_other_runs(master, ack):
    """A run that is older, of which this one is to make room."""
    for _ in range(RUNS):
        refused(master, wire.data(11, os.urandom(16)) + wire.data(12, os.urandom(16))
                + wire.number(13, ack[8] + 5))


def be_somebody_else(master):
    """The id of another agent, and a proof that is another's or none at all."""
    answers = []
    for k in range(IMPOSTORS):
        victim = wire.Identity()
        claims = wire.data(4, victim.id)
        if k % 2:
            claims += wire.data(14, victim.share)
        answers.append(refused(master, claims))
    return answers


def open_links(lab, ack):
    """p2p and shared-state hellos of that run, which nobody has sent. Returns the codes."""
    codes = set()
    for agent in lab.agents.values():
        for port in agent.tcp_ports():
            for k in range(LINKS // 4):
                sock = socket.create_connection(("127.0.0.1", port), 10)
                sock.sendall(wire.link_hello(run=ack[3], service=1 + k % 2, round_no=k))
                answer = b""
                try:
                    while len(answer) < 256:
                        more = sock.recv(256 - len(answer))
                        if not more:
                            break
                        answer += more
                except ConnectionResetError:
                    pass
                if len(answer) == 256:
                    codes.add(struct.unpack_from("<H", answer, 10)[0])
                sock.close()
    return codes


def join_and_wait(master):
    """A newcomer that nobody votes for, and that is put out for its silence. Returns the kinds of
    messages that it is sent."""
    agent = wire.Agent(master.address)
    agent.join()
    kinds = set()
    try:
        while True:
            kinds.add(agent.next()[0])
    except (TimeoutError, ConnectionResetError):
        pass
    agent.close()
    return kinds


def join_unread(master, ack):
    """Joins of peers that are not known, whose answers are not read."""
    agent = wire.Agent(master.address, claims=wire.data(11, ack[3]))
    try:
        for _ in range(JOINS):
            agent.join(phase=2)
    except (BrokenPipeError, ConnectionResetError, TimeoutError):
        pass
    agent.close()


def test():
    with lib.Lab(2) as lab:
        lab.start()
        work = Work(lab.start_peers((0, 1), streams=2))
        try:
            work.during("nothing", lambda: None)
            ack = run_of(lab.master)
            check(4 not in ack, "the answer to a hello has no key", ack)
            lines = len(lab.master.log_lines())
            work.during("claims of a higher term", claim_a_higher_term, lab.master, ack)
            work.during("claims of other runs", claim_other_runs, lab.master, ack)
            answers = work.during("hellos in other names", be_somebody_else, lab.master)
            check(all(a and "does not prove that it is agent" in a for a in answers),
                  "no id without proof", answers)
            codes = work.during("hellos of links", open_links, lab, ack)
            check(0 not in codes, "no link that the master has not ordered", codes)
            kinds = work.during("a newcomer that nobody votes for", join_and_wait, lab.master)
            check(not kinds & {wire.ROUND, wire.COMMIT}, "it is told no key", kinds)
            work.during("joins whose answers nobody reads", join_unread, lab.master, ack)
            lines = len(lab.master.log_lines()) - lines
            check(lines < 1000, f"{lines} lines of the master's log")
            check(not any("stale" in line for line in lab.master.log_lines()),
                  "the master is not stale")
        finally:
            work.end()
        check(not work.wrong, f"{work.count} operations in all, the slowest took "
              f"{work.slowest / 1e6:.0f} ms", work.wrong)
        lab.check_alive()


lib.run(test, 240)
