#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the tables of kernels/qnt_tables.c: the levels of QNT_N4 and the clipping factors.

Without an argument this program tests that the tables of the file are as good as those that it
computes: the expected square error may be larger by one part in TOLERANCE. With --write it writes
the file again. With --errors it prints the expected relative errors.

The model: a block has n independent numbers x with standard normal or uniform distribution. Let a
be the largest magnitude of the block. The code represents z = x / a, which is in [-1, 1], by
c * level, where c is the clipping factor and the level is the nearest one. The square error
of x is a^2 (z - c * level)^2. The model ignores that the scale is rounded to 16 bits.

One number of the block has |z| = 1. The other n - 1 are independent, given a: their distribution is
that of x, cut at a. So the mean square error of a code is an integral over z, with a density that is
weighted by a^2 (class Density), and one term for |z| = 1.
"""
import bisect
import math
import os
import re
import sys

UNIT = 4096  # levels and factors are multiples of 1 / UNIT
TOLERANCE = 20000
BLOCKS = [32, 64, 128, 256, 512, 1024]
GRID = 1000  # intervals of z in [0, 1]


def normal(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


class Density:
    """The weighted density of |z| of the n - 1 numbers of a block, in `w` at the points of a grid,
    and the weight `end` of |z| = 1. The sum of all weights is the variance of x."""

    def __init__(self, n, hint):
        self.n = n
        if hint == "uniform":  # in [-1, 1]; z and a are independent, and E a^2 = n / (n + 2)
            self.w = [(n - 1) / (n + 2)] * (GRID + 1)
            self.end = 1 / (n + 2)
        else:
            self.normal(n)
        self.variance = 1 / 3 if hint == "uniform" else 1
        # Integrals of w, z w and z^2 w from 0 to each point of the grid.
        self.sums = [(0, 0, 0)]
        for i in range(GRID):
            part = self.part(i, (i + 1) / GRID)
            self.sums.append(tuple(s + p for s, p in zip(self.sums[-1], part)))

    def normal(self, n):
        step = 1 / 32
        self.w = [0] * (GRID + 1)
        self.end = 0
        for i in range(1, 300):
            a = i * step
            inside = math.erf(a / math.sqrt(2))  # probability of |x| < a
            p = step * n * 2 * normal(a) * inside ** (n - 1)
            if p < 1e-12:
                continue
            self.end += a * a * p / n
            factor = p * a ** 3 * 2 / inside * (n - 1) / n
            for j in range(GRID + 1):
                self.w[j] += factor * normal(a * j / GRID)

    def part(self, i, z):
        """Integrates w, z w, z^2 w from point i of the grid to z, with w linear in between."""
        x = i / GRID
        slope = (self.w[i + 1] - self.w[i]) * GRID
        base = self.w[i] - slope * x
        p = [0] + [(z ** k - x ** k) / k for k in range(1, 5)]
        return tuple(base * p[k + 1] + slope * p[k + 2] for k in range(3))

    def integrals(self, z):
        if z >= 1:
            return self.sums[GRID]
        i = int(z * GRID)
        return tuple(s + p for s, p in zip(self.sums[i], self.part(i, z)))

    def cell(self, low, high):
        return [b - a for a, b in zip(self.integrals(low), self.integrals(high))]

    def half_error(self, levels):
        """Returns the mean square error if |z| is represented by the nearest of these levels >= 0.
        """
        total = self.end * min((1 - level) ** 2 for level in levels)
        low = 0
        for i, level in enumerate(levels):
            high = 1 if i + 1 == len(levels) else min((level + levels[i + 1]) / 2, 1)
            m = self.cell(low, high)
            total += m[2] - 2 * level * m[1] + level * level * m[0]
            low = high
        return total / self.variance

    def error(self, code, factor):
        return sum(self.half_error([factor * level for level in half]) for half in code) / 2


def small_float(mantissa, exponents, largest):
    """Returns the numbers >= 0 of a float type, divided by the largest one."""
    numbers = [m * 2.0 ** (max(e, 1) - mantissa) + (e > 0) * 2.0 ** max(e, 1)
               for e in range(exponents) for m in range(2 ** mantissa)]
    numbers = numbers[:largest + 1]
    return [x / numbers[-1] for x in numbers]


def centroids(density, k, end):
    """Improves k levels, with the last one fixed at `end`, until each is the mean of its cell
    (Lloyd's algorithm). Returns them after level 0, which is also fixed."""
    levels = [end * i / k for i in range(k + 1)]
    while True:
        edges = [(a + b) / 2 for a, b in zip(levels, levels[1:])]
        cells = [density.cell(a, b) for a, b in zip(edges, edges[1:])]
        better = [0] + [m[1] / m[0] for m in cells] + [end]
        if max(abs(a - b) for a, b in zip(levels, better)) < 1e-7:
            return better
        levels = better


def minimum(f, low, high):
    """Returns where f is least, if it first falls and then rises (golden section)."""
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 0.1 / UNIT:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if f(a) < f(b) else (a, high)
    return (low + high) / 2


def best_levels(density):
    """Returns the 16 levels of QNT_N4 in units: -1, 0 and 1, and those that are best for the blocks
    of this density with the best clipping factor. Besides zero
    there are 8 positive and 7 negative levels."""
    def halves(end):
        return centroids(density, 8, end), centroids(density, 7, end)

    end = minimum(lambda c: density.error(halves(c), 1), 0.9, 1)
    positive, negative = halves(end)
    levels = [-x / end for x in negative[:0:-1]] + [x / end for x in positive]
    return [round(x * UNIT) for x in levels]


def codes(units):
    """Returns the levels of each code, for z > 0 and for z < 0, both as numbers >= 0."""
    levels = [x / UNIT for x in units]
    middle = bisect.bisect_left(levels, 0)

    def same(half):
        return half, half

    return {
        "QNT_I8": same([i / 127 for i in range(128)]),
        "QNT_I4": same([i / 7 for i in range(8)]),
        "QNT_N4": (levels[middle:], [-x for x in levels[middle::-1]]),
        "QNT_E4M3": same(small_float(3, 16, 126)),
        "QNT_E5M2": same(small_float(2, 32, 123)),
    }


def best_factor(density, code):
    """Returns the best clipping factor in units."""
    return min(UNIT, round(minimum(lambda c: density.error(code, c), 0.6, 1) * UNIT))


def text(densities):
    units = best_levels(densities["normal"][0])
    yield "/* SPDX-License-Identifier: MIT */"
    yield "/* Written by tests/kernels/qnt_model.py --write, which explains how. */"
    yield '#include "kernels/qnt_impl.h"'
    yield ""
    yield "/* clang-format off */"
    yield f"#define UNIT(i) ((float)(i) / {UNIT})"
    yield ""
    yield "const float qnt_levels[16] = {"
    for i in range(0, 16, 8):
        yield "\t" + " ".join(f"UNIT({x})," for x in units[i:i + 8])
    yield "};"
    yield ""
    yield "/* For blocks of 32, 64, 128, 256, 512 and 1024 elements. */"
    yield "const float qnt_clips[QNT_HINT_COUNT][QNT_CODE_COUNT][6] = {"
    for hint, rows in densities.items():
        for name in CLIPPED[hint]:
            best = [best_factor(density, codes(units)[name]) for density in rows]
            yield f"\t[QNT_HINT_{hint.upper()}][{name}] = {{"
            yield "\t\t" + " ".join(f"UNIT({x})," for x in best)
            yield "\t},"
    yield "};"
    yield "/* clang-format on */"


# With the other codes the best factor reduces the error by less than one percent.
CLIPPED = {
    "normal": ["QNT_I4", "QNT_N4"],
    "uniform": ["QNT_I4", "QNT_N4", "QNT_E4M3", "QNT_E5M2"],
}


def good_factors(densities, table, units):
    """Prints the factors that are worse than they should be. Returns their number."""
    bad = 0
    for hint, rows in densities.items():
        for name in CLIPPED[hint]:
            code = codes(units)[name]
            found = re.search(rf"HINT_{hint.upper()}\]\[{name}\] = {{([^}}]*)}}", table).group(1)
            for density, factor in zip(rows, re.findall(r"UNIT\((\d+)\)", found), strict=True):
                best = density.error(code, best_factor(density, code) / UNIT)
                if density.error(code, int(factor) / UNIT) > best * (1 + 1 / TOLERANCE):
                    print(f"{name}, {hint}, block {density.n}: {factor} is not the best factor")
                    bad += 1
    return bad


def good_levels(density, units):
    best = codes(best_levels(density))["QNT_N4"]
    have = codes(units)["QNT_N4"]
    good = sorted(units) == units and len(units) == 16 and 0 in units
    error = [density.error(code, best_factor(density, code) / UNIT) for code in (best, have)]
    return good and error[1] <= error[0] * (1 + 1 / TOLERANCE)


def print_errors(densities, units):
    print("relative root mean square error: without a factor; with the best factor")
    for hint, rows in densities.items():
        for name, code in codes(units).items():
            print(f"{hint} {name}")
            for density in rows:
                factor = best_factor(density, code) / UNIT
                error = [math.sqrt(density.error(code, c)) for c in (1, factor)]
                print(f"  block {density.n:4}: {error[0]:.5f}; {error[1]:.5f} ({factor:.5f})")


def main():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.path.join(top, "kernels", "qnt_tables.c")
    densities = {hint: [Density(n, hint) for n in BLOCKS] for hint in ("normal", "uniform")}
    if sys.argv[1:] == ["--write"]:
        with open(path, "w", encoding="ascii") as f:
            f.write("".join(line + "\n" for line in text(densities)))
        return 0
    with open(path, encoding="ascii") as f:
        table = f.read()
    found = re.search(r"qnt_levels\[16\] = {([^}]*)}", table).group(1)
    units = [int(x) for x in re.findall(r"UNIT\((-?\d+)\)", found)]
    if sys.argv[1:] == ["--errors"]:
        print_errors(densities, units)
        return 0
    bad = good_factors(densities, table, units)
    if not good_levels(densities["normal"][0], units):
        print("the levels of QNT_N4 are not the best ones")
        bad += 1
    print("1 passed, 0 failed" if bad == 0 else "0 passed, 1 failed")
    return 0 if bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
