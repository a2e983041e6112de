#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A link becomes slow after an optimization. Operations show this to the master, it marks the rate
of this link as stale, and the next pcclOptimizeTopology measures this link and no other one."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
# pylint: disable=wrong-import-position
import lib
import matrix
from lib import SUCCESS, check, ids_of, judge, netns, together

FAST, OTHER, SLOW = 100e6, 40e6, 20e6  # bit/s
NEAR = 0.15  # the error of a measured rate that is accepted
N_HOSTS = 4
LINKS = N_HOSTS * (N_HOSTS - 1)
ORDER = (0, 2, 1, 3)  # of the best ring
OPERATION = "type=f32 op=sum count=393216 place=out"
STALE_NS = 30e9  # SLOW_NS of ccm_rates.c
LONGEST = 60  # seconds until the link must be stale


def network():
    """The links of one ring are fast, all others are not."""
    fast = set(zip(ORDER, ORDER[1:] + ORDER[:1]))
    rows = [" ".join("-" if a == b else str((FAST if (a, b) in fast else OTHER) / 1e6) for b in range(N_HOSTS))
            for a in range(N_HOSTS)]
    return matrix.Matrix("\n".join([f"hosts {N_HOSTS}", "rates Mbit/s", *rows]))


class Rings:
    """What the master knows: the links of the only ring, and the rows of pcclctl bandwidth."""

    def __init__(self, lab):
        self.lab = lab

    def links(self):
        rows = lib.tables("--master", self.lab.master, "topology")["rings"]
        return {(r["host"], r["next"]) for r in rows}

    def rates(self):
        rows = lib.tables("--master", self.lab.master, "bandwidth")["links"]
        return {(r["from"], r["to"]): r for r in rows}

    def stale(self):
        return {link for link, row in self.rates().items() if row["stale"]}

    def stale_for_people(self):
        """Returns the links that the table for people shows as stale."""
        done = lib.ctl("--master", self.lab.master.admin, "bandwidth")
        rows = [line.split() for line in done.stdout.splitlines()]
        return {(words[0], words[2]) for words in rows if len(words) > 4 and words[-1] == "yes"}


def is_near(rate, wanted):
    return abs(rate / wanted - 1) <= NEAR


def reduce(peers, tag):
    """Returns the fault of one operation, or None."""
    for peer in peers:
        peer.send(f"reduce {OPERATION} tag={tag} seed={tag} ids={ids_of(peers)} "
                  f"verify={int(peer is peers[tag % len(peers)])}")
    return judge([peer.read() for peer in peers])


def reduce_while(peers, goes_on):
    """Checks operations, at least one, as long as goes_on() returns true."""
    wrong, n = None, 0
    while not wrong and (n == 0 or goes_on()):
        wrong, n = reduce(peers, n), n + 1
    check(not wrong, f"{n} operations in a row are right", wrong)


def optimize(lab, peers):
    """Optimizes. Returns what the master has measured: ["12 links of 4 hosts"]."""
    begin = len(lab.master.log_lines())
    answers = together(peers, "optimize")
    check(all(a["code"] == SUCCESS for a in answers), "pcclOptimizeTopology succeeds", answers)
    return [line.split(": measuring ")[1].split(" in ")[0] for line in lab.master.log_lines()[begin:]
            if ": measuring " in line and " hosts in " in line]


def becomes_slow(lab, peers, rings, link):
    """Goes on with operations until the master logs that the link has become slow."""
    deadline = time.monotonic() + LONGEST * lib.SLOWER

    def noted():
        return [line for line in lab.master.log_lines() if "has become slow" in line]

    def goes_on():
        if time.monotonic() > deadline:
            raise lib.Failed(f"the master does not notice a slow link within {LONGEST} s")
        return not noted()

    began = time.monotonic()
    reduce_while(peers, goes_on)
    took = time.monotonic() - began
    check(took > STALE_NS / 1e9, "not before it was slow for 30 s", took)
    check(len(noted()) == 1 and f"the link from host {link[0]} to host {link[1]} has become slow" in noted()[0],
          "the master names the slow link, and no other one", noted())
    check(rings.stale() == {link}, "pcclctl --json bandwidth shows this link as stale", rings.stale())
    check(rings.stale_for_people() == {link}, "pcclctl bandwidth shows this link as stale",
          rings.stale_for_people())


def scene(lab):
    lab.start(("--benchmark-ms", "300", "--algorithm", "ring"))
    rings, peers = Rings(lab), [lab.start_peer(host, host) for host in range(N_HOSTS)]
    lib.form_ring(peers)
    measured = optimize(lab, peers)
    check(measured == [f"{LINKS} links of {N_HOSTS} hosts"], "the first optimization measures all links", measured)
    wanted = {(f"host-{a}", f"host-{b}") for a, b in zip(ORDER, ORDER[1:] + ORDER[:1])}
    check(rings.links() == wanted, "the ring has the fast links", rings.links())
    reduce_while(peers, lambda: False)
    check(not rings.stale(), "no rate is stale", rings.stale())

    a, b = ORDER[:2]
    link, before = (f"host-{a}", f"host-{b}"), rings.rates()
    lab.hosts.set_rate(a, b, SLOW)
    becomes_slow(lab, peers, rings, link)
    row = rings.rates()[link]
    check(row["rate"] == before[link]["rate"], "the stale rate is the one that was measured", row)

    measured = optimize(lab, peers)
    check(measured == [f"1 links of {N_HOSTS} hosts"], "the next optimization measures this link only", measured)
    row = rings.rates()[link]
    check(is_near(row["rate"], SLOW) and row["source"] == "benchmark" and not row["stale"],
          "pcclctl bandwidth shows the new rate of this link", row)
    check(not rings.stale(), "no rate is stale any more", rings.stale())
    check(link not in rings.links(), "the new ring does not have the slow link", rings.links())
    reduce_while(peers, lambda: False)
    lab.check_alive()


def test():
    if not netns.possible():
        raise lib.Skipped("needs root and iproute2")
    try:
        hosts = matrix.Hosts(network())
    except OSError as error:
        raise lib.Skipped(f"no network with limited rates: {error}") from None
    with lib.Lab(hosts=hosts) as lab:
        scene(lab)


lib.run(test, 120)
