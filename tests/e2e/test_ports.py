#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ports of masters that the kernel gives to outgoing connections: an agent that looks for its master there
is not connected with itself, and masters and agents get their ports once these are free. A master that is started after
pcclConnect was called is found."""

import re
import subprocess
import sys

import lib
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


def led_to_itself(hosts):
    """Every outgoing connection of host 0 gets the port of the master that is not there yet."""
    with lib.Lab(hosts=hosts) as lab:
        subprocess.run(hosts.command(0, ["sysctl", "-qw",
                                         f"net.ipv4.ip_local_port_range={PORT} {PORT}"]), check=True)
        lab.start_agent(0)
        peer = lab.start_peer(0, master=f"{hosts.address(0)}:{PORT}")
        peer.send("create", "connect")
        peer.read()
        lab.start_master(port=PORT)
        subprocess.run(hosts.command(0, ["sysctl", "-qw",
                                         "net.ipv4.ip_local_port_range=40000 50000"]), check=True)
        answer = peer.read()
        check(answer["code"] == SUCCESS, "an agent that looks for a master on its own host is not "
              "connected with itself", answer)
        lab.check_alive()


def hold(hosts, port):
    """Host 0 has a connection to the agent of host 1, from this port, until a line comes in."""
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
              "so does an agent, for a moment", agent.tcp_ports())


def port_is_held(hosts):
    """An outgoing connection has the master's port when it is started."""
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
        check(True, "a master waits for a port that an outgoing connection has")
        lab.start_agent(0)
        peer = lab.start_peer(0, master=f"{hosts.address(0)}:{PORT}")
        peer.expect("create")
        peer.expect("connect")
        lab.check_alive()


def test():
    started_late()
    for case in (led_to_itself, port_is_held, port_of_agent_is_held):
        hosts = lib.make_namespaces(2)
        if hosts:
            case(hosts)


lib.run(test, 120)
