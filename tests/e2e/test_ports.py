#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ports of masters that the kernel also uses for outgoing connections. An agent that looks for its
master at such a port does not stay connected to itself, with or without members. Masters and agents
get their ports once these are free. pcclConnect finds a master that starts only after the call,
even if another program accepted connections at its port before."""

import contextlib
import itertools
import re
import select
import signal
import socket
import subprocess
import sys
import time

import lib
import netns
from lib import SUCCESS, check

PORT = 33000
HOLD = """
import socket, struct, sys
s = socket.socket()
s.bind(("", int(sys.argv[2])))
s.connect((sys.argv[1], int(sys.argv[3])))
print("held", flush=True)
sys.stdin.readline()
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""

WATCH = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
s.bind(("lo", 0))
print("ready", flush=True)
while True:
    ip = s.recv(65536)
    tcp = ip[(ip[0] & 15) * 4:]
    if ip[9] == 6 and ip[12:16] == ip[16:20] and tcp[:2] == tcp[2:4] and tcp[13] & 0x12 == 0x12:
        print("to itself", flush=True)
"""


def started_late():
    """The master is started while pcclConnect waits for it."""
    with lib.Lab(1) as lab:
        lab.start_agent(0)
        port = lib.free_port()
        peer = lab.start_peer(0, master=f"127.0.0.1:{port}")
        peer.send("create", "connect")
        peer.read()
        lab.start_master(port=port)
        answer = peer.read()
        check(answer["code"] == SUCCESS, "pcclConnect waits for a master that is being started", answer)


def hang_up(listener, seconds):
    """Accepts connections and closes them, some by a reset."""
    end = time.monotonic() + seconds
    for n in itertools.count():
        listener.settimeout(max(end - time.monotonic(), 0.001))
        try:
            there = listener.accept()[0]
        except TimeoutError:
            return n
        with there:
            if n % 2:
                there.settimeout(lib.WAIT)
                there.recv(65536)
    return 0


def taken_before():
    """Another program accepts connections at the master's port first, as docker-proxy, ssh -L and
    load balancers do."""
    with lib.Lab(1) as lab:
        lab.start_agent(0)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            peer = lab.start_peer(0, master=f"127.0.0.1:{port}")
            peer.send("create", "connect")
            peer.read()
            n = hang_up(listener, 3)
        check(2 < n < 20, "a connection that ends before there is an answer counts as one failed attempt", n)
        lab.start_master(port=port)
        answer = peer.read()
        check(answer["code"] == SUCCESS,
              "a master that starts at a port that was in use before is found", answer)


def give_ports(hosts, first, last):
    """Sets the range of ports for outgoing connections of host 0."""
    subprocess.run(hosts.command(0, ["sysctl", "-qw", f"net.ipv4.ip_local_port_range={first} {last}"]),
                   check=True)


@contextlib.contextmanager
def watch(hosts):
    """Reports each connection of host 0 that leads to itself."""
    watcher = subprocess.Popen(hosts.command(0, [sys.executable, "-c", WATCH]), stdout=subprocess.PIPE,
                               bufsize=0)
    try:
        watcher.stdout.readline()
        yield lambda: select.select([watcher.stdout], [], [], lib.WAIT)[0] and watcher.stdout.readline()
    finally:
        watcher.kill()
        watcher.communicate()


def led_to_itself(hosts):
    """Every outgoing connection of host 0 gets the port of the master, which has not started yet."""
    with lib.Lab(hosts=hosts) as lab, watch(hosts) as to_itself:
        give_ports(hosts, PORT, PORT)
        lab.start_agent(0)
        peer = lab.start_peer(0, master=f"{hosts.address(0)}:{PORT}")
        peer.send("create", "connect")
        peer.read()
        check(to_itself(), "a connection to a port of its own host leads to itself")
        # at once, because the next attempt would find no free port
        give_ports(hosts, 40000, 50000)
        lab.start_master(port=PORT)
        answer = peer.read()
        check(answer["code"] == SUCCESS, "an agent that looks for a master on its own host is not "
              "connected with itself", answer)
        lab.check_alive()


def die_and_leave_nothing(lab):
    """Kills the master before it has read everything, so that its connections are reset.
    Connections that are closed properly would block the port of the master for a minute."""
    lab.master.process.send_signal(signal.SIGSTOP)
    lib.until(lambda: all(int(words[4].split(":")[1], 16) for words in lab.master.sockets("01")),
              "a connection has no unread data for the master")
    lab.drop(lab.master)


def member_is_led_to_itself(hosts):
    """The agent has a member whose master dies. A connection that leads to itself counts as a
    failed attempt, so its port is free for the next master."""
    line = "reduce type=f32 op=sum count=1000 ids=0,1 verify=1"
    with lib.Lab(hosts=hosts) as lab, watch(hosts) as to_itself:
        lab.start_master(port=PORT)
        for host in (0, 1):
            lab.start_agent(host)
        peers = lab.start_peers((0, 1))
        give_ports(hosts, PORT, PORT)
        die_and_leave_nothing(lab)
        check(all(to_itself() for _ in range(3)),
              "the connections of an agent whose master has died also lead to itself")
        for peer in peers:
            peer.send(f"{line} tag=1")
        lab.start_master(port=PORT)
        give_ports(hosts, 40000, 50000)
        wrong = lib.judge([peer.read() for peer in peers])
        check(not wrong, "a member whose agent was led to itself goes on with the next master", wrong)
        status = lib.ask("--master", lab.master, "status")[0]
        check([status[k] for k in ("accepted", "lost_members", "kicks")] == [2, 0, 0],
              "no peer loses its membership when agents connect to themselves", status)
        wrong = lib.judge(lib.together(peers, f"{line} tag=2"))
        check(not wrong, "all peers go on after an agent was connected to itself", wrong)
        lab.check_alive()


def hold(hosts, port):
    """Host 0 has a connection from this port to the agent of host 1, until the process reads a
    line."""
    holder = subprocess.Popen(
        hosts.command(0, [sys.executable, "-c", HOLD, hosts.address(1), str(port), "48150"]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    return holder


def port_of_agent_is_held(hosts):
    with lib.Lab(hosts=hosts) as lab:
        lab.start_agent(1)
        holder = hold(hosts, 48150)
        try:
            agent = lab.start_agent(0)
            agent.await_log("is in use by an outgoing connection of this host")
        finally:
            holder.communicate(b"\n")
        lib.until(lambda: len(agent.tcp_ports()) == 3, "the agent does not listen")
        check(agent.tcp_ports() == [48149, 48150, 48151],
              "an agent waits for ports that an outgoing connection holds", agent.tcp_ports())


def port_is_held(hosts):
    """An outgoing connection has the master's port when the master starts."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start_agent(1)
        holder = hold(hosts, PORT)
        try:
            process, log = lab.spawn("master", 0, [
                lib.MASTERD, "--listen", f"0.0.0.0:{PORT}", "--admin-socket",
                lab.folder / "m.admin"])
            master = lib.Daemon(process, "ccoip-masterd", 0, log)
            lab.daemons.append(master)
            master.await_log("is in use by an outgoing connection of this host")
        finally:
            holder.communicate(b"\n")
        lab.await_socket(master, ("tcp", "tcp6"),
                         re.compile(rf":{PORT:04X} [0-9A-F]+:0000 0A ").search)
        check(True, "a master waits for a port that an outgoing connection holds")
        lab.start_agent(0)
        peer = lab.start_peer(0, master=f"{hosts.address(0)}:{PORT}")
        peer.expect("create")
        peer.expect("connect")
        lab.check_alive()


def address_comes_later(hosts):
    """The daemons of a host start before its network is up."""
    address = hosts.address(0)
    with lib.Lab(hosts=hosts) as lab:
        netns.ip("-n", hosts.name(0), "address", "del", f"{address}/24", "dev", "eth0")
        for name, program, words in (
                ("m", lib.MASTERD, ["--listen", f"{address}:{PORT}"]),
                ("a", lib.AGENTD, ["--bind", address, "--socket", lab.folder / "a.sock"])):
            process, log = lab.spawn(name, 0, [program, *words, "--admin-socket", lab.folder / f"{name}.admin"])
            daemon = lib.Daemon(process, program.name, 0, log)
            lab.daemons.append(daemon)
            daemon.await_log("this host has no such address; trying again")
        netns.ip("-n", hosts.name(0), "address", "add", f"{address}/24", "dev", "eth0")
        for daemon, n in zip(lab.daemons, (1, 3)):
            lib.until(lambda d=daemon, n=n: len(d.tcp_ports()) == n, "a daemon does not listen")
        check(True, "daemons wait for an address that their host gets later")
        lab.check_alive()


def test():
    started_late()
    taken_before()
    for case in (led_to_itself, member_is_led_to_itself, port_is_held, port_of_agent_is_held,
                 address_comes_later):
        hosts = lib.make_namespaces(2)
        if hosts:
            case(hosts)


lib.run(test, 120)
