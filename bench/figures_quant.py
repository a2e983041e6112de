#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the results of quantized all-reduces with those of PCCL 1.0, for the same program and
the same operands. Prints a table for bench/RESULTS.md.

usage: ./dev figures quant [--size BYTES] [--iterations N]

The program is pccl-bench. It calls only functions that PCCL 1.0 has, and is run with this library and
with the published library of PCCL 1.0 (pccl-bench --library). Each host, a network namespace, has
one peer. The operands are normal numbers. A figure is the largest relative L2 error of the results
against the sum in binary64, over all iterations and peers.
"""

import argparse
import json
import sys

from peers import base, machine, pccl

MODES = (("minmax-uint8", "MinMax, uint8"), ("minmax-uint16", "MinMax, uint16"),
         ("zero-point-uint8", "ZeroPointScale, uint8"),
         ("zero-point-uint16", "ZeroPointScale, uint16"))
HOSTS = (2, 3, 4)
PATIENCE = 20  # seconds without a step of any peer


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="4M", metavar="BYTES",
                        help="of an operand, as pccl-bench --begin takes it; default %(default)s")
    parser.add_argument("--iterations", type=int, default=5, metavar="N", help="default %(default)s")
    return parser.parse_args()


def error_of(contender, mode, hosts, options):
    """Returns the error of the results of a contender."""
    args = [contender.program(), "allreduce", "-b", options.size, "-e", options.size,
            "-n", options.iterations, "-w", 0, "--peers", hosts, "--hosts", hosts,
            "--quantize", mode, "--check", "--timeout", PATIENCE, "--json"]
    if contender.library:
        args += ["--library", contender.library]
    for attempt in range(contender.attempts):
        try:
            said = json.loads(base.run([str(arg) for arg in args], contender.name,
                                       env=pccl.environment(base.Setting(hosts, hosts))))
            break
        except base.Failed:
            if attempt + 1 == contender.attempts:
                raise
    if said["errors"]:
        raise base.Failed(f"{contender.name}: {said['errors']} failed calls")
    return said["rows"][0]["l2"]


def main():
    options = parse_options()
    contenders = pccl.Staged(), pccl.Released()
    for contender in contenders:
        why = contender.available(base.Setting(2, 2))
        if why:
            print(f"{contender.name}: {why}", file=sys.stderr)
            return 69
    print(f"Machine: {machine.facts()}. {options.size} bytes, {options.iterations} iterations.\n")
    print("| mode | hosts | ours | PCCL 1.0 | PCCL 1.0 / ours |")
    print("| --- | ---: | ---: | ---: | ---: |")
    worse = 0
    for mode, name in MODES:
        for hosts in HOSTS:
            try:
                ours, released = (error_of(c, mode, hosts, options) for c in contenders)
            except base.Failed as error:
                print(error, file=sys.stderr)
                return 1
            worse += ours >= released
            print(f"| {name} | {hosts} | {ours:.3g} | {released:.3g} | {released / ours:.2f} |",
                  flush=True)
    print(f"\n{worse} results of this library are not nearer to the exact sum than those of PCCL 1.0")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
