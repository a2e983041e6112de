#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All peers get the same bits, and the right ones. Every pair of values of world size, hosts,
streams, type, operation, buffers and number of elements occurs in some all-reduce, and so does
every combination of type, operation and buffers."""

import itertools
import os
import random

import lib
from lib import check, ids_of, judge

SEED = int(os.environ.get("E2E_SEED", "1"))
MAX_HOSTS = 4
FACTORS = {
    "world": range(2, 9),
    "hosts": range(1, MAX_HOSTS + 1),
    "streams": (1, 2, 3, 5, 8, 16),
    "type": ("u8", "i8", "i16", "u16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"),
    "op": ("sum", "avg", "prod", "max", "min"),
    # in place or not, and which buffers are shared with the agent
    "buffers": ("in own", "in shared", "out own", "out shared", "out send", "out recv"),
    # fewer than peers, primes, powers of two and their neighbours
    "count": (1, 2, 3, 5, 7, 31, 64, 127, 1009, 4096, 65537, 262147, 999983, 1 << 20),
    "shift": (0, 1, 3),
    "special": (0, 1),
}
CANDIDATES = 40
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
HEADER, SEGMENT_MIN = 64, 8192
GROUP_FACTORS = ("world", "hosts", "streams")


def possible(case):
    """Returns whether these values of some factors can occur together."""
    return not (case.get("hosts", 0) > case.get("world", 99)
                or case.get("special") and case.get("type", "f32")[0] in "ui")


def combinations_of(case):
    yield from itertools.combinations(case.items(), 2)
    yield tuple((name, case[name]) for name in ("type", "op", "buffers"))


def choose_cases(rng):
    """Returns cases in which all wanted combinations occur. A greedy choice keeps them few."""
    names = list(FACTORS)

    def random_case(**fixed):
        while True:
            case = {n: fixed.get(n, rng.choice(FACTORS[n])) for n in names}
            if possible(case):
                return case

    together = [*itertools.combinations(names, 2), ("type", "op", "buffers")]
    wanted = [tuple(zip(group, values)) for group in together
              for values in itertools.product(*(FACTORS[name] for name in group))
              if possible(dict(zip(group, values)))]
    rng.shuffle(wanted)
    left = dict.fromkeys(wanted)
    cases = []
    while left:
        first = next(iter(left))
        best = max((random_case(**dict(first)) for _ in range(CANDIDATES)),
                   key=lambda c: sum(x in left for x in combinations_of(c)))
        for x in combinations_of(best):
            left.pop(x, None)
        cases.append(best)
    return cases


class Pool:
    """The peer processes of each host. Every run uses the same processes."""

    def __init__(self, lab):
        self.lab, self.by_host, self.number = lab, {}, 0

    def pick(self, world, hosts):
        chosen = []
        for k in range(world):
            mine = self.by_host.setdefault(k % hosts, [])
            if len(mine) <= k // hosts:
                mine.append(self.lab.start_peer(self.number, k % hosts))
                self.number += 1
            chosen.append(mine[k // hosts])
        return chosen


def miscounted(answers, case):
    """Checks the byte counts that the peers report. Returns the fault, or None. With two hosts,
    each host sends and receives as many bytes as an operand and the headers of its segments
    have."""
    sent, received = ([a[way] for a in answers] for way in ("tx", "rx"))
    size = case["count"] * BYTES[case["type"].lstrip("uibf")]
    if case["hosts"] == 1:
        good = not any(sent + received)
    elif case["hosts"] == 2:
        headers = {n - size for n in sent + received}
        good = (len(set(sent[::2])) == len(set(sent[1::2])) == 1 and sent[0] == received[1]
                and sent[1] == received[0]
                and all(n % HEADER == 0 and 0 < n <= HEADER * (2 + size // SEGMENT_MIN) for n in headers))
    else:
        good = all(sent + received)
    return None if good else f"{size} bytes, but sent {sent}, received {received}"


def one(peers, case, tag, verifier, seconds=None):
    """Runs one all-reduce. Returns the fault, or None. One peer also computes the result itself."""
    place, mem = case["buffers"].split()
    text = " ".join(f"{k}={case[k]}" for k in ("type", "op", "count", "shift", "special"))
    line = f"reduce {text} place={place} mem={mem} seed={tag} tag={tag} ids={ids_of(peers)}"
    for k, peer in enumerate(peers):
        peer.send(f"{line} verify={int(k == verifier)}")
    answers = [peer.read(seconds) for peer in peers]
    wrong = judge(answers)
    return wrong or miscounted(answers, case)


def test():
    rng = random.Random(SEED)
    cases = choose_cases(rng)
    groups = {}
    for case in cases:
        groups.setdefault(tuple(case[n] for n in GROUP_FACTORS), []).append(case)
    print(f"# seed {SEED}: {len(cases)} cases in {len(groups)} runs", flush=True)
    tag = 0
    with lib.Lab(MAX_HOSTS) as lab:
        lab.start()
        pool = Pool(lab)
        for (world, hosts, streams), mine in sorted(groups.items()):
            peers = pool.pick(world, hosts)
            lib.form_run(peers, streams)
            for case in mine:
                tag += 1
                wrong = one(peers, case, tag, tag % world)
                check(not wrong, " ".join(f"{k}={v}" for k, v in case.items()), wrong)
            for answer in lib.together(peers, "destroy"):
                if answer["code"] != lib.SUCCESS:
                    raise lib.Failed(f"destroy: {answer}")
        lab.check_alive()

        peers = pool.pick(2, 2)
        lib.form_run(peers, 4)
        large = {"hosts": 2, "type": "f32", "op": "sum", "buffers": "in shared",
                 "count": 1 << 26, "shift": 0, "special": 0}
        # a slow build needs a long time to fill and check this many elements
        wrong = one(peers, large, 0, 0, 10 * lib.WAIT)
        check(not wrong, "2^26 elements are reduced", wrong)
        lab.check_alive()
        # A suspended machine is not a fault of the daemons.
        bad = [line for d in lab.daemons for line in d.log_lines()
               if line.startswith(("err", "warning")) and "was suspended for" not in line]
        check(not bad, "the daemons log no errors and warnings", bad[:5])


lib.run(test, 600)
