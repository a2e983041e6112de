#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds words that docs/glossary.md has retired, in code, comments, logs, tests and documents.

usage: retired_words.py FILE...    (./dev lint words gives all files of the project)

Many of these words are plain English in other senses. So PHRASES contains only the retired senses.
A space in a phrase also matches a line break in a comment, a document or a string.
"""
import os
import re
import sys

# Names of options, keys and environment variables that still work. The tables of options contain
# them.
OLD_NAMES = re.compile(r"(?:agent|master)[-_]grace[-_]ms|PCCL_AGENT_GRACE_MS|place[-_]timeout[-_]ms", re.I)

# Files, or parts of files, that may hold retired words.
EXEMPT = re.compile(r"^(LICENSE|bench/LOG\.md|tests/fuzz/corpus/.*|tests/docs/retired_words\.py|"
                    r".*\.(png|svg|bin))$")

# retired sense; what to use; files in which the word has another meaning
PHRASES = [
    (r"seats?", "host membership", r"^$"),
    (r"grace", "lease", r"^$"),
    (r"mixtures?", "torn state", r"^$"),
    (r"keepers?", "reconnector", r"^$"),
    (r"(?:re)?dial(?:s|led|ling)?", "connect", r"^$"),
    (r"retract(?:s|ed|ing)?", "roll back", r"^$"),
    (r"verdicts?", "result status, or eviction", r"^(dev|\.ci/|examples/)"),
    (r"crews?", "worker pool", r"^$"),
    (r"findings", "difference report", r"^$"),
    (r"absent (?:agents?|peers?|members?|hosts?)", "disconnected", r"^$"),
    (r"(?:agents?|peers?|members?|hosts?) (?:that )?(?:is|are|was|were|went|has been|have been) absent", "disconnected", r"^$"),
    (r"(?:sen[dt]s?) (?:it |them |who came )?away", "redirect", r"^$"),
    (r"(?:agents?|peers?|members?) (?:that |who )?(?:is|are|was|were) away", "disconnected", r"^tests/soak/"),
    (r"tally", "merged snapshots", r"\.py$"),
    (r"fates?", "outcome", r"^$"),
    (r"dooms?|doomed", "abort code, or evict", r"^$"),
    (r"blame[ds]?", "suspect", r"\.py$"),
    (r"excuse[ds]?", "the rule that applies", r"^tests/(sim|common)/"),
    (r"parked", "stalled", r"^$"),
    (r"jammed", "send failed", r"^$"),
    (r"put aside", "spilled", r"^$"),
    (r"(?:long|slow|small|narrow|wide) ways?", "path", r"^common/cc_zalloc"),
    (r"wired|unprepared", "ring epoch, aborted", r"^$"),
    (r"count of losses|losses (?:\{|%|\d)|`losses`", "generation", r"^tests/(e2e|lab)/"),
    (r"(?:the|a|A|The|new|same|that|this|older) world(?! size| of random|'s time| must be| of tests|, is refused)", "view", r"^(tests/(e2e|soak|docs|sim|bench)|man/|examples/|bench/|pccl-bench/)"),
    (r"worlds|versions? of the world", "views, view id", r"\.py$"),
    (r"out of turn|[Nn]o turn (?:ends|has ended)|`turns?`|turns? of (?:pending|topology) votes", "ballot", r"^$"),
    (r"(?:begin|begins|began|begun) ahead", "speculative start", r"^tests/e2e/test_addresses"),
    (r"ahead of the votes", "speculative start", r"^$"),
    (r"shifts? of streams|(?:three|two) shifts", "stream set, rotation", r"^$"),
    (r"place of (?:the|its|a) master", "master address", r"^$"),
    (r"places? in (?:the|a) ring", "position", r"^$"),
    (r"places? in (?:the|a) run", "membership", r"^$"),
    (r"los[te]s? (?:its|their) place in group", "membership", r"^$"),
]

# Parts of C identifiers. Identifiers that are whole sentences (names of tests) are checked as text.
PARTS = {
    "seat": "membership", "seats": "memberships", "grace": "lease", "mixture": "torn", "mixtures": "torn",
    "keeper": "reconnector", "dial": "connect", "dials": "connects", "dialled": "connected", "redial": "reconnect",
    "retract": "rollback", "retracted": "rolled_back", "verdict": "status", "tally": "merged", "doom": "evict",
    "doomed": "evicted", "parked": "stalled", "jammed": "send_failed", "crew": "pool", "findings": "diff_report",
    "wired": "ring_epoch", "unprepared": "aborted", "aside": "spilled", "renew": "reopen", "renews": "reopens",
}
NAMES = re.compile(
    r"^(?:\w*(?:topo|pending)_turn|op_small_\w+|shm_(?:is_)?small|WLK_(?:STREAM_)?SMALL|(?:wire|wm|group|wm_group)_world\w*|"
    r"(?:ccm|pccl)_offers?\w*|wm_ring_place|\w*way_(?:ms|ns)|CC_\w*WAY_\w*|LONG_WAY\w*|(?:ccm|agt|hh)_ahead\w*|"
    r"(?:ccm_told|pccl_comm_told|pccl_slot_told)\w*|ENG_\w*SHIFT\w*|ccm_behind\w*|ccm_absent\w*|ccm_away\w*|ccm_fate\w*|"
    r"ccm_conclude|agt_loss|WM_(?:BLOCKS|STALLED|WORLD)|wm_(?:blocks|stalled|world)|(?:agt|ccm)_grant\w*)$")
# C identifiers that contain one of these parts in another sense.
KEEP = re.compile(r"^(?:early|renew|doomed|FAULT_DOOMED|lost_renew|crew_fn|crew|verdict|redial)$")

SEP = r"(?:[ \t]+|[ \t]*\"\s*\"|[ \t]*\n[ \t]*(?:\*(?!/)|//|#)?[ \t]*)"
RULES = [(re.compile(r"(?<![\w-])(?:" + p.replace(" ", SEP) + r")(?![\w-])", re.I), use, re.compile(files))
         for p, use, files in PHRASES]
C_TOKENS = re.compile(r"(?P<text>//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"(?:\s*\"(?:\\.|[^\"\\\n])*\")*)|"
                      r"(?P<char>'(?:\\.|[^'\\\n])*')|(?P<name>[A-Za-z_]\w*)", re.S)


def text_hits(path, text, at):
    """Yields (offset, word, use) for the retired senses in a piece of text."""
    plain = OLD_NAMES.sub(lambda m: "." * len(m.group()), text)
    for rule, use, other in RULES:
        if not other.search(path):
            for m in rule.finditer(plain):
                yield at + m.start(), " ".join(m.group().split()), use


def name_hits(path, name, at):
    """Yields (offset, word, use) for the retired words in a C identifier."""
    if KEEP.match(name) or OLD_NAMES.search(name):
        return
    parts = name.lower().split("_")
    if len(parts) >= 5:  # a sentence
        for _, word, use in text_hits(path, " ".join(parts), 0):
            yield at, f"{name} ({word})", use
    elif NAMES.match(name):
        yield at, name, "see docs/glossary.md"
    else:
        for part in parts:
            if part in PARTS:
                yield at, name, PARTS[part]
                return


def hits(path, text):
    if path.endswith((".c", ".h", ".inc")):
        for m in C_TOKENS.finditer(text):
            if m.group("text"):
                yield from text_hits(path, m.group(), m.start())
            elif m.group("name"):
                yield from name_hits(path, m.group(), m.start())
        return
    if path == "docs/glossary.md":
        text = text.split("## Retired words")[0]
    elif path == "NEWS":  # old releases are not changed
        text = re.split(r"(?m)^\S.*\b\d+\.\d+.*$", text, maxsplit=2)[:2]
        text = "".join(text)
    elif path.startswith("docs/decisions/"):  # names of tests and files are not checked
        head, held, tail = text.partition("## Held by")
        text = head + held + re.sub(r"`[^`]*`", lambda m: re.sub(r"[^\n]", ".", m.group()), tail)
    yield from text_hits(path, text, 0)


def main():
    found = files = 0
    for path in sys.argv[1:]:
        if EXEMPT.match(path) or not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except UnicodeDecodeError:
            continue
        files += 1
        for at, word, use in sorted(hits(path, text)):
            print(f"{path}:{text.count(chr(10), 0, at) + 1}: '{word}' is retired, use: {use}")
            found += 1
    print(f"{files} files, {found} retired words", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
