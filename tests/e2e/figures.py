#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two quick figures of a build, for orientation; bench/RESULTS.md keeps some.

Two hosts (network namespaces, or agents on loopback without root) with a peer each: the time of a
256 MiB and of a 4-byte all-reduce. usage: abs_top_builddir=BUILD tests/e2e/figures.py
"""

import lib
from lib import check

MIB = 1 << 20
CASES = (
    ("256 MiB, shared memory, in place, 4 streams", 256 * MIB, 6, "place=in mem=shared", 4),
    ("256 MiB, any memory, in place, 4 streams", 256 * MIB, 6, "place=in mem=own", 4),
    ("256 MiB, shared memory, in place, 1 stream", 256 * MIB, 6, "place=in mem=shared", 1),
    ("4 bytes, any memory", 4, 2000, "place=in mem=own", 1),
    ("4 bytes, shared memory", 4, 2000, "place=in mem=shared", 1),
)


def measure(places, hosts=None):
    with lib.Lab(len(set(places)), hosts=hosts) as lab:
        lab.start()
        peers = [lab.start_peer(k, host) for k, host in enumerate(places)]
        for name, size, n, memory, streams in CASES:
            lib.form_run(peers, streams)
            line = f"bench type=f32 op=sum count={size // 4} tag=1 n={n} {memory}"
            answers = lib.together(peers, line, 120)
            median = max(a["median"] for a in answers)
            best = min(a["min"] for a in answers)
            where = "two hosts" if len(set(places)) > 1 else "one host"
            check(all(a["code"] == lib.SUCCESS for a in answers),
                  f"{where}, {name}: median {median / 1e6:.3f} ms, best {best / 1e6:.3f} ms, "
                  f"{size / median:.2f} GB/s", answers)
            lib.together(peers, "destroy")


def test():
    measure((0, 1), lib.make_namespaces(2))
    measure((0, 0))


if __name__ == "__main__":
    lib.run(test, 300)
