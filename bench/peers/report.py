# SPDX-License-Identifier: MIT
"""Formats the measurements of bench/compare: figures, tables, and their section in RESULTS.md.

Results are nested dictionaries: setting -> name of the contender -> size in bytes -> list of the
times of the rounds, in seconds."""

import collections
import math
import statistics

BEGIN = "<!-- written by bench/compare: begin -->"
END = "<!-- written by bench/compare: end -->"

CLASSES = (("up to 4 KiB", 0, 4 << 10), ("64 KiB to 1 MiB", 64 << 10, 1 << 20),
           ("16 MiB and more", 16 << 20, math.inf))

LEGEND = """\
fp32 sum, in place. There are {rounds} rounds, at most three for 1 GiB. Each round goes through all settings and sizes,
and all contenders take turns at each size. A time is the median over the rounds. The time of a round is the median of
its all-reduces, and the time of an all-reduce is its time at the slowest rank.

A ratio is the time of another contender, divided by ours in the same round. The tables show the median ratio, with the
least and the most in brackets. Where a ratio is more than 1, ours is faster. "Ours" has its operands in ordinary memory
and stages them; "ours, pcclMemAlloc" has them in memory that is shared with the agent. Both, and PCCL 1.0, are asked
for {streams} streams per link. If this machine has at least as many processors as hosts, each host has its own
processors; otherwise all hosts share all of them. The limits "memcpy" and "sum of two arrays" use arrays of the same
size, in one thread for each peer, but at most one for each processor. The limit "TCP" is the time for the bytes that
each end of an ideal ring sends, at the rate that iperf3 reaches in one direction between two hosts in one second.

On paths with a short round trip this library gives its sockets cubic. The sockets of all others have the host's
default, except in the settings "all with cubic". The ranks of Gloo and Open MPI run through all sizes, reduce zeros,
and begin each all-reduce right after the last one. The peers of this library and of PCCL 1.0 start anew for each size,
reduce small numbers, and begin each all-reduce together. "-" means not measured: TCP below 1 MiB, or a contender that
the last lines name as left out.
"""
SUMMARY = """\
This table sums up the ratios: the median over the sizes of the row, and in brackets the least ratio. At each size, the
best TCP peer is the fastest of PCCL 1.0, Gloo and Open MPI over TCP. 16 KiB and 4 MiB are only in the tables below.
"""


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(value, most):
    """Formats three digits, but at most `most` of them behind the point."""
    steps = enumerate((99.95, 9.995, 0.9995, 0.09995, 0.009995))
    decimals = next((k for k, least in steps if value >= least), most)
    return f"{value:.{min(decimals, most)}f}"


def time_text(times):
    """Formats the median of the times in milliseconds."""
    return number(statistics.median(times) * 1e3, 5) if times else "-"


def ratios(ours, other):
    """Returns (median, least, most) of the ratios other / ours of the rounds, or None."""
    each = [b / a for a, b in zip(ours, other)]
    return (statistics.median(each), min(each), max(each)) if each else None


def ratio_text(found):
    if found is None:
        return "-"
    return "{} ({}-{})".format(*(number(value, 2) for value in found))


def bus_bandwidth(peers, size, times):
    """Returns the bytes per second that an ideal ring would move on each link in this time."""
    return 2 * (peers - 1) / peers * size / statistics.median(times)


def table(head, rows, n_words=1):
    """Formats a table. n_words: number of text columns on the left. The other columns are numbers."""
    if not rows:
        return ""
    lines = [head, ["---"] * n_words + ["---:"] * (len(head) - n_words), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sizes_of(results):
    return sorted({size for of_size in results.values() for size in of_size})


def times_table(results):
    """results: those of one setting."""
    rows = [[size_text(size), *(time_text(of_size.get(size)) for of_size in results.values())]
            for size in sizes_of(results)]
    return table(["ms", *results], rows)


def ratio_table(results, ours):
    """ours: the names of the contenders with which the others are compared. Each gets a row for
    each size."""
    others = [name for name in results if name not in ours]
    rows = []
    for size in sizes_of(results):
        for name in ours:
            mine = results.get(name, {}).get(size, [])
            found = [ratios(mine, results[other].get(size, [])) for other in others]
            if any(found):
                rows.append([size_text(size), name, *map(ratio_text, found)])
    return table(["size", "other / ours", *others], rows, 2)


def class_ratio(results, mine, others, least, most):
    """Computes a ratio for each size from `least` to `most`: the time of the fastest of `others`,
    divided by the time of `mine` (the median of the rounds). Returns (median, least) of these
    ratios, or None. results: those of one setting."""
    each = []
    for size, times in results.get(mine, {}).items():
        found = [ratios(times, results.get(other, {}).get(size, [])) for other in others]
        medians = [of_other[0] for of_other in found if of_other]
        if medians and least <= size <= most:
            each.append(min(medians))
    return (statistics.median(each), min(each)) if each else None


def summary_table(results, ours, rivals):
    """rivals: column title -> names of contenders, of which the best counts at each size."""
    rows = []
    for setting, of_setting in results.items():
        for title, least, most in CLASSES:
            for mine in ours:
                found = [class_ratio(of_setting, mine, others, least, most)
                         for others in rivals.values()]
                if any(found):
                    rows.append([str(setting), title, mine, *(
                        "{} ({})".format(*(number(value, 2) for value in pair)) if pair else "-"
                        for pair in found)])
    return table(["setting", "size", "other / ours", *rivals], rows, 3)


def note_lines(notes):
    """Formats notes, pairs (setting, text), as one line for each text, with the settings and how
    often each occurred."""
    settings = {}
    for setting, text in notes:
        settings.setdefault(text, []).append(str(setting))
    lines = []
    for text, where in settings.items():
        counts = collections.Counter(where)
        found = (name if n == 1 else f"{name}, {n} times" for name, n in counts.items())
        lines.append(f"- {text} ({'; '.join(found)})\n")
    return "".join(lines)


def section(results, ours, rivals, notes, facts):
    """Formats the whole section. rivals: as for summary_table. facts: date, machine, rounds,
    streams, command, took, plot."""
    parts = [f"## All-reduce beside others, {facts['date']}\n",
             f"Machine: {facts['machine']}. Command: `{facts['command']}`, commit "
             f"{facts['commit']}, {facts['took']}.\n",
             LEGEND.format(**facts), SUMMARY, summary_table(results, ours, rivals)]
    if facts["plot"]:
        parts.append(f"![bus bandwidth over size]({facts['plot']})\n")
    for setting, of_setting in results.items():
        parts += [f"### {str(setting).capitalize()}\n", times_table(of_setting),
                  ratio_table(of_setting, ours)]
    if notes:
        parts.append(note_lines(notes))
    return "\n".join(parts)


def replaced(text, new):
    """Returns the text with the section between the markers replaced, or appended if there is none."""
    block = f"{BEGIN}\n{new.strip()}\n{END}\n"
    before, found, rest = text.partition(BEGIN + "\n")
    if not found:
        return f"{text.rstrip()}\n\n{block}" if text else block
    _, found, after = rest.partition(END + "\n")
    if not found:
        raise ValueError(f"there is no line \"{END}\" after \"{BEGIN}\"")
    return before + block + after
