#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One connection of a link has its data dropped, whatever the size of the packets, while both hosts
are heard: the link counts as broken, and the operation goes on over the next one, with all."""

import re

import halfopen
import lib
from lib import check, ids_of, judge

STUCK_MS = 1500
KERNEL_MS = 8000  # after which the kernel gives a connection up
STREAMS = 4
SMALL = "type=f32 op=sum count=64"
BIG = f"type=f32 op=sum count={1 << 20}"  # 4 MiB


def flows(hosts, host):
    """The connections by which the host sends: their ports here, and the bytes that were sent."""
    said = halfopen.run(hosts, host, "ss", "-tinHO", "state", "established",
                        f"dport = :{halfopen.P2P}")
    return {int(re.search(r":(\d+)\s", line)[1]):
            int((re.search(r"bytes_sent:(\d+)", line) or (0, 0))[1]) for line in said.splitlines()}


def drop_data(hosts, host, direction, port):
    """What goes from this port to a p2p port and is longer than an acknowledgement."""
    for number, bit in enumerate(range(7, 16), start=1):
        hosts.tc(host, "filter", "add", "dev", "eth0", direction, "protocol", "ip", "pref", number,
                 "u32", "match", "ip", "protocol", "6", "0xff", "match", "ip", "sport", port,
                 "0xffff", "match", "ip", "dport", halfopen.P2P, "0xffff", "match", "u16",
                 hex(1 << bit), hex(1 << bit), "at", "2", "action", "mirred", "egress", "redirect",
                 "dev", "nowhere")


def stalled(hosts, what, line, choose, host, direction):
    with lib.Lab(hosts=hosts) as lab:
        lab.start(master_options=["--stuck-timeout-ms", STUCK_MS])
        peers = lab.start_peers((0, 1), streams=STREAMS)
        for each in (SMALL, BIG):
            wrong = judge(lib.together(peers, f"reduce {each} ids={ids_of(peers)}"))
            if wrong:
                raise lib.Failed(wrong)
        sent = flows(hosts, 0)
        drop_data(hosts, host, direction, choose(sent, key=sent.get))
        answers = lib.together(peers, f"reduce {line} retry=5 ids={ids_of(peers)}")
        check(not judge(answers) and {a["world"] for a in answers} == {2},
              f"{what}: the operation ends, with all", answers)
        check({a["losses"] for a in answers} == {1}, "after one error", answers)
        took = max(a["first_loss"] - a["begin"] for a in answers) / 1e6
        print(f"# {took:.0f} ms")
        if direction == "ingress":
            check(STUCK_MS / 2 < took < KERNEL_MS, "stuck_timeout_ms decides when", took)
        answers = lib.together(peers, f"reduce {line} ids={ids_of(peers)}")
        check(not judge(answers), "the next one needs no second attempt", answers)
        lab.check_alive()


def test():
    why = halfopen.missing()
    for case in (("a router drops what one of several streams sends", BIG, max, 1, "ingress"),
                 ("a router drops what the stream of small operations sends", SMALL, min, 1,
                  "ingress"),
                 # the kernel does not count as sent what its own firewall has dropped
                 ("the host itself drops it", BIG, max, 0, "egress")):
        hosts = None if why else lib.make_namespaces(2, halfopen.Hosts)
        if not hosts:
            raise lib.Skipped(why or "needs network namespaces")
        stalled(hosts, *case)


lib.run(test, 120)
