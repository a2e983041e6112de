#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that calls of pcclAllReduce take in the trainer's process, in one build or
more. No test depends on them: bench/RESULTS.md keeps them.

usage: tests/apart tests/e2e/instructions.py [--calls N] BUILD...

Needs valgrind. Two peers on one host reduce without pause, and callgrind counts the instructions of
one of them, with all that the calls cause in other libraries, but not in the waits for the agent
(pccl_slot_wait): their number depends on the time. The figures are the differences between runs of N
and of 2N calls of 4 KiB, or of N/4 and N/2 calls of 1 MiB. The daemons are those of the first build.
"""

import argparse
import pathlib
import re
import subprocess

import lib
from lib import SUCCESS, Failed, check, ids_of

PATIENCE = 300  # seconds for a peer in callgrind
LINE = re.compile(r"\s*([\d,]+) \(.*?\)\s+(?:\S+:)?([^\s:]+)(?: \[.*\])?$")
ROWS = [(size, mem, share) for size, share in ((4 << 10, 1), (1 << 20, 4))
        for mem in ("staged", "registered")]


class Counted(lib.Loopback):
    """Peer 0 runs in callgrind, on one processor: then it does not spin before it sleeps."""

    out = None

    def command(self, _host, args):
        if args[0] != str(lib.PEER) or "id=0" not in args:
            return args
        return ["taskset", "-c", "0", "valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                "--toggle-collect=pcclAllReduce", "--toggle-collect=pccl_slot_wait",
                f"--callgrind-out-file={self.out}", *args]


def costs(path):
    """Returns the instructions of each function, without those of the functions that it calls."""
    # In a folder above the sources, callgrind_annotate would name functions twice.
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", path], check=True,
                          stdout=subprocess.PIPE, text=True, cwd="/").stdout
    found = {}
    for line in map(LINE.match, text.splitlines()):
        if line and line[2] != "TOTALS":
            found[line[2]] = found.get(line[2], 0) + int(line[1].replace(",", ""))
    return found


def measure(lab, calls, size, mem):
    """Returns the instructions of each function in this many calls."""
    lab.hosts.out = lab.folder / "callgrind"
    peers = [lab.start_peer(k, ready=False) for k in range(2)]
    for peer in peers:
        peer.read(PATIENCE)
    lib.form_run(peers)
    for peer in peers:
        peer.send(f"bench n={calls} type=f32 op=sum seed=1 tag=1 count={size // 4} "
                  f"ids={ids_of(peers)}{' mem=shared' if mem == 'registered' else ''}")
    codes = [peer.read(PATIENCE)["code"] for peer in peers]
    for peer in peers:
        peer.send("quit")
        peer.process.wait(PATIENCE)
        lab.drop_peer(peer)
    if codes != [SUCCESS, SUCCESS]:
        raise Failed(f"the calls ended with {codes}")
    return costs(lab.hosts.out)


def per_call(lab, build, calls, size, mem):
    lib.PEER = build / "tests/e2e/peer"
    once = measure(lab, calls, size, mem)
    twice = measure(lab, 2 * calls, size, mem)
    return {name: (n - once.get(name, 0)) / calls for name, n in twice.items()}


def compare(first, other):
    """Returns the functions in which the builds differ by an instruction or more."""
    names = {name: first.get(name, 0) - other.get(name, 0) for name in {*first, *other}}
    return ", ".join(f"{name} {n:+.0f}" for name, n in sorted(names.items(), key=lambda f: -abs(f[1]))
                     if abs(n) >= 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400, metavar="N")
    parser.add_argument("builds", type=pathlib.Path, nargs="+", metavar="BUILD")
    args = parser.parse_args()
    builds = [build.resolve() for build in args.builds]
    lib.MASTERD = builds[0] / "ccoip-masterd/ccoip-masterd"
    lib.AGENTD = builds[0] / "pcclagentd/pcclagentd"

    def test():
        with lib.Lab(1) as lab:
            lab.hosts = Counted(1)
            lab.start()
            for size, mem, share in ROWS:
                found = [per_call(lab, build, args.calls // share, size, mem) for build in builds]
                for build, costs_of in zip(args.builds, found):
                    print(f"{size} bytes, {mem}, {build}: {sum(costs_of.values()):.0f} instructions "
                          "per call", flush=True)
                for build, costs_of in zip(args.builds[1:], found[1:]):
                    print(f"    not as in {build}: {compare(found[0], costs_of)}", flush=True)
        check(True, "all calls were counted")

    lib.run(test, 3600)


if __name__ == "__main__":
    main()
