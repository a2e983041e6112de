#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The data of one connection of a link is dropped, whatever the size of the packets, while each
host still receives other data from the other host. The link counts as broken, and the operation
goes on over the next link, with all peers."""

import re

import halfopen
import lib
from lib import check, ids_of, judge

STUCK_MS = 1500
KERNEL_MS = 8000  # the time after which the kernel gives up a connection
STREAMS = 4
SMALL = "type=f32 op=sum count=64"
BIG = f"type=f32 op=sum count={1 << 20}"  # 4 MiB


def flows(hosts, host):
    """Returns the connections on which the host sends to host 1: the local port and the number of
    bytes sent."""
    said = halfopen.run(hosts, host, "ss", "-tinHO", "state", "established",
                        f"dport = :{halfopen.P2P} and dst {hosts.address(1)}")
    return {int(re.search(r":(\d+)\s", line)[1]):
            int((re.search(r"bytes_sent:(\d+)", line) or (0, 0))[1]) for line in said.splitlines()}


def drop_data(hosts, host, direction, port):
    """Drops packets from this port to a p2p port that are longer than an acknowledgement."""
    for number, bit in enumerate(range(7, 16), start=1):
        hosts.tc(host, "filter", "add", "dev", "eth0", direction, "protocol", "ip", "pref", number,
                 "u32", "match", "ip", "protocol", "6", "0xff", "match", "ip", "sport", port,
                 "0xffff", "match", "ip", "dport", halfopen.P2P, "0xffff", "match", "u16",
                 hex(1 << bit), hex(1 << bit), "at", "2", "action", "mirred", "egress", "redirect",
                 "dev", "nowhere")


def stalled(hosts, what, line, host, direction, algorithm="ring"):
    """On other routes than the ring the hosts cannot tell which link is broken. The group takes the
    ring instead, and finds the link there if the ring contains it."""
    lost_at_most = 1 if algorithm == "ring" else 2
    with lib.Lab(hosts=hosts) as lab:
        lab.start(master_options=["--stuck-timeout-ms", STUCK_MS, "--algorithm", algorithm])
        peers = lab.start_peers(range(hosts.n_hosts), streams=STREAMS)
        # The connection that has sent most is the one for small operations, unless a large
        # operation has run.
        for each in (SMALL,) if line == SMALL else (SMALL, BIG):
            wrong = judge(lib.together(peers, f"reduce {each} ids={ids_of(peers)}"))
            if wrong:
                raise lib.Failed(wrong)
        sent = flows(hosts, 0)
        drop_data(hosts, host, direction, max(sent, key=sent.get))
        answers = lib.together(peers, f"reduce {line} retry=5 ids={ids_of(peers)}")
        check(not judge(answers) and {a["world"] for a in answers} == {hosts.n_hosts},
              f"{what}: the operation succeeds, with all peers", answers)
        losses = {a["losses"] for a in answers}
        check(len(losses) == 1 and 1 <= min(losses) <= lost_at_most,
              f"{what}: all peers get the same errors, {losses}", answers)
        took = max(a["first_loss"] - a["begin"] for a in answers) / 1e6
        print(f"# {took:.0f} ms")
        if direction == "ingress":
            check(STUCK_MS / 2 < took < KERNEL_MS, "the stuck stream is noticed after stuck_timeout_ms", took)
        answers = lib.together(peers, f"reduce {line} ids={ids_of(peers)}")
        check(not judge(answers), "the operation after a stuck stream needs no second attempt", answers)
        lab.check_alive()


def test():
    why = halfopen.missing()
    for case in (("a router drops the data of one of several streams", BIG, 1, "ingress"),
                 ("a router drops the data of the stream for small operations", SMALL, 1,
                  "ingress"),
                 # the kernel does not count packets as sent that its own firewall has dropped
                 ("the host itself drops the data of a stream", BIG, 0, "egress"),
                 ("direct, quantized: a router drops the data of a stream",
                  f"{BIG} {lib.QUANTIZED['int8']}", 1, "ingress", "direct")):
        hosts = None if why else lib.make_namespaces(3 if len(case) > 5 else 2, halfopen.Hosts)
        if not hosts:
            raise lib.Skipped(why or "needs network namespaces")
        stalled(hosts, *case)


lib.run(test, 120)
