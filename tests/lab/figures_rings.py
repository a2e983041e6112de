#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what pcclOptimizeTopology gains in the networks of matrix.py.

usage: ./dev figures rings [--count N] [--repeat N] [--runs N] [FILE...]

One peer on each host reduces an operand of N floats (default 16777216: 64 MiB), in the order of the
file, and again after pcclOptimizeTopology. The rate is what a host sends: 2 (n - 1) / n times the
operand, divided by the median time of the repetitions. Each network is built anew for each run; the
table has the medians of the runs, and in brackets the least and the most. Without FILE all of
matrices/ are measured, and then how long optimizations of 6 and 16 equal hosts take.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib
import matrix
from lib import ids_of, judge, netns

MATRICES = pathlib.Path(__file__).resolve().parent / "matrices"
MBIT = 1e6


def solve(path, objective):
    """Returns what pcclctl topology solve knows about the file."""
    done = lib.ctl("--json", "topology", "solve", "--matrix", path, "--objective", objective)
    if done.returncode:
        raise lib.Failed(done.stderr)
    return json.loads(done.stdout)


def reduce(args, peers):
    """Returns the rate in Mbit/s."""
    times = []
    for _ in range(args.repeat):
        answers = lib.together(peers, f"reduce type=f32 op=sum count={args.count} tag=1 "
                                      f"buffers=in shared ids={ids_of(peers)}", 120)
        wrong = judge(answers)
        if wrong:
            raise lib.Failed(wrong)
        times.append((max(a["end"] for a in answers) - max(a["begin"] for a in answers)) / 1e9)
    n = len(peers)
    return 2 * (n - 1) / n * args.count * 32 / statistics.median(times) / MBIT


def optimize(peers):
    """Returns the seconds that the call took."""
    begin = time.monotonic()
    answers = lib.together(peers, "optimize", 120)
    if any(a["code"] for a in answers):
        raise lib.Failed(f"an optimization failed: {answers}")
    return time.monotonic() - begin


def off(stated, measured):
    return 100 * (measured / stated - 1)


def most(m, a, b):
    """Returns what the link from host a to host b can carry: caps bound it, too."""
    return min(r for r in (m.rates[a][b], m.caps[a][0], m.caps[b][1]) if r > 0)


def errors(network, lab):
    """Returns the largest error, in percent, of the measured rates, and those of caps that bind."""
    m, found = network.matrix, lib.tables("--master", lab.master, "bandwidth")
    place = {f"host-{k}": k for k in range(network.n_hosts)}
    links = [off(most(m, place[r["from"]], place[r["to"]]), r["rate"]) for r in found["links"]]
    caps = []
    for row in found["hosts"]:
        host = place[row["host"]]
        sums = sum(m.rates[host]), sum(each[host] for each in m.rates)
        caps += [(off(cap, row[key]), f"{m.names[host]} {key} {cap / MBIT:.0f}: {row[key] / MBIT:.0f}")
                 for cap, key, links_sum in zip(m.caps[host], ("out", "in"), sums) if 0 < cap < links_sum]
    return max(links, key=abs), caps


def started(lab, network):
    lab.start()
    peers = [lab.start_peer(host, host) for host in range(network.n_hosts)]
    lib.form_ring(peers)
    return peers


def run(args, path, best, bound):
    """Returns the figures of a row, and the errors of caps that bind."""
    with matrix.Hosts(matrix.read(path)) as network, lib.Lab(hosts=network) as lab:
        peers = started(lab, network)
        before = reduce(args, peers)
        took = optimize(peers)
        plan = lib.tables("--master", lab.master, "topology")["plans"][0]
        after = reduce(args, peers)
        again = optimize(peers)
        link, caps = errors(network, lab)
    predicted = plan["predicted"] / MBIT if plan["predicted"] else after
    return {"before": before, "after": after, "gain": after / before, "rings": plan["rings"],
            "predicted": predicted, "of_it": 100 * after / predicted, "best": best, "times": after / best,
            "bound": bound, "of_bound": 100 * after / bound, "first": took, "again": again * 1e3,
            "link": link}, caps


def spread(form, values):
    """Returns the median, and in brackets the least and the most."""
    text = form.format(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({form.format(min(values))}-{form.format(max(values))})"


COLUMNS = {"before": "{:.0f}", "after": "{:.0f}", "gain": "{:.1f}", "rings": "{:.0f}", "predicted": "{:.0f}",
           "of_it": "{:.0f}", "best": "{:.0f}", "times": "{:.2f}", "bound": "{:.0f}", "of_bound": "{:.0f}",
           "first": "{:.2f}", "again": "{:.0f}", "link": "{:+.1f}"}
SPREAD = {"of_it", "times", "of_bound"}


def of_matrix(args, path):
    one, many = solve(path, "bottleneck"), solve(path, "plan")
    runs = [run(args, path, one["rate"] / MBIT, many["upper_bound"] / MBIT) for _ in range(args.runs)]
    name = pathlib.Path(path).name
    cells = []
    for key, form in COLUMNS.items():
        values = [row[key] for row, _ in runs]
        cells.append(spread(form, values) if key in SPREAD else form.format(statistics.median(values)))
    print("|", name, "|", " | ".join(cells), "|", flush=True)
    return name, [cap for _, caps in runs for cap in caps]


def show_caps(found):
    print("\nCaps that bind: stated, measured, error\n")
    for name, caps in found:
        worst = max((error for error, _ in caps), key=abs, default=0)
        print(f"- {name}: at most {worst:+.1f} %;", ", ".join(
            f"{text} ({error:+.1f} %)" for error, text in caps) or "none binds")
    every = [abs(error) for _, caps in found for error, _ in caps]
    print(f"\nOf {len(every)} caps, {sum(e <= 3 for e in every)} are within 3 %, "
          f"{sum(e <= 10 for e in every)} within 10 %")


def of_time(n):
    rows = [" ".join("-" if a == b else "100" for b in range(n)) for a in range(n)]
    text = "\n".join([f"hosts {n}", "rates Mbit/s", *rows])
    with matrix.Hosts(matrix.Matrix(text)) as network, lib.Lab(hosts=network) as lab:
        peers = started(lab, network)
        first, again = optimize(peers), optimize(peers)
    print(f"| {n} | {first:.2f} | {again * 1e3:.0f} |", flush=True)


def main():
    words = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    words.add_argument("--count", type=int, default=16 << 20)
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--runs", type=int, default=3)
    words.add_argument("file", nargs="*")
    args = words.parse_args()
    if not netns.possible():
        raise lib.Skipped("needs root and iproute2")
    print("| network | before, Mbit/s | after | gain | rings | predicted | after to predicted, % | one ring | "
          "times it | bound | after to bound, % | first, s | again, ms | links, % |\n| --- |" + 13 * " ---: |")
    show_caps([of_matrix(args, path) for path in args.file or sorted(MATRICES.iterdir())])
    if args.file:
        return
    print("\n| hosts | first optimization, s | again, ms |\n| ---: | ---: | ---: |")
    for n in (6, 16):
        of_time(n)


if __name__ == "__main__":
    main()
