#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the limits and bounds in pccl(7) are those of the code (numbers.c), row by row.
Also checks that the defaults in pccl(7) are those that the daemons print in --help."""

import fractions
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

PAGE = (TOP / "man/man7/pccl.7").read_text("utf-8")
MACROS = r"\b(Er|Fl|Ev|No|Pc|Po|Sy|Va|Xr)\s"


def tables(section):
    """Returns the rows of each table of a section: name, and the other cells."""
    text = re.search(rf"^\.Sh {section}\n(.*?)^\.Sh ", PAGE, re.M | re.S)[1]
    found = []
    for table in re.findall(r"^\.Bl -column.*?^\.El", text, re.M | re.S):
        rows = [line[4:].split(" Ta ") for line in table.splitlines() if line.startswith(".It ")]
        found.append({row[0]: row[1:] for row in rows[1:]})
    return found


def words():
    """Returns the text of the page without its macros."""
    lines = (re.sub(r"^\.\w+ ?", "", line) for line in PAGE.splitlines())
    return re.sub(r"\s+", " ", re.sub(MACROS, "", " ".join(lines)))


def number(text):
    """Parses a number like 1,024 or 2^48."""
    base, _, power = text.replace(",", "").partition("^")
    return int(base) ** int(power or 1)


def milliseconds(text):
    return round(float(text.removesuffix(" s")) * 1000)


def factor(text):
    """Returns the option and the factor in a cell: "3/5 OPTION", "2x OPTION" or "OPTION"."""
    name = text.rpartition(" ")[2]
    return name, fractions.Fraction(text.removesuffix(name).strip().rstrip("x") or "1")


def defaults(daemon):
    """Returns the options of a daemon that have a number as default."""
    said = subprocess.run([daemon, "--help"], capture_output=True, text=True, check=True, timeout=lib.WAIT).stdout
    parts = re.split(r"^ +--(?=[a-z])", said, flags=re.M)
    return {part.split()[0]: float(found[1]) for part in parts
            if (found := re.search(r"\[([\d.]+)\]", part))}


def test():
    code = {"limit": {}, "bound": {}, "words": []}
    program = lib.BUILD / "tests/docs/numbers"
    for line in subprocess.run([program], capture_output=True, text=True, check=True,
                               timeout=lib.WAIT).stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "words":
            code[kind].append(rest)
        else:
            row, _, value = rest.rpartition(" = ")
            code[kind][row] = int(value)
    limits = {row: number(cells[0]) for row, cells in tables("LIMITS")[0].items()}
    owned = tables("LIVENESS")
    bounds = {row: cells for table in owned for row, cells in table.items()}
    for kind, page in (("limit", limits),
                       ("bound", {row: milliseconds(cells[0]) for row, cells in bounds.items()})):
        check(page.keys() == code[kind].keys(), f"pccl(7) has a row for each {kind}",
              page.keys() ^ code[kind].keys())
        for row in page.keys() & code[kind].keys():
            check(page[row] == code[kind][row], f"{kind}: {row}", (page[row], code[kind][row]))
    check(len(owned) == 2, "pccl(7) has a table for each daemon", len(owned))
    for daemon, table in zip((lib.MASTERD, lib.AGENTD), owned):
        usual = defaults(daemon)
        for row, cells in table.items():
            option, times = factor(cells[1])
            scale = times * (1 if option.endswith("-ms") else 1000)
            check(round(usual.get(option, 0) * scale) == milliseconds(cells[0]),
                  f"{row}: --{option} of {daemon.name}", (usual.get(option), cells))
    text = words()
    for sentence in code["words"]:
        check(sentence in text, f"pccl(7) has the sentence: {sentence}")


lib.run(test, 30)
