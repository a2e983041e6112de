#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An attacker knows the addresses and is no member. It cannot spoil results or memberships,
whatever it sends and whatever id it uses. An attacker that also listens on the network knows the
run and the ids of its agents, because links are opened in clear text."""

import collections
import os
import select
import socket
import struct
import threading
import time

import lib
import wire
from lib import check

STALE, IMPOSTORS, LINKS, JOINS, RUNS = 20, 20, 200, 2000, 50
TRUE_NAMES = 20  # attempts of each attack with a true id
UNKNOWN, ELSEWHERE = 2, 3  # codes of answers to hellos of links
SO_RCVBUFFORCE = 33
OF_SMALL = 65535  # the number of the stream for small operations


class Work:
    """Peers that reduce without pause and check each result."""

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
        lib.until(lambda: self.wrong or self.count >= before + 3, "operations no longer end during the attack")
        check(not self.wrong, f"{name}: {self.count - before} operations succeed during the attack", self.wrong)
        return outcome

    def end(self):
        self.stop.set()
        self.thread.join(lib.WAIT)


class Listener:
    """Records the hellos of links that pass on this host."""

    Hello = collections.namedtuple("Hello", "raw stream run sender to number")

    def __init__(self):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.sock.bind(("lo", 0))

    def hellos(self):
        """Returns the hellos so far. To be called before there is work."""
        heard, until = {}, time.monotonic() + 3
        while time.monotonic() < until and select.select([self.sock], [], [], 0.1)[0]:
            packet = self.sock.recv(65536)
            tcp = packet[(packet[0] & 15) * 4:]
            raw = tcp[(tcp[12] >> 4) * 4:] if len(tcp) > 12 else b""
            if packet[9] == socket.IPPROTO_TCP and len(raw) == 128 and raw[:4] == b"PCLK":
                stream, = struct.unpack_from("<H", raw, 10)
                number, = struct.unpack_from("<Q", raw, 88)
                if number:  # probes have no number
                    heard[raw] = self.Hello(raw, stream, raw[24:40], raw[56:72], raw[72:88], number)
        return list(heard.values())


def connections(lab):
    """Returns the connections of the daemons to each other and to themselves."""
    return {c for daemon in lab.daemons for c in daemon.connections()}


def none_is_cut(lab, links):
    cut = links - connections(lab)
    check(links and not cut, f"none of {len(links)} connections between daemons is closed by the attacks", cut)


def run_of(master):
    """Returns the answer of the master to a hello, which gives id and term of the run to anybody."""
    agent = wire.Agent(master.address)
    ack = wire.parse(agent.expect(wire.HELLO_ACK))
    agent.close()
    return ack


def refused(master, claims, identity=None):
    """Returns the reason for which the hello is refused, or None if it is answered."""
    agent = wire.Agent(master.address, identity=identity, claims=claims)
    try:
        agent.expect(wire.HELLO_ACK)
        return None
    except (ConnectionRefusedError, ConnectionResetError) as error:
        return str(error)
    finally:
        agent.close()


def claim_a_higher_term(master, ack):
    """Claims a higher term of this run, with a key of the attacker."""
    claims = wire.data(11, ack[3]) + wire.data(12, os.urandom(16)) + wire.number(13, ack[8] + 1)
    for _ in range(STALE):
        refused(master, claims)


def claim_other_runs(master, ack):
    """Claims older runs, to which this run would have to give way."""
    for _ in range(RUNS):
        refused(master, wire.data(11, os.urandom(16)) + wire.data(12, os.urandom(16))
                + wire.number(13, ack[8] + 5))


def be_somebody_else(master):
    """Sends the id of another agent with the attacker's own proof. Every second hello also has the
    public key of the other agent."""
    answers = []
    for k in range(IMPOSTORS):
        victim = wire.Identity()
        claims = wire.data(4, victim.id)
        if k % 2:
            claims += wire.data(14, victim.share)
        answers.append(refused(master, claims))
    return answers


def say_twice(master, true_id, ack):
    """Sends two hellos on one connection: the first under the id of an agent that is connected, the
    second with a higher term. Returns the master's refusal, or None."""
    claims = wire.data(4, true_id) + wire.data(11, ack[3]) + wire.data(12, os.urandom(16))
    agent = wire.Agent(master.address, claims=claims)
    try:
        agent.say(wire.HELLO, agent.hello() + claims + wire.number(13, ack[8] + 1))
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        agent.expect(wire.HELLO_ACK)
        return None
    except (ConnectionRefusedError, ConnectionResetError) as error:
        return str(error)
    finally:
        agent.close()


def be_a_known_agent(master, true_ids, ack):
    return [say_twice(master, true_ids[k % len(true_ids)], ack) for k in range(TRUE_NAMES)]


def be_the_predecessor(lab, heard):
    """Attacks the existing links: repeats the hellos that have opened them, and sends new hellos
    with the predecessor's id. Returns the codes of the answers to each attack."""
    codes = collections.defaultdict(set)
    ports = [port for agent in lab.agents.values() for port in agent.tcp_ports()]
    for hello in heard:
        words = {"streams": 2, "run": hello.run, "sender": hello.sender}
        said = {"an echo": hello.raw}
        for k in range(TRUE_NAMES // 4):
            for name, more in (("for now", 0), ("for the next round", 1)):
                said[f"a hello {name}, {k}"] = wire.link_hello(
                    stream=(0, 1, OF_SMALL)[k % 3], to=hello.to, round_no=hello.number + more, **words)
        said["a hello for somebody else"] = wire.link_hello(to=os.urandom(16), round_no=hello.number,
                                                            **words)
        for name, raw in said.items():
            for port in ports:
                answer = wire.link_answer(("127.0.0.1", port), raw)
                codes[name.split(",")[0]].add(answer and answer[0])
    return codes


def under_true_ids(lab, work, heard, ack):
    """Attacks under true ids. The members get no error."""
    ids = sorted({h.sender for h in heard} | {h.to for h in heard})
    short = {p["agent"] for p in lib.ask("--master", lab.master, "peers")}
    check({i[:4].hex() for i in ids} == short and all(h.run == ack[3] for h in heard),
          f"{len(heard)} hellos of links were recorded, of all {len(ids)} agents of the run",
          (ids, short))
    kept = ("rounds", "lost_members", "epoch", "agents", "accepted")
    before = lib.ask("--master", lab.master, "status")[0]
    answers = work.during("a second hello under a true id, with a higher term", be_a_known_agent,
                          lab.master, ids, ack)
    check(all(a and "does not prove that it is agent" in a for a in answers),
          "an agent's true id is refused without its proof", answers)
    codes = work.during("hellos of links in the predecessor's name", be_the_predecessor, lab, heard)
    check(0 not in set().union(*codes.values()) and UNKNOWN in codes["an echo"]
          and UNKNOWN in codes["a hello for now"], "hellos with the predecessor's id open no link", dict(codes))
    check(UNKNOWN not in codes["a hello for somebody else"] and ELSEWHERE in codes[
        "a hello for somebody else"],
        "a hello for another agent is refused with the code for another agent", dict(codes))
    after = lib.ask("--master", lab.master, "status")[0]
    check(all(before[k] == after[k] for k in kept),
          "attacks under true ids cause no round and no loss", (before, after))


def open_links(places, ack):
    """Sends hellos for links and shared state that no master has requested. Every field
    except the proof is correct."""
    answers = set()
    for place in places:
        for k in range(LINKS // len(places)):
            answers.add(wire.link_answer(place.address, wire.link_hello(
                service=place.service, run=ack[3], sender=place.neighbour, to=place.agent,
                round_no=(1 << 40) + k)))
    return answers


def join_and_wait(master):
    """A newcomer for which nobody votes is kicked because it is silent. Returns the kinds of
    messages that it gets."""
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
    """Sends joins of unknown peers and does not read the answers."""
    agent = wire.Agent(master.address, claims=wire.data(11, ack[3]))
    try:
        for _ in range(JOINS):
            agent.join(phase=2)
    except (BrokenPipeError, ConnectionResetError, TimeoutError):
        pass
    agent.close()


def test():
    with lib.Lab(2) as lab:
        listener = Listener() if os.geteuid() == 0 else None
        lab.start()
        peers = lab.start_peers((0, 1), streams=2)
        heard = listener.hellos() if listener else []
        links = connections(lab)
        work = Work(peers)
        try:
            work.during("nothing", lambda: None)
            ack = run_of(lab.master)
            check(4 not in ack, "the answer to a hello contains no key", ack)
            lines = len(lab.master.log_lines())
            work.during("claims of a higher term", claim_a_higher_term, lab.master, ack)
            work.during("claims of other runs", claim_other_runs, lab.master, ack)
            answers = work.during("hellos in other names", be_somebody_else, lab.master)
            check(all(a and "does not prove that it is agent" in a for a in answers),
                  "another agent's id is refused without its proof", answers)
            if listener:
                under_true_ids(lab, work, heard, ack)
                none_is_cut(lab, links)
            places = [p for p in wire.places_of(lab.master.address, [
                ("127.0.0.1", port) for agent in lab.agents.values() for port in agent.tcp_ports()])
                      if p.service != wire.BENCHMARK]
            check(len({(p.agent, p.service) for p in places}) == len(places) == 4,
                  "an agent tells anybody which of its ports are for links and shared state", places)
            answers = work.during("hellos of links", open_links, places, ack)
            check(all(a and a[0] == UNKNOWN and "master has not announced" in a[1] for a in answers),
                  "a link that the master has not requested is refused, although only its proof "
                  "is missing", answers)
            none_is_cut(lab, links)
            kinds = work.during("a newcomer that nobody votes for", join_and_wait, lab.master)
            check(not kinds & {wire.ROUND, wire.COMMIT}, "a newcomer that is not admitted gets no key", kinds)
            work.during("joins whose answers nobody reads", join_unread, lab.master, ack)
            lines = len(lab.master.log_lines()) - lines
            check(lines < 1000, f"{lines} lines of the master's log are within the bound")
            check(not any("stale" in line for line in lab.master.log_lines()),
                  "claims of higher terms do not make the master stale")
        finally:
            work.end()
        check(not work.wrong, f"{work.count} operations succeed during all attacks, the slowest took "
              f"{work.slowest / 1e6:.0f} ms", work.wrong)
        lab.check_alive()


lib.run(test, 240)
