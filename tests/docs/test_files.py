#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the names of files and tests in documents and index comments: each must exist in the
tree."""
import os
import re
import sys

ROOT = os.environ.get("abs_top_srcdir", ".")
SKIP = {"build", ".git", ".ci"}
INDEX = re.compile(r"^ \*   [a-z_]+\.c +\S", re.M)
PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:c|h|py|sh|proto|patch))`")
HELD_BY = re.compile(r"^- `(tests/[\w/]+\.\w+)`:((?:\s+`\w+`,?)+)", re.M)
SYSTEM = {"stdatomic.h"}
EXAMPLE = re.compile(r"NAME|FOLDER")


def tree():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in SKIP]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def exists(path, files):
    return path in SYSTEM or EXAMPLE.search(path) or any(f == path or f.endswith("/" + path) for f in files)


def documents(files):
    """Yields each name of a file or test in a document, and whether it exists. bench/LOG.md and
    NEWS describe the past and are not checked."""
    for doc in sorted(f for f in files if f.endswith(".md") and f != "bench/LOG.md"):
        text = read(doc)
        for path in sorted(set(PATH.findall(text))):
            yield f"{doc}: {path} exists", exists(path, files)
        for path, names in HELD_BY.findall(text):
            tests = read(path) if path in files else ""
            for name in re.findall(r"\w+", names):
                yield f"{doc}: {path} has {name}", re.search(rf"\b{name}\b", tests)


def indexes(files):
    """Checks headers that list the .c files of their folder: each file is listed, and each listed
    file exists."""
    for header in sorted(f for f in files if f.endswith(".h")):
        top = read(header).split("*/")[0]
        if len(INDEX.findall(top)) < 3:
            continue
        listed = re.findall(r"\b[a-z_]+\.c\b", top)
        folder = os.path.dirname(header)
        there = {os.path.basename(f) for f in files if f.endswith(".c") and os.path.dirname(f) == folder}
        yield f"{header} lists every file of its folder: {sorted(there - set(listed))}", not there - set(listed)
        yield f"{header} lists only files of its folder: {sorted(set(listed) - there)}", not set(listed) - there


def main():
    files = set(tree())
    results = [*documents(files), *indexes(files)]
    print(f"1..{len(results)}")
    for i, (what, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {i} - {what}")
    return not all(good for _, good in results)


if __name__ == "__main__":
    sys.exit(main())
