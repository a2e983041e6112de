#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two hosts with a high round-trip path between them that loses packets. Results are right, and
newcomers get their state. Streams have the congestion control that the administrator of the hosts
has chosen. A link has as many streams as its path needs, times three, because bbr makes each stream
pause now and then. On a path with a short round trip the streams use another congestion control if
the chosen one is bbr, and the link has no more streams than requested."""

import re
import subprocess
import time

import lib
import high_rtt
from lib import SUCCESS, check, ids_of, judge, together

P2P, STATE = 20001, 20002  # ports, the same on all hosts
DEFAULT, NEAR = "bbr", "cubic"  # congestion control of the hosts, and of streams with short round trips
DELAY_MS, FARTHER_MS, FARTHEST_MS, LOSS = 10, 50, 175, 0.001  # in each direction
SETS_SECONDS = 11  # seconds; each of a link's three stream sets sends for five
COUNTS = (1, 255, 16384, 262144, 4194304)  # of f32
TENSORS = ("name=big type=f32 count=1000000", "name=small type=bf16 count=500001",
           "name=shared type=u8 count=65537 mem=shared")


def run(hosts, host, *args):
    done = subprocess.run(hosts.command(host, args), capture_output=True, text=True,
                          timeout=lib.WAIT, check=False)
    if done.returncode != 0:
        raise lib.Failed(f"{' '.join(args)}: {done.stderr}")
    return done.stdout


def prepare(hosts):
    known = run(hosts, 0, "sysctl", "-n", "net.ipv4.tcp_available_congestion_control")
    if not {DEFAULT, NEAR} <= set(known.split()):
        hosts.close()
        raise lib.Skipped(f"needs a kernel that knows {DEFAULT} and {NEAR}")
    for host in range(hosts.n_hosts):
        run(hosts, host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={DEFAULT}")
    return hosts


def streams_of(hosts, host, port):
    """Returns two lists about the host's connections from and to a port: the names of their
    congestion controls, and their shortest round trips in ms."""
    text = run(hosts, host, "ss", "-tinHO", "state", "established",
               f"( sport = :{port} or dport = :{port} )")
    return (re.findall(rf"\s({DEFAULT}|{NEAR})\s", text),
            [float(x) for x in re.findall(r"\bminrtt:([\d.]+)", text)])


def check_streams(hosts, what, port, wanted, n, round_trip):
    """n: the least and the largest number of streams, in both directions."""
    for host in range(hosts.n_hosts):
        names, trips = streams_of(hosts, host, port)
        check(n[0] <= len(names) <= n[1] and set(names) == {wanted},
              f"{what}: streams of host {host} have {wanted}, {n[0]} to {n[1]} of them", f"{names}, {trips} ms")
        if round_trip:
            check(len(trips) == len(names) and min(trips, default=0) >= round_trip,
                  f"{what}: no round trip takes less than {round_trip} ms", trips)


def synchronize(lab, peers, look):
    """Synchronizes: the second peer gets the state of the first one. look() is called during the
    transfer."""
    for peer, revision in zip(peers, (41, 0)):
        peer.expect(f"state revision={revision}")
        for k, words in enumerate(TENSORS):
            freeze = int(k == 0 and revision == 0)  # stops the process when half of the tensor has arrived
            peer.expect(f"tensors {words} seed={k} like={peer.number} freeze={freeze}")
    want = peers[0].expect("digest")["hash"]
    peers[0].send("sync revision=42")
    peers[1].send("sync revision=0")
    lib.await_stop(peers[1])
    look()
    lib.wake(peers[1])
    answers = [p.read() for p in peers]
    check(all(a["code"] == SUCCESS and a["check"] == "ok" and a["hash"] == want for a in answers),
          "a newcomer gets the state over a high round-trip path", answers)
    lab.check_alive()


def scene(hosts, what, wanted, n, round_trip, counts, seconds=0):
    with lib.Lab(hosts=prepare(hosts)) as lab:
        lab.start(agent_options=("--p2p-port", P2P, "--shared-state-port", STATE))
        peers = [lab.start_peer(k, k) for k in range(2)]
        lib.form_ring(peers)
        check_streams(hosts, what, P2P, wanted, n, round_trip)
        cases = [(c, m) for c in counts for m in ("own", "shared")]
        end, tag = time.monotonic() + seconds, 0
        while tag < len(cases) or time.monotonic() < end:
            count, mem = cases[tag % len(cases)]
            answers = together(peers, f"reduce type=f32 op=sum count={count} mem={mem} tag={tag} "
                               f"seed={tag} ids={ids_of(peers)} verify=1", 2 * lib.WAIT)
            wrong = judge(answers)
            check(not wrong, f"{what}: {count} numbers in {mem} memory are reduced", wrong)
            tag += 1
        synchronize(lab, peers, lambda: check_streams(
            hosts, f"{what}, shared state", STATE, wanted, (1, 1000), round_trip))


def test():
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: {"delay": DELAY_MS, "loss": LOSS}})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    # one stream is requested, and each link has one more stream for small operations
    scene(hosts, f"{2 * DELAY_MS} ms", DEFAULT, (2 * (3 * 4 + 1),) * 2, 2 * DELAY_MS, COUNTS)
    check(all(way["lost"] for way in hosts.told[1].values()), "packets were lost in both directions",
          hosts.told)
    # a stream for each 12 ms, and at most eight at a time
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: {"delay": FARTHER_MS}})
    scene(hosts, f"{2 * FARTHER_MS} ms", DEFAULT, (2 * (3 * 8 + 1),) * 2, 2 * FARTHER_MS, COUNTS[-1:],
          SETS_SECONDS)
    # a round trip so high that streams would be late if they connected one group after another
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: {"delay": FARTHEST_MS}})
    scene(hosts, f"{2 * FARTHEST_MS} ms", DEFAULT, (2 * (3 * 8 + 1),) * 2, 2 * FARTHEST_MS, COUNTS[:1])
    near = 2 * (1 + 1)
    scene(lib.make_namespaces(2), "a short round trip", NEAR, (near, near), 0, COUNTS[:1])


lib.run(test, 240)
