#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that each manual page of section 3 lists the same codes as pccl.h lists for its functions,
and that pcclGetLastError(3) has all codes with their numbers."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

HEADER = (TOP / "libpccl-shim/include/pccl.h").read_text("utf-8")
ENUM = re.search(r"typedef enum pcclResult_t \{(.*?)\} pcclResult_t;", HEADER, re.S)[1]
CODES = {name: int(value) for name, value in re.findall(r"^\t(pccl\w+) = (\d+)", ENUM, re.M)}


def listed(comment):
    """Returns the codes that stand at the start of a line of the comment, alone or with an
    explanation. Codes in prose do not count."""
    rows = re.findall(r"^ \*\s(pccl\w+(?:, pccl\w+)*)(?:  |:|$)", comment, re.M)
    return {name for row in rows for name in row.split(", ")} & CODES.keys()


def functions():
    """Returns the codes that pccl.h lists for each function that returns a code."""
    found = re.findall(r"/\*((?:(?!\*/).)*?)\*/\s*PCCL_EXPORT pcclResult_t (\w+)\(", HEADER, re.S)
    return {name: listed(comment) for comment, name in found}


def source(name):
    """Returns the name and text of a function's page, which may be the page of another function."""
    text = (TOP / f"man/man3/{name}.3").read_text("utf-8")
    link = re.search(r"^\.so man3/(\w+)\.3$", text, re.M)
    return source(link[1]) if link else (name, text)


def of_page(text):
    section = re.search(r"^\.Sh RETURN VALUES\n(.*?)^\.Sh ", text, re.M | re.S)[1]
    rows = re.findall(r"^\.It Er (.*)", section, re.M)
    return set(re.findall(r"pccl\w+", " ".join(rows) if rows else section)) & CODES.keys()


def test():
    # The codes that every function can return. Not every page repeats them.
    general = listed(HEADER.partition("*/")[0]) | {"pcclSuccess"}
    check(len(general) > 5, "pccl.h begins with the codes that every function can return", general)
    pages, texts = {}, {}
    for function, codes in functions().items():
        page, texts[page] = source(function)
        pages.setdefault(page, set()).update(codes)
    for page, codes in pages.items():
        there = of_page(texts[page])
        check(there - general == codes - general, f"{page}(3) lists the codes of pccl.h",
              f"only the page: {there - codes - general}, only pccl.h: {codes - there}")
        check(codes <= there, f"{page}(3) lists the codes that pccl.h explains", codes - there)
    numbers = re.findall(r"^\.It Er (pccl\w+) Pq (\d+)", source("pcclGetLastError")[1], re.M)
    check({name: int(value) for name, value in numbers} == CODES,
          "pcclGetLastError(3) lists all codes", numbers)


lib.run(test, 30)
