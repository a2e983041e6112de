#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Addresses of a host that other hosts use: addresses of a second network and of the loopback
interface, addresses that appear later or disappear, and an address among a hundred. Ports that a
router forwards, also while the router is stopped."""

import os
import re
import signal
import subprocess
import sys
import time

import lib
from lib import check, ids_of, judge, netns, together

REDUCE = "reduce type=f32 op=sum count=100003 tag=1 retry=20"
P2P, STATE = 48150, 48149
STREAM_MS = 3000


def on(hosts, host, *args):
    done = subprocess.run(hosts.command(host, args), capture_output=True, text=True,
                          timeout=lib.WAIT, check=False)
    if done.returncode != 0:
        raise lib.Failed(f"{' '.join(args)}: {done.stderr}")
    return done.stdout


def second_network(hosts):
    """Connects the two hosts with a second cable."""
    netns.ip("-n", hosts.name(0), "link", "add", "eth1", "type", "veth", "peer", "name", "eth1",
             "netns", hosts.name(1))
    for host in (0, 1):
        netns.ip("-n", hosts.name(host), "addr", "add", f"10.85.0.{host + 1}/24", "dev", "eth1")
        netns.ip("-n", hosts.name(host), "link", "set", "eth1", "up")


def no_data_on_eth0(hosts):
    """Allows only connections to the master on eth0."""
    for host in (0, 1):
        netns.ip("-n", hosts.name(host), "rule", "add", "pref", "1", "to", "10.84.0.0/24",
                 "ipproto", "tcp", "dport", f"{STATE}-{P2P}", "unreachable")


def forward(lab, hosts, host, ports):
    """Forwards connections to these ports to other ports of the host, as a router does."""
    code = """
import socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(1 << 16):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        a.close()
        b.close()
def serve(port, to):
    s = socket.create_server(("0.0.0.0", port))
    print("ready", flush=True)
    while True:
        a, _ = s.accept()
        b = socket.create_connection(("127.0.0.1", to))
        for x, y in ((a, b), (b, a)):
            threading.Thread(target=pump, args=(x, y), daemon=True).start()
for pair in sys.argv[1:]:
    threading.Thread(target=serve, args=map(int, pair.split(":"))).start()
"""
    process, log = lab.spawn("router", host, [sys.executable, "-c", code, *ports])
    lib.until(lambda: log.read_text("ascii").count("ready") == len(ports), "the router does not start")
    return process


def far_ends(hosts, host, port):
    """Returns the remote addresses of the host's connections to a port."""
    lines = on(hosts, host, "ss", "-tnHO", "state", "established", f"( dport = :{port} )")
    return set(re.findall(rf"(\S+):{port}\b", lines))


def reduces(what, peers, line=REDUCE):
    wrong = judge(together(peers, f"{line} ids={ids_of(peers)}"))
    check(not wrong, f"{what}: the hosts reduce", wrong)


def later_and_chosen(hosts):
    """The interface that is named in the options appears only after the master has received the
    hello."""
    with lib.Lab(hosts=hosts) as lab:
        lab.start(agent_options=["--interfaces", "eth1"])
        first = lab.start_peer(0, 0)
        lib.form_run([first])
        lab.agents[0].await_log("no address that it can advertise")
        second_network(hosts)
        second = lab.start_peer(1, 1)
        lab.agents[0].await_log("10.85.0.1")
        second.send("create", "connect")
        first.expect("until world=2")
        second.read()
        check(second.read()["code"] == lib.SUCCESS,
              "a newcomer gets in over an interface that appears after the start")
        reduces("chosen", [first, second])
        for host in (0, 1):
            ends = far_ends(hosts, host, P2P)
            check(ends == {f"10.85.0.{2 - host}"}, "data takes only the interface that the option names", ends)
        lab.check_alive()


def subnet(hosts):
    with lib.Lab(hosts=hosts) as lab:
        second_network(hosts)
        lab.start(agent_options=["--advertise", "10.85.0.0/16", "--advertise", "eth7,10.86.0.0/16"])
        for agent in lab.agents.values():
            agent.await_log("no address in eth7, 10.86.0.0/16: if this is a mistake")
        reduces("a network that is named", lab.start_peers([0, 1]))
        ends = far_ends(hosts, 0, P2P) | far_ends(hosts, 1, P2P)
        check(ends == {"10.85.0.1", "10.85.0.2"}, "data takes only the network that the option names", ends)


class Named(lib.Namespaces):
    """Hosts with their own file of host names."""

    file = None

    def command(self, host, args):
        # "ip netns exec" has its own mount namespace
        return super().command(host, ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"',
                                      str(self.file), *args] if self.file else args)


def host_names():
    hosts = lib.make_namespaces(2, Named)
    with lib.Lab(hosts=hosts) as lab:
        second_network(hosts)
        hosts.file = lab.folder / "hosts"
        hosts.file.write_text("127.0.0.1 localhost\n", encoding="ascii")
        lab.start_master()
        for host in (0, 1):
            lab.start_agent(host, options=["--advertise", f"host-{host}.pccl.example"])
            lab.agents[host].await_log(f"host-{host}.pccl.example in advertise is not found")
        # the file must not be replaced, because it is mounted
        with open(hosts.file, "a", encoding="ascii") as file:
            for host in (0, 1):
                file.write(f"10.85.0.{host + 1} host-{host}.pccl.example\n")
        for host in (0, 1):
            lab.agents[host].await_log(f"10.85.0.{host + 1}")
        reduces("host names that are found late", lab.start_peers([0, 1]))
        ends = far_ends(hosts, 0, P2P) | far_ends(hosts, 1, P2P)
        check(ends == {"10.85.0.1", "10.85.0.2"}, "data takes the addresses of the host names", ends)
        lab.check_alive()


def on_loopback_interface(hosts):
    """The address that other hosts use is on the loopback interface and belongs to no network.
    Routers often have such an address."""
    with lib.Lab(hosts=hosts) as lab:
        for host in (0, 1):
            netns.ip("-n", hosts.name(host), "addr", "add", f"10.99.0.{host + 1}/32", "dev", "lo")
            netns.ip("-n", hosts.name(host), "route", "add", f"10.99.0.{2 - host}/32",
                     "via", hosts.address(1 - host))
        no_data_on_eth0(hosts)
        lab.start()
        reduces("addresses on lo", lab.start_peers([0, 1]))
        lab.check_alive()


def among_many(hosts):
    """The usable address is not among the first sixteen. The agent logs that it does not advertise
    all addresses."""
    with lib.Lab(hosts=hosts) as lab:
        for host in (0, 1):
            netns.ip("-n", hosts.name(host), "link", "add", "many", "type", "bridge")
            netns.ip("-n", hosts.name(host), "link", "set", "many", "up")
            for k in range(16):
                netns.ip("-n", hosts.name(host), "addr", "add", f"10.{100 + k}.{host}.1/32",
                         "dev", "many")
        second_network(hosts)
        no_data_on_eth0(hosts)
        lab.start()
        reduces("the eighteenth address", lab.start_peers([0, 1]))
        for k in range(60):
            netns.ip("-n", hosts.name(0), "addr", "add", f"10.150.{k}.1/32", "dev", "many")
        lab.agents[0].await_log("more addresses of this host are not advertised")
        lib.until(lambda: lib.ask("--agent", lab.agents[0], "status")[0]["addresses_left_out"] == 14,
                  "pcclctl does not show how many addresses are not advertised")
        check(lib.ask("--agent", lab.agents[0], "status")[0]["addresses"] == 64,
              "pcclctl says how many addresses of a host are advertised, and how many are not")
        lab.check_alive()


def forwarded_ports(hosts):
    """The agent of host 1 listens on the usual ports. Other hosts connect to the ports of a router."""
    with lib.Lab(hosts=hosts) as lab:
        routers = [forward(lab, hosts, host, (f"50150:{P2P}", f"50149:{STATE}"))
                   for host in (0, 1)]
        lab.start(agent_options=["--advertise-port-p2p", "50150",
                                 "--advertise-port-shared-state", "50149"])
        peers = lab.start_peers([0, 1])
        reduces("ports that are advertised", peers)
        ends = far_ends(hosts, 0, 50150)
        check(ends == {hosts.address(1)}, "data goes to the port that was advertised", ends)
        for k, peer in enumerate(peers):
            peer.expect(f"tensors n=1 name=w type=f32 count=200000 seed={k}")
        peers[0].expect("state revision=1")
        peers[1].expect("state revision=0")
        answers = together(peers, "sync strategy=popular")
        check(all(a["code"] == lib.SUCCESS for a in answers),
              "shared state goes to the port that was advertised", answers)
        lab.check_alive()
        for router in routers:
            router.kill()
            router.wait()


def forwarder_stands_still(hosts):
    """The program that forwards the ports is stopped. The kernel still acknowledges data and
    answers probes for both hosts, but nobody forwards the data."""
    with lib.Lab(hosts=hosts) as lab:
        router = forward(lab, hosts, 1, (f"50150:{P2P}", f"50149:{STATE}"))
        lab.start_master(options=["--stream-timeout-ms", STREAM_MS])
        lab.start_agent(0)
        lab.start_agent(1, options=["--advertise-port-p2p", "50150",
                                    "--advertise-port-shared-state", "50149"])
        peers = lab.start_peers([0, 1])
        for size, count in (("small", 1000), ("large", 3000000)):
            line = f"reduce type=f32 op=sum count={count} tag={count} retry=5"
            for _ in range(3):  # so that speculative starts are used
                reduces(f"over a forwarder, {size}", peers, line)
            router.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, router.pid, os.WSTOPPED | os.WNOWAIT)
            began = time.monotonic()
            for peer in peers:
                peer.send(f"{line} ids={ids_of(peers)}")
            lab.master.await_log(f"tag {count} seq")
            took = time.monotonic() - began
            router.send_signal(signal.SIGCONT)
            answers = [peer.read() for peer in peers]
            check(not judge(answers) and {a["world"] for a in answers} == {2},
                  f"the forwarder stops, {size}: the operation succeeds over another link, with all peers",
                  answers)
            check(STREAM_MS / 1000 < took < 4 * STREAM_MS / 1000,
                  "a stopped forwarder is noticed after stream_timeout_ms", took)
        check(any("has not arrived for" in words for words in lab.master.log_lines()),
              "the master logs that data has not arrived")
        lab.check_alive()
        router.kill()
        router.wait()


def address_changes(hosts):
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = lab.start_peers([0, 1])
        reduces("before", peers)
        name = hosts.name(1)
        netns.ip("-n", name, "addr", "add", "10.84.0.77/24", "dev", "eth0")
        netns.ip("-n", name, "addr", "del", hosts.address(1) + "/24", "dev", "eth0")
        # without promote_secondaries the kernel has removed the second address together with the
        # first one
        netns.ip("-n", name, "addr", "replace", "10.84.0.77/24", "dev", "eth0")
        reduces("after the address of a host has changed", peers)
        lab.check_alive()


def address_goes(hosts):
    """The host has two addresses. The address that the agent's connections use disappears. All
    timeouts are 25 seconds, so silence alone would show the loss much later."""
    with lib.Lab(hosts=hosts) as lab:
        name = hosts.name(1)
        subprocess.run(hosts.command(1, ["sysctl", "-qw", "net.ipv4.conf.all.promote_secondaries=1"]),
                       check=True, timeout=lib.WAIT)
        netns.ip("-n", name, "addr", "add", "10.84.0.77/24", "dev", "eth0")
        lab.start(master_options=["--host-timeout", "25", "--link-timeout-ms", "25000",
                                  "--stream-timeout-ms", "25000", "--stuck-timeout-ms", "25000"])
        peers = lab.start_peers([0, 1])
        reduces("before", peers)
        netns.ip("-n", name, "addr", "del", hosts.address(1) + "/24", "dev", "eth0")
        began = time.monotonic()
        reduces("after an address that was in use has gone", peers)
        took = time.monotonic() - began
        check(took < 10,
              "operations go on soon after an address in use has gone, without waiting for silence", took)
        check(lib.ask("--master", lab.master, "status")[0]["accepted"] == 2,
              "both peers keep their membership after an address in use has gone")
        lab.check_alive()


def test():
    for case in (later_and_chosen, subnet, on_loopback_interface, among_many, forwarded_ports,
                 forwarder_stands_still, address_changes, address_goes):
        hosts = lib.make_namespaces(2)
        if not hosts:
            raise lib.Skipped("needs network namespaces")
        case(hosts)
    host_names()


lib.run(test, 240)
