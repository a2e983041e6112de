# SPDX-License-Identifier: MIT
"""The common parts of scripts that measure: their options, and the table that they print.

No test depends on the figures: bench/RESULTS.md keeps them."""

import argparse
import subprocess
from statistics import median

import lib
from lib import Failed, check

MIB = 1 << 20
# the share of payload in the bytes that tbf counts for a full TCP packet with time stamps
PAYLOAD = 1448 / 1514

table = []  # lines of the result


def since_all_called(answers):
    """Returns the time from the last call to the last return, in ns. A peer that calls first waits
    for peers that still fill their buffers, which may take a tenth of a second longer."""
    return max(a["end"] for a in answers) - max(a["begin"] for a in answers)


def note(row, setting, values, digits, unit, beside="", target=""):
    """Adds a line with the median and the range of the values to the table, and prints this
    line."""
    v = sorted(values)
    line = (f"| {row} | {setting} | {median(v):.{digits}f} {unit} | {v[0]:.{digits}f} to "
            f"{v[-1]:.{digits}f} | {beside} | {target} |")
    table.append(line)
    print(line, flush=True)


def shape(hosts, rates):
    """Limits links to these rates in Mbit/s in both directions, at the host and at the other end of
    its cable."""
    for host, rate in enumerate(rates):
        for name, device in ((hosts.name(host), "eth0"), (hosts.name("net"), f"to-{host}")):
            subprocess.run(
                ["tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                 f"{rate}mbit", "burst", "256kb", "latency", "20ms"], check=True, timeout=20)


def main(doc, rows, size, repeat=5):
    """Runs the rows that are chosen on the command line. rows: the functions by the names of the
    rows; each is called with the size in bytes and the number of repetitions. size
    (in MiB) and repeat: the defaults of these two numbers."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(rows),
                        help=f"some of {', '.join(rows)}; default: all")
    parser.add_argument("--size", type=int, default=size, metavar="MIB", help=f"default: {size}")
    parser.add_argument("--repeat", type=int, default=repeat, metavar="N",
                        help="measurements of each figure")
    args = parser.parse_args()
    chosen = args.rows.split(",")
    if not set(chosen) <= set(rows) or args.size < 1 or args.repeat < 1:
        parser.error("no such row, size or number")

    def test():
        if not lib.netns.possible():
            raise lib.Skipped("no network namespaces")
        for name in chosen:
            try:
                rows[name](args.size * MIB, args.repeat)
                check(True, name)
            except Failed as error:
                check(False, f"{name}: {error}")
        print("\n| row | setting | median | all | beside | to hold |")
        print("| --- | --- | ---: | --- | --- | --- |")
        print("\n".join(table))

    lib.run(test, 3600)
