#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An attacker that reaches the ports of a run and is no member of it. It repeats one attack TIMES
times, or until its standard input ends, and then prints how often it attacked.

    attacker.py ATTACK TIMES MASTER PORT...     addresses as HOST:PORT; the ports are ports of
agents

The attacks are the functions of ATTACKS. The first line of each docstring describes the attack.
"""

import itertools
import os
import resource
import select
import socket
import struct
import sys
import threading
import time

import wire

HELD = 300  # connections at a time
SILENT = 20  # agents at a time that do not read
JOINS = 200
NOISE = bytes(1 << 20)
ANSWER = 256  # bytes of an answer to a link's hello
ACK = struct.pack("<4sHHHHxxxxQ", b"PCLK", 2, 2, 2, 0, 0).ljust(ANSWER, b"\0")


def end_of(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


class Attacker:
    """master: (host, port). ports: ports of agents."""

    def __init__(self, master, ports):
        self.master, self.ports = master, ports
        self.count, self.held = 0, []
        self.anybody = itertools.cycle([master, *ports])
        self.any_agent = itertools.cycle(ports)
        self.run_id = self.places = None
        self.block = wire.master_message(wire.HEARTBEAT) * 4000

    def ended(self):
        return bool(select.select([sys.stdin], [], [], 0)[0])

    def open(self, to):
        return socket.create_connection(to, 10)

    def throw(self, to, *messages, wait=False):
        """Sends messages on a new connection."""
        self.count += 1
        with self.open(to) as sock:
            for message in messages:
                sock.sendall(message)
            return sock.recv(4096) if wait else b""

    def agent(self, **words):
        self.count += 1
        return wire.Agent(self.master_address(), **words)

    def master_address(self):
        return f"{self.master[0]}:{self.master[1]}"

    def hold(self, sock, most):
        self.held.append(sock)
        if len(self.held) > most:
            self.held.pop(0).close()

    # ---- attacks

    def nothing(self):
        """No attack: does as much work as an attack, but connects only to itself."""
        self.count += 1
        with socket.create_server(("127.0.0.1", 0)) as own:
            with self.open(own.getsockname()):
                own.accept()[0].close()

    def connections(self):
        """Connections that end at once."""
        self.throw(next(self.anybody))

    def silence(self):
        """Connections on which nothing is sent."""
        self.count += 1
        self.hold(self.open(next(self.anybody)), HELD)

    def garbage(self):
        """Noise."""
        self.throw(next(self.anybody), os.urandom(100))

    def knocks(self):
        """Valid first messages of agents that then leave."""
        self.throw(self.master, wire.master_knock(), wait=True)

    def noise_under_seal(self):
        """Knocks, and a frame that is not sealed although its kind is "sealed"."""
        self.throw(self.master, wire.master_knock(), wire.frame(wire.FRAME_SEALED, os.urandom(400)),
                   wait=True)

    def agents(self):
        """Agents that prove their identity, and leave."""
        self.agent().close()

    def other_names(self):
        """Hellos with the ids of other agents."""
        self.agent(claims=wire.data(4, wire.Identity().id)).close()

    def higher_terms(self):
        """Hellos of agents that name this run with a higher term, or another run."""
        self.find_run()
        self.agent(claims=wire.data(11, self.run_id if self.count % 2 else os.urandom(16))
                   + wire.data(12, os.urandom(16)) + wire.number(13, 1 << 30)).close()

    def unread_joins(self):
        """Joins of several agents at a time, which do not read the answers."""
        agent = self.agent()
        for _ in range(JOINS):
            agent.join()
        self.hold(agent.sock, SILENT)

    def half_frames(self):
        """Agents that send the longest frame without its last byte."""
        agent = self.agent()
        agent.sock.sendall(wire.frame(wire.FRAME_MASTER, bytes((1 << 20) - 1), length=1 << 20))
        self.hold(agent.sock, HELD)

    def much_to_say(self):
        """An agent that sends valid messages without a pause, 4,000 at a time."""
        self.count += 1
        if not self.held:
            self.held.append(wire.Agent(self.master_address()).sock)
            self.held[0].settimeout(0.5)
        try:
            self.held[0].send(self.block)
        except TimeoutError:
            pass
        except OSError:
            self.held.pop().close()

    def long_messages(self):
        """Agents that send messages with as many parts as fit."""
        agent = self.agent()
        agent.say(wire.RESUME, wire.data(7, b"") * ((1 << 19) - 50))
        agent.close()

    def links(self):
        """Hellos for links, shared state and measurements of this run. No master has requested these.
        The proof is missing, and all other fields are right."""
        self.find_run()
        if self.places is None:
            self.places = itertools.cycle(wire.places_of(self.master_address(), self.ports))
        place = next(self.places)
        self.throw(place.address, wire.link_hello(
            run=self.run_id, service=place.service, sender=place.neighbour, to=place.agent,
            round_no=(1 << 40) + self.count), wait=True)

    def probes(self):
        """Probes that no master has requested."""
        self.throw(next(self.any_agent), wire.link_hello(stream=wire.STREAM_PROBE), wait=True)

    def noise(self):
        """Much noise on a port of an agent."""
        self.throw(next(self.any_agent), os.urandom(100), NOISE)

    def half_hellos(self):
        """The first half of a hello for a measurement, and nothing more."""
        self.count += 1
        sock = self.open(next(self.any_agent))
        self.hold(sock, HELD)
        sock.sendall(wire.link_hello(service=wire.BENCHMARK)[:64])

    def unread_hellos(self):
        """Hellos for measurements, with more bytes than an agent takes. Answers are not read."""
        self.count += 1
        sock = self.open(next(self.any_agent))
        self.hold(sock, HELD)
        sock.settimeout(0.1)
        sock.sendall(wire.link_hello(service=wire.BENCHMARK) + NOISE)

    def newcomers(self):
        """Newcomers that can be reached, but do not report on the round that is to admit them. Each
        newcomer has its own name and port."""
        port = socket.create_server(("0.0.0.0", 0))
        threading.Thread(target=answer_probes, args=(port,), daemon=True).start()
        agent = self.agent(claims=wire.data(5, f"stranger-{self.count}")
                           + wire.number(8, port.getsockname()[1]))
        agent.join()
        agent.sock.settimeout(0.2)
        try:
            while not self.ended():
                try:
                    kind, body = agent.next()
                except TimeoutError:
                    agent.say(wire.HEARTBEAT)
                    continue
                if kind == wire.PROBE:
                    agent.say(wire.PROBED, wire.number(1, wire.parse(body)[1]) + wire.number(2, 1))
                elif kind == wire.KICK:
                    break
        except ConnectionError:
            pass
        port.shutdown(socket.SHUT_RDWR)
        port.close()
        agent.close()

    # ---- helpers of the attacks

    def find_run(self):
        """Asks the master for the id of its run. The master answers anybody."""
        if self.run_id is None:
            agent = self.agent()
            self.run_id = wire.parse(agent.expect(wire.HELLO_ACK))[3]
            agent.close()


def answer_probes(port):
    while True:
        try:
            sock = port.accept()[0]
            sock.settimeout(2)
            sock.recv(256)
            sock.sendall(ACK)
            sock.close()
        except OSError:
            return


ATTACKS = ("nothing", "connections", "silence", "garbage", "knocks", "noise_under_seal", "agents",
           "other_names", "higher_terms", "unread_joins", "half_frames", "much_to_say",
           "long_messages", "links", "probes", "noise", "half_hellos", "unread_hellos", "newcomers")


def main():
    name, times, master, *ports = sys.argv[1:]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    attacker = Attacker(end_of(master), [end_of(p) for p in ports])
    print("ready", flush=True)
    began = time.monotonic()
    while attacker.count < int(times) and not attacker.ended():
        try:
            getattr(attacker, name)()
        except OSError:
            pass  # refused, or the connection was closed
    print(f"done={attacker.count} seconds={time.monotonic() - began:.2f}", flush=True)


if __name__ == "__main__":
    main()
