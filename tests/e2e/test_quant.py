#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quantized all-reduces between real hosts: all peers get the same bits, as near to the exact
result as the mode allows. Hosts send only as many bytes as the mode promises. Failures leave all
buffers as before."""

import random

import lib
from lib import check, ids_of, judge

MINMAX, ZERO_POINT, BLOCKWISE = 1, 2, 64
BF16_SCALES, STOCHASTIC, MIXED = 1 << 12, 1 << 13, 1 << 14
U8, I8, I16, U16, F16, BF16, I4, E4M3, E5M2 = 0, 1, 2, 3, 8, 9, 64, 65, 66
NORMAL = 1
# name, algorithm, type, hint, largest relative error of a sum over four hosts, bits of an element
MODES = (
    ("minmax uint8", MINMAX, U8, 0, 0.02, 8),
    ("minmax int16", MINMAX, I16, 0, 0.0001, 16),
    ("minmax float16", MINMAX, F16, 0, 0.001, 16),
    ("zero-point-scale int8", ZERO_POINT, I8, 0, 0.02, 8),
    ("zero-point-scale uint16", ZERO_POINT, U16, 0, 0.0001, 16),
    ("zero-point-scale bfloat16", ZERO_POINT, BF16, 0, 0.01, 16),
    ("blockwise int8", BLOCKWISE, I8, 0, 0.015, 8.07),
    ("blockwise int8 of 32, stochastic", BLOCKWISE | 5 << 8 | STOCHASTIC, I8, 0, 0.03, 8.51),
    ("blockwise int4", BLOCKWISE, I4, 0, 0.25, 4.51),
    ("blockwise int4, normal, mixed", BLOCKWISE | MIXED, I4, NORMAL, 0.25, 6.3),
    ("blockwise int4, bf16 scales", BLOCKWISE | BF16_SCALES, I4, 0, 0.25, 4.51),
    ("blockwise e4m3", BLOCKWISE, E4M3, 0, 0.08, 8.07),
    ("blockwise e5m2 of 1024", BLOCKWISE | 10 << 8, E5M2, 0, 0.15, 8.02),
)
INT4 = MODES[8]
TYPES = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16}
HOSTS = 4
ALLOWED_HEADERS = 0.02


def words(mode):
    _, algorithm, qtype, hint, _, _ = mode
    return f"quant={algorithm} qtype={qtype} hint={hint}"


def is_pair(mode, kind):
    """Returns whether elements of this type can be quantized by this mode."""
    return mode[2] not in (F16, BF16) or kind in ("f32", "f64")


def errors_of(answers):
    return [float(a["error"]) for a in answers if "error" in a]


def reduce_all(peers, mode, kind, op, count, tag, buffers="place=out mem=own"):
    line = (f"reduce type={kind} op={op} count={count} {buffers} seed={tag} tag={tag} "
            f"ids={ids_of(peers)} {words(mode)}")
    for k, peer in enumerate(peers):
        peer.send(f"{line} verify={int(k == tag % len(peers))}")
    return [peer.read() for peer in peers]


def test_modes(peers, rng):
    """Each mode, with all types, operators, buffers, and sizes on both sides of the eager path."""
    tag = 0
    for mode in MODES:
        for kind in TYPES:
            if not is_pair(mode, kind):
                continue
            for op in ("sum", rng.choice(("avg", "max", "min"))):
                tag += 1
                count = rng.choice((1, 31, 1009, 65537, 999983))
                buffers = rng.choice(("place=in mem=own", "place=in mem=shared", "place=out mem=own",
                                      "place=out mem=shared", "place=out mem=send", "place=out mem=recv"))
                answers = reduce_all(peers, mode, kind, op, count, tag, buffers)
                wrong = judge(answers)
                what = f"{mode[0]}: {op} of {count} {kind}, {buffers}"
                check(not wrong, f"{what}: all peers get the result", wrong)
                if count < 1000:
                    continue  # the sum of a few elements may be near 0
                errors = errors_of(answers)
                # the rounding to a 16-bit type adds an error
                bound = mode[4] + (0.01 if kind in ("f16", "bf16") else 0)
                check(len(errors) == 1 and errors[0] <= bound, f"{what}: error at most {bound}", errors)


def test_bytes(peers, tag):
    """Of two hosts, each sends and receives one operand."""
    for mode in MODES:
        tag += 1
        count = 1 << 20
        answers = reduce_all(peers, mode, "f32", "sum", count, tag)
        wrong = judge(answers)
        check(not wrong, f"{mode[0]}: the peers of two hosts get the result", wrong)
        most = count * mode[5] / 8 * (1 + ALLOWED_HEADERS)
        least = count * mode[5] / 8 * 0.95
        sent = [a[way] for a in answers for way in ("tx", "rx")]
        check(all(least <= n <= most for n in sent),
              f"{mode[0]}: an element takes {mode[5]} bits on the network", f"{sent}, not {least:.0f} to {most:.0f}")


def test_one_host(peers):
    answers = reduce_all(peers, MODES[8], "f32", "sum", 100000, 1)
    wrong = judge(answers)
    check(not wrong, "one host: succeeds", wrong)
    errors = errors_of(answers)
    check(errors[0] < 1e-6, "one host: nothing is quantized", errors)


def test_disagreement(peers):
    """If peers ask for different modes, the error names the difference."""
    base = f"reduce type=f32 op=sum count=1000 tag=7 ids={ids_of(peers)}"
    for first, others, text in (("", "quant=64 qtype=64", "quantization algorithm is "),
                                ("quant=64 qtype=1", "quant=64 qtype=64", "quantized data type is "),
                                ("quant=64 qtype=64", "quant=64 qtype=64 hint=1", "distribution hint is "),
                                ("quant=64 qtype=64 feedback=1", "quant=64 qtype=64", "32, error feedback for")):
        for k, peer in enumerate(peers):
            peer.send(f"{base} {others if k else first}")
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == lib.INVALID_ARGUMENT and text in a["text"] for a in answers),
              f"{first or 'none'} and {others}: the error names the difference", [a["text"] for a in answers])
    for k, peer in enumerate(peers):
        peer.send(f"{base} quant=1 qtype=0 hint={int(k > 0)}")
    wrong = judge([peer.read() for peer in peers])
    check(not wrong, "a hint without effect may differ", wrong)


def test_invalid(peers):
    """A call with wrong arguments waits for the other peers, and ends with this code for all."""
    for given, text in (("type=i32 quant=1 qtype=0", "int32 elements cannot be quantized to uint8 by minmax"),
                        ("type=f32 quant=1 qtype=5", "float elements cannot be quantized to int32 by minmax"),
                        ("type=f16 quant=1 qtype=9", "float16 elements cannot be quantized to bfloat16"),
                        ("type=f32 quant=64 qtype=0", "float elements cannot be quantized to uint8 by blockwise"),
                        ("type=f32 quant=3 qtype=0", "there is no quantization algorithm 3"),
                        ("type=f32 quant=65 qtype=1", "there is no quantization algorithm 65"),
                        (f"type=f32 quant={64 | 4 << 8} qtype=1", "must be 2^5 to 2^10"),
                        (f"type=f32 quant={64 | MIXED} qtype=1", "only for int4"),
                        (f"type=f32 quant={64 | STOCHASTIC} qtype=65", "only for integers"),
                        ("type=f32 quant=1 qtype=0 hint=3", "no hint 3"),
                        ("type=f32 quant=1 qtype=0 feedback=1 op=max", "tag 9 has error feedback")):
        op = "" if "op=" in given else "op=sum"
        answers = lib.together(peers, f"reduce {op} count=10 tag=9 {given}")
        check(all(a["code"] == lib.INVALID_ARGUMENT and text in a["text"] for a in answers),
              f"{given}: refused", [a["text"] for a in answers])


def feedback_line(peers, count, tag, more):
    return f"type=f32 op=sum count={count} seed=5 tag={tag} verify=1 ids={ids_of(peers)} {words(INT4)} {more}"


def test_feedback(route):
    """With error feedback, the mean of the results of equal operations comes near to the exact sum.
    Without error feedback, each operation has the same error. Small operations are eager."""
    with lib.Lab(3) as lab:
        lab.start(master_options=("--algorithm", route))
        peers = lab.start_peers([0, 0, 1, 2])
        for tag, (count, op) in enumerate(((20000, "sum"), (20000, "avg"), (300007, "sum"), (300007, "avg"))):
            errors = []
            for feedback in (0, 1):
                line = feedback_line(peers, count, 2 * tag + feedback, f"feedback={feedback}")
                answers = lib.together(peers, f"mean n=20 {line.replace('op=sum', 'op=' + op)}")
                wrong = judge(answers)
                check(not wrong, f"{route}, {op} of {count}: 20 operations succeed, feedback {feedback}", wrong)
                errors += set(errors_of(answers))
            check(len(errors) == 2 and errors[1] < errors[0] / 8,
                  f"{route}, {op} of {count}: feedback makes the mean eight times as exact", errors)


def hash_of(peers, line, what):
    answers = lib.together(peers, f"reduce {line}")
    wrong = judge(answers)
    check(not wrong, what, wrong)
    return answers[0]["hash"]


def test_membership():
    """A loss drops the residuals: the next operation has the same result as without feedback. The
    route is the ring, so all results have the same bits."""
    with lib.Lab(3) as lab:
        lab.start(master_options=("--algorithm", "ring"))
        peers = lab.start_peers([0, 0, 1, 1, 2])  # the second loss leaves all hosts in the ring
        for count in (20000, 300007):
            def plain(tag):
                return hash_of(peers, feedback_line(peers, count, tag, ""),
                               f"{count}: an operation without feedback succeeds")

            def fed(more=""):
                return hash_of(peers, feedback_line(peers, count, 1, f"feedback=1 {more}"),
                               f"{count}: an operation with feedback succeeds")

            exact = plain(2)
            check(fed() == exact, f"{count}: the first operation has no residual")
            check(fed() != exact and plain(2) == exact, f"{count}: the second operation has a residual")
            peers.pop().kill()
            check(fed("retry=3") == plain(2), f"{count}: the first operation after a loss has no residual")
            check(fed() != plain(2), f"{count}: the second operation after a loss has a residual")
            check(plain(1) == plain(2) and fed() == plain(2),
                  f"{count}: an operation without feedback drops the residual of its tag")
        lab.check_alive()


def test_feedback_memory():
    """A residual that does not fit fails the call of all peers, with the limit and the host."""
    with lib.Lab(2) as lab:
        lab.start(agent_options=("--mem-per-user", "10M"))
        peers = lab.start_peers([0, 1])
        line = feedback_line(peers, 1 << 20, 1, "feedback=1")
        wrong = judge(lib.together(peers, f"reduce {line}"))
        check(not wrong, "one residual fits", wrong)
        answers = lib.together(peers, f"reduce {line}")
        check(all(a["code"] == lib.OUT_OF_MEMORY and a["check"] == "ok" and "host-" in a["text"]
                  and "error feedback" in a["text"] and "mem_per_user" in a["text"] for a in answers),
              f"two residuals do not fit: {answers[0]['text']}", answers)
        wrong = judge(lib.together(peers, f"reduce {feedback_line(peers, 1 << 20, 1, '')}"))
        check(not wrong, "the same call succeeds without feedback", wrong)
        wrong = judge(lib.together(peers, f"reduce {line}"))
        check(not wrong, "a call without feedback frees the residual, so a call with feedback succeeds again", wrong)
        lab.check_alive()


def test_loss(lab, peers):
    """A peer is killed during an operation. The buffers of the others get their old contents (judge
    checks this), and the same call succeeds without the killed peer."""
    victim = peers.pop()
    line = f"type=f32 op=sum count={1 << 24} seed=3 tag=3 {words(MODES[6])} place=in mem=shared"
    for peer in peers:
        peer.send(f"reduce {line} ids={ids_of(peers)} retry=3")
    victim.send(f"reduce {line} ids={ids_of(peers)}")
    victim.kill()
    answers = [peer.read() for peer in peers]
    wrong = judge(answers)
    check(not wrong, "a peer dies: the others succeed after their buffers were restored", wrong)
    lab.check_alive()


def test():
    rng = random.Random(1)
    with lib.Lab(HOSTS) as lab:
        lab.start(master_options=("--algorithm", "auto"))
        test_modes(lab.start_peers([0, 0, 1, 2, 3]), rng)
    with lib.Lab(HOSTS) as lab:
        lab.start()
        peers = lab.start_peers([0, 0, 1, 2, 3])
        test_modes(peers, rng)
        test_disagreement(peers)
        test_invalid(peers)
        test_loss(lab, peers)
    with lib.Lab(2) as lab:
        lab.start()
        test_bytes(lab.start_peers([0, 1]), 0)
    with lib.Lab(1) as lab:
        lab.start()
        test_one_host(lab.start_peers([0, 0]))
    for route in ("ring", "direct", "tree"):
        test_feedback(route)
    test_membership()
    test_feedback_memory()


lib.run(test, 500)
