#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how exact the networks of matrix.py are. Prints the tables of README.md.

usage: ./dev figures matrix [--rows ROW,...] [--seconds S] [--repeat N] [FILE...]

rates   one pair, at 100 Mbit/s to 1 Gbit/s, with two congestion controls, without and with a round trip
trips   round trips of a pair that is idle, and of one whose rate is used up
caps    an out cap while one host sends to all others, an in cap while all others send to one host
FILE    each pair of these matrices alone, and all pairs of the ring in the order of the file at once

A rate is the TCP payload that arrives in S seconds. Each line is the median of N measurements.
"""

import argparse
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib
import matrix
import rates
from lib import check, netns

MBIT = 1e6
CONTROLS = ("bbr", "cubic")
STATED = (100, 200, 500, 1000)
TRIPS = (0, 2, 20)  # ms


def network(size, rate, trip=0, caps=(0, 0)):
    """Builds a network whose first host has the caps. Rates in Mbit/s, the round trip in ms."""
    square = [" ".join("-" if a == b else "{}" for b in range(size)) for a in range(size)]
    text = [f"hosts {size}", "rates Mbit/s", *(row.replace("{}", str(rate)) for row in square),
            "round-trips ms", *(row.replace("{}", str(trip)) for row in square),
            "caps Mbit/s", f"{caps[0]} {caps[1]}", *["0 0"] * (size - 1)]
    return matrix.Hosts(matrix.Matrix("\n".join(text)))


def note(what, stated, values):
    middle = statistics.median(values)
    print(f"| {what} | {stated:g} | {middle:.1f} | {100 * (middle / stated - 1):+.1f} % | "
          f"{min(values):.1f} to {max(values):.1f} |", flush=True)


def repeated(args, hosts, pairs, **words):
    """Returns the sums of what arrives over the pairs, in Mbit/s."""
    return [sum(rates.goodputs(hosts, pairs, args.seconds, 1, **words)) / MBIT for _ in range(args.repeat)]


def of_rates(args):
    print("\n| pair | stated, Mbit/s | measured | error | all |\n| --- | ---: | ---: | ---: | --- |")
    for trip in TRIPS:
        for rate in STATED:
            with network(2, rate, trip) as hosts:
                for control in CONTROLS:
                    note(f"{control}{f', round trip {trip} ms' if trip else ''}", rate,
                         repeated(args, hosts, [(0, 1)], congestion=control))


def of_trips(args):
    print("\n| rate, Mbit/s | stated, ms | idle: least, median | with bbr: median, most | with cubic: median, most |")
    print("| ---: | ---: | --- | --- | --- |")
    for trip in TRIPS:
        for rate in STATED:
            with network(2, rate, trip) as hosts:
                idle = rates.round_trips(hosts, (0, 1), 50)
                cells = [f"{idle[0] * 1e3:.2f}, {statistics.median(idle) * 1e3:.2f}"]
                for control in CONTROLS:
                    with rates.flows(hosts, [(0, 1)], control):
                        # The first ones are those of the flow's start.
                        rates.round_trips(hosts, (0, 1), 20, 0.05)
                        busy = rates.round_trips(hosts, (0, 1), 50, args.seconds / 50)
                    cells.append(f"{statistics.median(busy) * 1e3:.2f}, {busy[-1] * 1e3:.2f}")
                print(f"| {rate} | {trip} | {' | '.join(cells)} |", flush=True)


def of_caps(args):
    size, others = 6, range(1, 6)
    print("\n| cap of one of 6 hosts | stated, Mbit/s | measured | error | all |\n| --- | ---: | ---: | ---: | --- |")
    for trip in (0, 20):
        for cap in (250, 500, 1000):
            with network(size, 400, trip, (cap, cap)) as hosts:
                for control in CONTROLS:
                    how = f"{control}{f', round trip {trip} ms' if trip else ''}"
                    note(f"out, to all, {how}", cap,
                         repeated(args, hosts, [(0, k) for k in others], congestion=control))
                    note(f"in, from all, {how}", cap,
                         repeated(args, hosts, [(k, 0) for k in others], congestion=control))


def of_file(args, path):
    m = matrix.read(path)
    size = len(m.names)
    print(f"\n| {pathlib.Path(path).name} | stated, Mbit/s | measured | error | all |\n| --- | ---: | ---: | ---: | --- |")
    with matrix.Hosts(m) as hosts:
        errors = {}
        for a in range(size):
            for b in range(size):
                limits = [x for x in (m.rates[a][b], m.caps[a][0], m.caps[b][1]) if x]
                if a != b and m.rates[a][b]:
                    errors[a, b] = rates.goodputs(hosts, [(a, b)], args.seconds, 1)[0] / min(limits) - 1
        worst = sorted(errors, key=lambda pair: abs(errors[pair]))[-3:]
        print(f"| each of {len(errors)} pairs alone | | | {100 * min(errors.values()):+.1f} to "
              f"{100 * max(errors.values()):+.1f} % | worst: " +
              ", ".join(f"{m.names[a]} to {m.names[b]} {100 * errors[a, b]:+.1f} %" for a, b in worst) + " |")
        ring = [(k, (k + 1) % size) for k in range(size)]
        stated = [min(x for x in (m.rates[a][b], m.caps[a][0], m.caps[b][1]) if x) / MBIT for a, b in ring
                  if m.rates[a][b]]
        if len(stated) == size:
            note("the ring at once, sum", sum(stated), repeated(args, hosts, ring))


ROWS = {"rates": of_rates, "trips": of_trips, "caps": of_caps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help=f"some of {', '.join(ROWS)}; default: all, or none if there is a FILE")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("file", nargs="*", metavar="FILE")
    args = parser.parse_args()
    chosen = args.rows.split(",") if args.rows else [] if args.file else list(ROWS)
    if not set(chosen) <= set(ROWS) or args.seconds <= 0 or args.repeat < 1:
        parser.error("no such row or number")

    def test():
        if not netns.possible():
            raise lib.Skipped("no network namespaces")
        for name in chosen:
            ROWS[name](args)
        for path in args.file:
            of_file(args, path)
        check(True, "all was measured")

    lib.run(test, 3600)


main()
