#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A link is reset at one end, and the other end does not notice. No call waits for data in the dead
socket. ss -K closes the sockets while no packet gets through, so the RST is lost, but data is sent
again."""

import shutil
import subprocess
import time

import lib
from lib import RANK_CONNECTION_LOST, SUCCESS, check

SMALL = "type=f32 op=sum count=4"
LARGE = f"type=f32 op=sum count={1 << 20}"
TRIALS = 8
BOUND = 10  # seconds, for any call


def inside(hosts, host, *words):
    return subprocess.run(hosts.command(host, [str(w) for w in words]), check=False,
                          capture_output=True, text=True, timeout=30)


def lose_ends(lab, host, on):
    """Drops all packets that leave this host. Packets that are not sent again are lost."""
    for other in lab.agents:
        if other != host:
            lab.hosts.deafen(host, other, on)


def port_of(lab, host):
    return lib.ask("--agent", lab.agents[host], "status")[0]["p2p_port"]


def reset(lab, host, way, some=False):
    """Closes the p2p sockets of the host: incoming ones (way "in") or outgoing ones. some: closes
    only one socket."""
    own, others = port_of(lab, host), [port_of(lab, h) for h in lab.agents if h != host]
    ports = [f"sport = :{own}"] if way == "in" else [f"dport = :{p}" for p in others]
    for rule in ports:
        if some:
            found = inside(lab.hosts, host, "ss", "-Htn", "state", "established", rule).stdout
            lines = [line.split() for line in found.splitlines()]
            if not lines:
                raise lib.Failed(f"no link {way} on host {host}")
            local, remote = lines[0][2], lines[0][3]
            rule = (f"sport = :{local.rsplit(':', 1)[1]} and "
                    f"dport = :{remote.rsplit(':', 1)[1]}")
        done = inside(lab.hosts, host, "ss", "-KHt", "state", "established", rule)
        if done.returncode:
            raise lib.Skipped(f"ss -K: {done.stderr.strip()}")


def calls(peers, line, seconds):
    """Runs all-reduces without pause for `seconds`. Returns the longest call, and the faults."""
    longest, wrong, done, until = 0, [], 0, time.monotonic() + seconds
    while time.monotonic() < until or done == 0:
        began = time.monotonic()
        for peer in peers:
            peer.send(line)
        answers = [p.read(seconds=BOUND + 20) for p in peers]
        longest = max(longest, time.monotonic() - began)
        codes = {a["code"] for a in answers}
        if codes not in ({SUCCESS}, {RANK_CONNECTION_LOST}) or any(a["check"] != "ok" for a in answers):
            wrong.append(answers)
            break
        done += codes == {SUCCESS}
    return longest, wrong, done


def trial(lab, peers, line, host, ways, idle=False, some=False):
    """Resets links once, during calls or before them."""
    line = f"reduce {line} ids={lib.ids_of(peers)} verify=1"
    if not idle:
        for peer in peers:
            peer.send(line)
    lose_ends(lab, host, True)
    for way in ways:
        reset(lab, host, way, some)
    time.sleep(0.02)  # the time in which packets are dropped
    lose_ends(lab, host, False)
    if not idle:
        for peer in peers:
            peer.read(seconds=BOUND + 20)
    return calls(peers, line, 0.3)


def series(hosts, n_hosts, what, line, ways, algorithm="ring", **words):
    with lib.Lab(hosts=hosts) as lab:
        lab.start(master_options=("--algorithm", algorithm))
        peers = lab.start_peers(range(n_hosts), streams=3, form=lib.form_ring)
        longest, wrong = 0, []
        for k in range(TRIALS):
            took, bad, done = trial(lab, peers, line, k % n_hosts, ways, **words)
            longest = max(longest, took)
            wrong += bad
            if done == 0:
                wrong.append("nothing succeeds")
            if bad:
                break
        check(not wrong and longest < BOUND, f"{what}, {TRIALS} times: no call takes longer than "
              f"{BOUND} s, all peers get the same result, the next calls succeed", wrong or longest)
        lab.check_alive()


def test():
    cases = ((2, "incoming streams are reset, small operations", SMALL, ("in",), {}),
             (2, "outgoing streams are reset", SMALL, ("out",), {}),
             (2, "incoming and outgoing streams are reset between calls", SMALL, ("in", "out"), {"idle": True}),
             (2, "incoming streams are reset between calls", SMALL, ("in",), {"idle": True}),
             (2, "one of several incoming streams is reset", LARGE, ("in",), {"some": True}),
             (3, "three hosts, incoming streams are reset, large operations", LARGE, ("in",), {}),
             (3, "three hosts, incoming streams are reset, small operations", SMALL, ("in",), {}),
             (3, "direct, quantized: incoming streams are reset", f"{LARGE} {lib.QUANTIZED['int4']}", ("in",),
              {"algorithm": "direct"}),
             (4, "tree: one of several incoming streams is reset", LARGE, ("in",),
              {"algorithm": "tree", "some": True}))
    if not shutil.which("ss"):
        raise lib.Skipped("needs ss")
    for n_hosts, what, line, ways, words in cases:
        hosts = lib.make_namespaces(n_hosts)
        if not hosts:
            raise lib.Skipped("needs root and network namespaces")
        series(hosts, n_hosts, what, line, ways, **words)


lib.run(test, 240)
