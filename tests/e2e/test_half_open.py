#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Connections that one end has lost and the other end still has: links in both directions,
connections to the master, streams of shared state. The faults come during small operations without
pause, large operations and synchronizations. No call lasts longer than BOUND, sums are right, world
sizes are equal, and calls that fail with a loss succeed when repeated.

usage: test_half_open.py [--count N] [--seed N]     or HALF_OPEN_COUNT, HALF_OPEN_SEED

ss -K closes a socket at one end. The other end does not notice this at once, because for a while
the FIN and RST of this host, or all its packets, are dropped."""

import argparse
import collections
import os
import random
import select
import time

import halfopen
import lib
from halfopen import AGENT_SIDE, ALL, ENDS, INBOUND, MASTER_SIDE, OUTBOUND, STATE
from lib import SUCCESS, Failed, check

BOUND = 10  # seconds, for any call
ROUNDS = 30  # the work is repeated until no call is lost, at most so many times
PER_LAB = 50  # faults in each Lab
LABS = ((0, 1), (0, 0, 1, 2), (0, 1, 2))  # the hosts of peers
MANY = 8
LINES = {"small": "storm n={} type=f32 op=sum count=4 place=out",
         "middle": "storm n={} type=i32 op=sum count=9001 place=in",
         "async": f"many n={MANY} retry=9 type=f32 op=sum count=70001 place=out",
         "large": "storm n=4 type=f64 op=sum count=262145 place=in"}
# the most and the fewest calls of a storm, and its duration in seconds
CALLS, FEWEST, STORM = {"small": 600, "middle": 60}, 20, 0.2
TENSORS = "n=3 name=t type=u8 count=24000000 seed=1"
SPOILT = 23000000  # bytes of each tensor
RESET = 0.01  # seconds within which sockets are closed
# Pairs: which packets the other end does not receive, and for how many seconds at least.
LOSSES = ((None, 0), (ENDS, 0.02), (ENDS, 0.05), (ENDS, 0.2), (ENDS, 1), (ENDS, 4), (ALL, 0.02),
          (ALL, 0.05), (ALL, 0.3))
WEIGHTS = (2, 4, 6, 4, 2, 1, 4, 4, 2)


class Work:
    """The work of the peers during a fault. Each peer gets one line and sends one answer."""

    def __init__(self, peers):
        self.peers, self.kind = peers, None
        self.number = self.revision = 0
        # number of calls in the next storm, so that it takes about STORM seconds
        self.calls = dict.fromkeys(CALLS, FEWEST)
        self.usual = {}  # kind -> duration in seconds without a loss
        self.longest = self.uneven = 0
        for peer in peers:
            peer.expect("state revision=0")
            peer.expect(f"tensors {TENSORS}")

    def begin(self, kind):
        self.kind = kind
        self.number += 1
        if kind == "sync":
            self.revision += 1
            self.lags().expect(f"spoil at={self.number} n={SPOILT}")
        for peer in self.peers:
            peer.send(f"sync retry=9 revision={self.revision}" if kind == "sync" else
                      f"{LINES[kind].format(self.calls.get(kind))} seed={1000 * self.number} verify=1 "
                      f"ids={lib.ids_of(self.peers)}")
        if LINES.get(kind, "").startswith("storm"):
            for peer in self.peers:
                peer.read(seconds=6 * BOUND)  # the answer that the call is prepared

    def lags(self, turns=0):
        """Returns the peer whose state differs in the current turn or, with turns=N, in the N-th
        turn after the current one."""
        return self.peers[(self.number + turns) % len(self.peers)]

    def is_done(self, seconds):
        """Waits at most this long. Returns whether all peers have answered."""
        until = time.monotonic() + seconds
        return all(b"\n" in peer.rest or select.select(
            [peer.process.stdout], [], [], max(0, until - time.monotonic()))[0]
            for peer in self.peers)

    def end(self):
        """Returns how many calls were lost. All peers must report the same number."""
        lost = 0
        for _ in range(MANY if self.kind == "async" else 1):
            lost += self.judge([peer.read(seconds=6 * BOUND) for peer in self.peers])
        return lost

    def judge(self, answers):
        losses = [a.get("losses", a.get("lost")) for a in answers]
        lost = max(losses)
        if any(a["check"] != "ok" or a["code"] != SUCCESS for a in answers) \
                or len({a["hash"] for a in answers}) != 1:
            raise Failed(f"{self.kind}: {answers}")
        # A peer that calls between two losses gets two errors. A peer that calls after both gets
        # one.
        self.uneven += len(set(losses)) > 1
        took = max(a["end"] - a["begin"] for a in answers) / 1e9
        longest = max(a.get("longest", 0) for a in answers) / 1e9 or took / (lost + 1)
        self.longest = max(self.longest, longest)
        if longest > BOUND:
            raise Failed(f"{self.kind}: a call took {longest:.1f} s")
        if not lost:
            self.usual[self.kind] = took
        if not lost and self.kind in CALLS:
            self.calls[self.kind] = min(CALLS[self.kind], max(FEWEST, int(
                self.calls[self.kind] * STORM / took)))
        return lost


class Fault:
    """A random fault: the host and its sockets, which packets are dropped, for how long, and the
    work of the peers meanwhile."""

    def __init__(self, rng, n_hosts):
        self.kind = rng.choice(("small", "small", "middle", "async", "large", "sync"))
        self.target = rng.choice((INBOUND, OUTBOUND, INBOUND, OUTBOUND, MASTER_SIDE, AGENT_SIDE,
                                  *(2 * (STATE,) if self.kind == "sync" else ())))
        self.host = 0 if self.target == MASTER_SIDE else rng.randrange(n_hosts)
        self.some = self.target != STATE and rng.random() < 0.5
        # if not 0, a second host whose sockets are closed
        self.again = rng.choice((0, 0, 0, rng.randrange(n_hosts)))
        self.loss, self.hold = rng.choices(LOSSES, WEIGHTS)[0]
        self.when = rng.random()

    def __str__(self):
        return (f"{'one socket' if self.some else 'all sockets'} {self.target} of host {self.host}, "
                f"{self.loss or 'nothing'} lost for {self.hold} s, "
                f"{f'then all of host {self.again}, ' if self.again else ''}amid {self.kind}")


def close_sockets(lab, sockets, work, fault, rng):
    """Closes the sockets of the fault and starts the work. Returns the number of closed sockets."""
    rule = sockets.chosen(fault.host, fault.target, rng.choice if fault.some else None)
    if fault.loss == ENDS:
        lab.hosts.lose(fault.host, ENDS, True)
    work.begin(fault.kind)
    if fault.target != STATE:
        time.sleep(max(0, fault.when * work.usual.get(fault.kind, 0.1) - RESET))
    elif not sockets.wait(fault.host, STATE, lambda: work.is_done(0)):
        return 0  # these sockets exist only while something is transferred
    if fault.loss == ALL:
        lab.hosts.lose(fault.host, ALL, True)
    return sockets.close(fault.host, rule)


def strike(lab, sockets, work, fault, rng):
    """Runs a fault. Returns how many sockets were closed, and how many calls were lost."""
    closed, lost = close_sockets(lab, sockets, work, fault, rng), 0
    until = time.monotonic() + fault.hold
    while time.monotonic() < until:
        if work.is_done(until - time.monotonic()):
            lost += work.end()
            work.begin(fault.kind)
    if fault.again:
        closed += sockets.close(fault.again, sockets.chosen(fault.again, fault.target))
    lab.hosts.lose(fault.host, fault.loss, False)
    for _ in range(ROUNDS):
        now_lost = work.end()
        lost += now_lost
        if not now_lost:
            return closed, lost
        work.begin(fault.kind)
    raise Failed("calls are lost again and again")


def series(places, count, rng, tally):
    hosts = lib.make_namespaces(max(places) + 1, kind=halfopen.Hosts)
    if not hosts:
        raise lib.Skipped("needs root and network namespaces")
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        work = Work(lab.start_peers(places, streams=2))
        sockets = halfopen.Sockets(lab)
        while count > 0:
            fault = Fault(rng, len(lab.agents))
            if fault.target == STATE:
                fault.host = work.lags(1).host
            began = time.monotonic()
            try:
                closed, lost = strike(lab, sockets, work, fault, rng)
            except Failed as error:
                waits = [lib.ctl(option, daemon.admin, what).stdout
                         for option, daemon in (("--master", lab.master),
                                                *(("--agent", a) for a in lab.agents.values()))
                         for what in ("peers", "ops")]
                print(*waits, sep="\n")
                raise Failed(f"{fault}: {error}") from None
            if VERBOSE:
                print(f"# {time.monotonic() - began:5.2f} s, {lost} lost, {closed} closed: {fault}",
                      flush=True)
            if closed:
                count -= 1
                tally["faults"] += 1
                tally["sockets"] += closed
                tally["calls lost"] += lost
                tally["faults that cost a call"] += lost > 0
                tally[fault.target] += 1
                tally[f"amid {fault.kind}"] += 1
        tally["rounds of work in which peers counted different numbers of losses"] += work.uneven
        tally["longest"] = max(tally["longest"], work.longest)
        lab.check_alive()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=int(os.environ.get("HALF_OPEN_COUNT", "30")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HALF_OPEN_SEED", "1")))
    args = parser.parse_args()

    def test():
        if halfopen.missing():
            raise lib.Skipped(halfopen.missing())
        rng, tally = random.Random(args.seed), collections.Counter()
        labs = max(len(LABS), args.count // PER_LAB)
        for k in range(labs):
            series(LABS[k % len(LABS)], args.count * (k + 1) // labs - args.count * k // labs, rng,
                   tally)
        longest = tally.pop("longest")
        check(tally["faults"] == args.count, f"{args.count} half-open faults: sums and world sizes are right, "
              f"lost calls succeed when repeated, no call lasts longer than {longest:.1f} s")
        print("# " + ", ".join(f"{k}: {v}" for k, v in tally.items()))

    lib.run(test, 120 + 5 * args.count)


VERBOSE = "HALF_OPEN_VERBOSE" in os.environ
main()
