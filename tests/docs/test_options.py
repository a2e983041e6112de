#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares each program's table of options (options.c) with its manual page, the page of its
configuration file and its completion: they must have the same options and keys, defaults, limits
and words."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

PAGES = {"pcclagentd": ("man8/pcclagentd.8.in", "man5/pccl-agent.conf.5.in"),
         "ccoip-masterd": ("man8/ccoip-masterd.8.in", "man5/ccoip-masterd.conf.5.in"),
         "pcclctl": ("man1/pcclctl.1.in", None),
         "pccl-bench": ("man1/pccl-bench.1.in", None)}
BUILT_IN = {"help", "version"}
MACROS = r"\b(Ar|Cm|Dv|Er|Ev|Fl|Ic|No|Ns|Op|Pa|Pc|Po|Pq|Ql|Sq|Sy|Va|Xr)\s"
# Patterns for values that have limits.
NUMBER = r"(\d+(?:\.\d+)?[KMGT]?)"
RANGE = rf"\b[Ff]rom {NUMBER} to {NUMBER}"


def page(name):
    return (TOP / "man" / name).read_text("utf-8")


def plain(lines):
    """Returns the text without macros."""
    text = " ".join(re.sub(r"^\.\w+ ?", "", line) for line in lines)
    return re.sub(r"\s+", " ", re.sub(MACROS, "", text + " ")).replace(" ,", ",").replace(" .", ".")


def section(text, name):
    found = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def items(text, macro):
    """Returns the text of each item, by the options (or keys) in its .It lines. If several .It
    lines follow each other, the text after the last one belongs to all of them."""
    found, heads, lines, body, depth = {}, [], [], [], 0
    for line in [*text.splitlines(), ".It"]:
        depth += line.startswith(".Bl") - line.startswith(".El")
        if not line.startswith(".It") or depth > 1:
            body.append(line)
            continue
        if body:
            found.update({name: plain(lines + body) for name in heads})
            heads, lines, body = [], [], []
        heads += re.findall(macro, line)
        lines.append(line)
    return found


def documented(text):
    """Returns the options in .It lines of the page, with their names in --help."""
    return items(section(text, "DESCRIPTION"), r"Fl Fl ([a-z0-9-]+)")


def keys_of(text):
    """Returns the keys of the page of a configuration file, with the text of each key."""
    found = {}
    for head, body in items(section(text, "DESCRIPTION"), r"^\.It Ic (.*?) No =").items():
        found.update({key: body for key in head.split(" , ")})
    return found


def shows_default(text, option):
    """Returns whether the text shows the default. A default in words is not compared, because a
    manual page may use other words."""
    usual = option["usual"]
    return not usual or option["in_words"] or re.search(
        rf"\b[Dd]efault: {re.escape(usual)}(?![\d.]*\d)", text) is not None


def check_texts(name, options, texts, general):
    """Checks the defaults, limits and words of the items of a page. general: the text about all
    items."""
    for option in options:
        text = texts.get(option["name"]) or texts.get(option["name"].replace("-", "_"), "")
        called = f"{name}: {option['name']}"
        check(shows_default(text, option), f"{called} has the default of the table",
              (option["usual"], text))
        limits = re.match(r"a (?:number|port)\b[a-z ]* " + RANGE, option["wanted"])
        said = re.findall(RANGE, text) or re.findall(RANGE, general or "")
        if limits and general is not None:
            check(limits.groups() in said, f"{called} has the limits of the table",
                  (limits.groups(), text))
        elif limits:
            check(all(x == limits.groups() for x in re.findall(RANGE, text)),
                  f"{called} has only the limits of the table", (limits.groups(), text))
        for word in option["words"]:
            check(re.search(rf"\b{word}\b", text), f"{called} has the word {word}", text)


def check_manual(program, options):
    name, conf = PAGES[program]
    text = page(name)
    names = {option["name"] for option in options}
    texts = documented(text)
    check(texts.keys() == names | BUILT_IN, f"{name} has exactly the options of the table",
          texts.keys() ^ (names | BUILT_IN))
    synopsis = section(text, "SYNOPSIS")
    short = {option["letter"]: option["name"] for option in options if option["letter"]}
    shown = set(re.findall(r"Fl Fl ([a-z0-9-]+)", synopsis)) | {
        short.get(letter, letter) for letter in re.findall(r"Fl ([a-z])\b(?!-)", synopsis)}
    check(shown == names | BUILT_IN, f"the synopsis of {name} has exactly the options of the table",
          shown ^ (names | BUILT_IN))
    for letter, long in short.items():
        check(re.search(rf"^\.It Fl {letter} , Fl Fl {long}\b", text, re.M),
              f"{name}: -{letter} is --{long}")
    general = plain(section(text, "DESCRIPTION").partition("\n.Bl -tag")[0].splitlines())
    check_texts(name, options, texts, general)
    environment = set(re.findall(r"\bPCCL_\w+", section(text, "ENVIRONMENT")))
    for option in options:
        if option["env"]:
            check(option["env"] in environment, f"{name} has {option['env']}", environment)
            check(option["env"] in texts.get(option["name"], ""),
                  f"{name}: the text of {option['name']} names {option['env']}")
    return conf


def check_file(program, options, conf):
    text = page(conf)
    options = [option for option in options if option["key"]]
    names = {option["name"].replace("-", "_") for option in options}
    texts = keys_of(text)
    addresses = {key for key in texts if " Ns : " in key or ":" in key}  # keys of [masters]
    check(texts.keys() - addresses == names, f"{conf} has exactly the keys of the table",
          (texts.keys() - addresses) ^ names)
    same = plain(section(text, "DESCRIPTION").splitlines())
    check(f"as the options of the same names in {program}" in same,
          f"{conf} refers to {program} for the limits")
    check_texts(conf, options, texts, None)
    for option in options:
        if option["list"]:
            name = option["name"].replace("-", "_")
            check("repeated" in texts.get(name, ""), f"{conf}: {name} can be repeated")


def complete(program, folder, *words):
    """Returns the words that bash offers for the last word."""
    script = (f'source "{TOP}/completions/{program}"; COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; '
              f'_{program.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"')
    return set(subprocess.run(["bash", "-c", script, program, *words], cwd=folder, text=True,
                              capture_output=True, check=True, timeout=lib.WAIT).stdout.split())


def check_environment():
    """Checks that the code reads each variable that a page explains."""
    sources = "".join(path.read_text("utf-8") for folder in
                      ("ccoip-masterd", "pcclagentd", "libpccl-shim", "pccl-bench")
                      for path in (TOP / folder).rglob("*.c"))
    for path in sorted((TOP / "man").rglob("*.[178]*")):
        explained = re.findall(r"^\.It Ev (.*)", section(path.read_text("utf-8"), "ENVIRONMENT"), re.M)
        for name in re.findall(r"\bPCCL_\w+", " ".join(explained)):
            check(f'"{name}"' in sources, f"{path.name}: the code reads the variable {name}", name)


def check_completion(program, options, folder):
    names = {f"--{option['name']}" for option in options} | {f"--{name}" for name in BUILT_IN}
    offered = {word for word in complete(program, folder, "") if word.startswith("-")}
    check(offered == names, f"completions/{program} has exactly the options of the table",
          offered ^ names)
    paths = {"pcclctl": {"agent", "master"}}.get(program, set())
    for option in options:
        called = f"--{option['name']}"
        offered = complete(program, folder, called, "")
        if option["path"] or option["name"] in paths:
            check("a-file" in offered, f"{program} {called}: files are completed", offered)
        elif option["words"]:
            check(offered == set(option["words"]), f"{program} {called}: the words of the option are completed",
                  offered)
        elif option["arg"]:
            check(not offered, f"{program} {called}: nothing is completed", offered)
        else:
            check(names <= offered, f"{program} {called}: options are completed", offered)


def test():
    said = subprocess.run([lib.BUILD / "tests/docs/options"], capture_output=True, text=True,
                          check=True, timeout=lib.WAIT).stdout
    tables = {table["program"]: table for table in json.loads(said)}
    check(tables.keys() == PAGES.keys(), "each program has a table of options and a manual page",
          tables.keys() ^ PAGES.keys())
    check_environment()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a-file").touch()
        for program, table in tables.items():
            options = table["options"]
            conf = check_manual(program, options)
            check(bool(conf) == bool(table["section"]),
                  f"{program}: the manual has a page of the configuration file if the program reads one")
            if conf:
                check(f"Sq [{table['section']}]" in page(conf), f"{conf} names the section of the file")
                check_file(program, options, conf)
            check_completion(program, options, folder)


os.environ.pop("BASH_ENV", None)
lib.run(test, 60)
