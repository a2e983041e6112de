#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A router resets the connections between two hosts as soon as they have carried some bytes. New
connections can be opened, and small operations succeed. The ring avoids this pair of hosts. If no
ring can avoid it, one of the two is evicted and gets the reason."""

import contextlib
import re
import shutil
import subprocess
import threading

import lib
import high_rtt
from lib import RANK_CONNECTION_LOST, TOO_FEW_PEERS, check, ids_of, judge

RATE = 200  # Mbit/s; slow enough that the router sees the connections before the operation ends
ENOUGH = 500000  # bytes
SMALL = "type=f32 op=sum count=64"
BIG = f"type=f32 op=sum count={2 << 20}"  # 8 MiB


class Router(threading.Thread):
    """A router between host 1 and host 2. It resets connections that host 1 has opened, or that
    either host has opened."""

    def __init__(self, lab, both):
        super().__init__(daemon=True)
        self.lab, self.resets, self.over = lab, 0, threading.Event()
        ports = [lib.ask("--agent", lab.agents[h], "status")[0]["p2p_port"] for h in (1, 2)]
        self.rules = [f"dst {lab.hosts.address(2)} and dport = :{ports[1]}"]
        if both:
            self.rules.append(f"dst {lab.hosts.address(2)} and sport = :{ports[0]}")

    def ss(self, *words):
        return subprocess.run(self.lab.hosts.command(1, ["ss", *words]), check=True,
                              capture_output=True, text=True, timeout=30).stdout

    def run(self):
        while not self.over.wait(0.01):
            for rule in self.rules:
                found = self.ss("-HtinO", "state", "established", rule)
                if max((int(x) for x in re.findall(r"bytes_(?:acked|received):(\d+)", found)),
                       default=0) > ENOUGH:
                    self.ss("-KHt", "state", "established", rule)
                    self.resets += 1


@contextlib.contextmanager
def resets(lab, both):
    router = Router(lab, both)
    router.start()
    try:
        yield router
    finally:
        router.over.set()
        router.join()


def start(lab, n_hosts):
    lab.start()
    peers = lab.start_peers(range(n_hosts), form=lib.form_ring)
    answers = lib.together(peers, f"reduce {BIG} ids={ids_of(peers)} verify=1")
    check(not judge(answers), f"{n_hosts} hosts: a large operation succeeds before any reset", judge(answers))
    return peers


def hosts_of(n_hosts):
    hosts = lib.make_namespaces(n_hosts, high_rtt.Hosts, ways={1: {"rate": RATE}})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    return hosts


def goes_around(n_hosts, both):
    with lib.Lab(hosts=hosts_of(n_hosts)) as lab:
        peers = start(lab, n_hosts)
        with resets(lab, both) as router:
            answers = lib.together(peers, f"reduce {BIG} retry=9 ids={ids_of(peers)}", 60)
            check(not judge(answers) and {a.get("world") for a in answers} == {n_hosts},
                  f"{n_hosts} hosts, {'all' if both else 'the'} links of one pair are reset: "
                  "the operation succeeds, with all peers", judge(answers))
            check(max(a["losses"] for a in answers) == 3 == min(a["losses"] for a in answers),
                  "an operation over reset links succeeds at the fourth attempt", answers)
            for line in (SMALL, BIG):
                answers = lib.together(peers, f"reduce {line} ids={ids_of(peers)}")
                check(not judge(answers), "the next operations need no second attempt", answers)
            print(f"# {router.resets} resets")
        check(any("broke during each of the last 3 operations" in x for x in lab.master.log_lines()),
              "the master's log says why the ring avoids the pair")
        lab.check_alive()


def nothing_around():
    with lib.Lab(hosts=hosts_of(3)) as lab:
        # host 0 runs only the master, which judges the other hosts
        lab.start_master(0)
        for host in (1, 2):
            lab.start_agent(host)
        peers = lab.start_peers((1, 2), form=lib.form_ring)
        with resets(lab, True):
            seen = [set(), set()]
            for _ in range(6):
                answers = lib.together(peers, f"reduce {BIG} ids={ids_of(peers)}", 60)
                small = lib.together(peers, f"reduce {SMALL}", 60)
                for k, a in enumerate(answers + small):
                    seen[k % 2].add((a["code"], a["text"]))
                if TOO_FEW_PEERS in {a["code"] for a in answers + small}:
                    break
            # the evicted host may make one more call after it got the reason
            codes = {code for one in seen for code, text in one
                     if not text.startswith("this peer is no longer part of the run")}
            print(f"# {codes}")
            check(codes <= {0, RANK_CONNECTION_LOST, TOO_FEW_PEERS} and TOO_FEW_PEERS in codes,
                  "2 hosts whose links are reset: one of them is evicted", seen)
            check(any("broke during each of the last 3 operations" in text
                      for one in seen for _, text in one), "the evicted host gets the reason", seen)
        lab.check_alive()


def test():
    if not shutil.which("ss"):
        raise lib.Skipped("needs ss")
    goes_around(3, False)
    goes_around(4, True)
    nothing_around()


lib.run(test, 240)
