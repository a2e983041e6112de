#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory of CUDA devices, with a double of the driver (tests/cuda/double.h): all-reduces and shared
state of peers with and without a device, killed trainers and agents, memory that is freed during a call,
and errors of the driver.

CUDA_ERRORS is the number of errors of the driver in all-reduces, and also in synchronizations, 40 if it is
not set. E2E_MEMORY=cuda lets other
tests use memory of devices, too."""

import itertools
import os
import random
import signal
import sys

os.environ.setdefault("E2E_MEMORY", "cuda")
import lib  # pylint: disable=wrong-import-position
from lib import (  # pylint: disable=wrong-import-position
    INTERNAL_ERROR, RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge, together)

ERRORS = int(os.environ.get("CUDA_ERRORS", "40"))
CODES = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 999: "CUDA_ERROR_UNKNOWN"}
LARGE = "type=f32 op=sum count=2000003"
KINDS = (f"{LARGE} place=out", f"{LARGE} place=in", "type=bf16 op=avg count=999 place=in")


def has_cuda():
    return (lib.BUILD / "tests/cuda/.libs/libcuda.so.1").exists()


def reduce(peers, line):
    return together(peers, f"reduce {line} ids={ids_of(peers)} verify=1")


def no_agent_has_cuda(lab):
    for agent in lab.agents.values():
        with open(f"/proc/{agent.process.pid}/maps", encoding="utf-8") as maps:
            check("libcuda" not in maps.read(), f"{agent.name} has loaded nothing of CUDA")


def state(lab):
    """One of three peers differs in one tensor. Only the leaf that differs moves."""
    with_peers = lab.start_peers((0, 1, 1))
    for peer in with_peers:
        peer.expect("state")
        peer.expect("tensors n=5 name=t count=100003 seed=3")
        peer.expect("cuda")
    answers = together(with_peers, "sync")
    check(all(a["code"] == SUCCESS and a["check"] == "ok" and a["rx"] == 0 for a in answers)
          and len({a["hash"] for a in answers}) == 1,
          "equal tensors on devices are synchronized without a transfer", answers)
    with_peers[2].expect("spoil name=t3 at=70000 n=4")
    before = with_peers[2].expect("cuda")
    answers = together(with_peers, "sync revision=1")
    after = with_peers[2].expect("cuda")
    check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in answers)
          and len({a["hash"] for a in answers}) == 1 and answers[2]["rx"] == 65536,
          "only the leaf that differs is sent", answers)
    check(after["launches"] > before["launches"], "the device has hashed the tensors", after)
    lab.drop_all(with_peers)


def fault_of(peers, rng):
    """A call of the driver fails in one peer. Returns the fault, or None."""
    line, code = rng.choice(KINDS), rng.choice(list(CODES))
    victim = peers[rng.randrange(3)]
    victim.expect("cuda")
    answers = reduce(peers, line)
    calls = victim.expect("cuda")["calls"]
    at = rng.randint(1, calls)
    victim.expect(f"cuda at={at} error={code}")
    answers = reduce(peers, line)
    mine = answers[peers.index(victim)]
    others = [a for a in answers if a is not mine]
    where = f"call {at} of {calls}, {CODES[code]}, {line}"
    if all(a["code"] == SUCCESS for a in answers):  # a call whose failure does not matter
        wrong = judge(answers)
        return f"{where}: {wrong}" if wrong else None
    fine = ("could not be restored" in mine["text"] or mine["check"] == "ok")
    if mine["code"] != INTERNAL_ERROR or CODES[code] not in mine["text"] or not fine:
        return f"{where}: {mine}"
    if any(a["check"] != "ok" or a["code"] not in (INTERNAL_ERROR, RANK_CONNECTION_LOST, SUCCESS) for a in others):
        return f"{where}: {others}"
    if len({a["code"] for a in others}) != 1:
        return f"{where}: the others have different results: {others}"
    return None


def one_error(lab, rng):
    peers = lab.start_peers((0, 1, 1))
    fault = fault_of(peers, rng)
    if fault:
        print(f"# {fault}")
    lab.drop_all(peers)
    return fault


# ---- errors during synchronizations

TENSOR = 4 * 300007
PLACES = ((0, 1, 1), (0, 0, 1))  # the last peer receives; hosts of the sources


def strategies(peers):
    """Two sources win the election. A single source has to be named."""
    return [""] * 3 if len(peers) == 3 else ["strategy=send", "strategy=receive"]


def sync(peers, revision):
    for peer, words in zip(peers, strategies(peers)):
        peer.send(f"sync revision={revision} {words}")
    return [peer.read() for peer in peers]


def state_peers(lab, n, places):
    """Starts peers with tensors of which the last peer has other contents."""
    peers = lab.start_peers(places[3 - n:], group=next(groups))
    for peer in peers:
        peer.expect("state")
        peer.expect(f"tensors n=3 name=t count={TENSOR // 4} seed=3 like={int(peer is peers[-1])}")
    return peers


def spoil_last(peers):
    peers[-1].expect(f"spoil name=t1 at=1000 n={TENSOR // 2}")


def wrong_contents(answers, before, victim):
    """Checks an operation that failed for a peer. Each peer must have its old contents, or those of the
    sources; only a receiver that has been told so may have anything else."""
    for k, (a, old) in enumerate(zip(answers, before)):
        receiver = k == len(answers) - 1
        if a["check"] != "ok":
            return f"{k}: {a['check']}"
        if k != victim and a["code"] not in (INTERNAL_ERROR, RANK_CONNECTION_LOST, SUCCESS):
            return f"{k}: code {a['code']}"
        if a["code"] == SUCCESS and a["hash"] != before[0]:
            return f"{k}: not the contents of the sources"
        if a["code"] != SUCCESS and a["hash"] != old and not (receiver and "written in part" in a["text"]):
            return f"{k}: the contents have changed"
    return None


def state_fault(lab, rng):
    """A call of the driver fails in one peer during a synchronization. Returns the fault, or None."""
    n, places, error = rng.choice((2, 3)), rng.choice(PLACES), rng.choice(list(CODES))
    victim, warm = rng.randrange(n), rng.randrange(2)
    os.environ["DOUBLE_NO_KERNELS"] = str(rng.randrange(2))
    where = f"{n} peers on {places[3 - n:]}, peer {victim}, {CODES[error]}, DOUBLE_NO_KERNELS={os.environ['DOUBLE_NO_KERNELS']}"
    # How many calls there are depends on the peer, so each kind of synchronization is counted first.
    peers = state_peers(lab, n, places)
    peers[victim].expect("cuda")
    answers = sync(peers, 0)
    if warm:
        spoil_last(peers)
        peers[victim].expect("cuda")
        answers = sync(peers, 1)
    if any(a["code"] != SUCCESS for a in answers):
        return f"{where}: without an error: {answers}"
    calls = peers[victim].expect("cuda")["calls"]
    if warm:
        spoil_last(peers)
    else:
        lab.drop_all(peers)
        peers = state_peers(lab, n, places)
    before = [a["hash"] for a in together(peers, "digest")]
    at = rng.randint(1, calls)
    where = f"call {at} of {calls}, {'second' if warm else 'first'} synchronization, {where}"
    peers[victim].expect(f"cuda at={at} error={error}")
    answers = sync(peers, 2 if warm else 0)
    mine = answers[victim]
    wrong = wrong_contents(answers, before, victim)
    if mine["code"] == SUCCESS and any(a["code"] != SUCCESS for a in answers):
        wrong = wrong or "only others have failed"
    if mine["code"] != SUCCESS and (mine["code"] != INTERNAL_ERROR or CODES[error] not in mine["text"]):
        wrong = wrong or "another error"
    lab.drop_all(peers)
    state_ends[tuple(a["code"] for a in answers)] = state_ends.get(tuple(a["code"] for a in answers), 0) + 1
    return f"{where}: {wrong}: {answers}" if wrong else None


def state_errors(lab, rng):
    wrong = []
    for _ in range(ERRORS):
        fault = state_fault(lab, rng)
        if fault:
            print(f"# {fault}")
            wrong.append(fault)
    os.environ.pop("DOUBLE_NO_KERNELS", None)
    check(not wrong, f"{ERRORS} errors of the driver end synchronizations well", wrong[:3])
    print(f"# results of these synchronizations: {state_ends}")


groups = itertools.count(1)  # a group that all have left keeps its revision
state_ends = {}  # codes of all peers -> how often


# ---- memory that is freed during a call


def places_of(uses):
    """The first, a middle and the last one of these uses of a buffer."""
    return sorted({1, (uses + 1) // 2, uses})


def freed_in_reduce(lab, place, which):
    """Peer 2 frees a buffer during an all-reduce. Returns the faults."""
    line, faults = f"{LARGE} place={place}", []
    peers = lab.start_peers((0, 1, 1))

    def call(words):
        for peer in peers:
            peer.send(f"reduce {line} ids={ids_of(peers)} verify=1 {words if peer is peers[2] else ''}")
        return [peer.read() for peer in peers]

    peers[2].expect("cuda")
    call(f"of={which}")
    for at in places_of(peers[2].expect("cuda")["uses"]):
        answers = call(f"of={which} free={at}")
        mine, others = answers[2], answers[:2]
        if peers[2].expect("cuda")["uses"] < at:  # results are copied in as many parts as are there
            faults += [w for w in (judge(answers),) if w]
        elif mine["code"] != INTERNAL_ERROR or "was freed during the call" not in mine["text"] or mine["check"] != "ok":
            faults.append(f"use {at}, {line}, {which}: {mine}")
        if any(a["check"] != "ok" for a in others) or len({a["code"] for a in others}) != 1 or \
                others[0]["code"] not in (INTERNAL_ERROR, RANK_CONNECTION_LOST, SUCCESS):
            faults.append(f"use {at}, {line}, {which}: {others}")
        lab.drop_all(peers)
        peers[:] = lab.start_peers((0, 1, 1))
    faults += [w for w in (judge(reduce(peers, line)),) if w]
    lab.drop_all(peers)
    return faults


def freed_in_sync(lab, victim, kernels):
    """A peer frees a tensor during a synchronization, in which peer 0 sends and peer 1 receives. Returns the
    faults."""
    faults = []
    peers = state_peers(lab, 2, PLACES[1])

    def call(words):
        for peer, strategy in zip(peers, strategies(peers)):
            peer.send(f"sync revision=0 {strategy} {words if peer is peers[victim] else ''}")
        return [peer.read() for peer in peers]

    call("of=t1")
    # A kernel that reads memory that was freed ends the context, and the peer could not check its tensors.
    uses = [at for at in places_of(peers[victim].expect("cuda")["uses"]) if at > 1 or not kernels]
    for at in uses:
        lab.drop_all(peers)
        peers[:] = state_peers(lab, 2, PLACES[1])
        before = [a["hash"] for a in together(peers, "digest")]
        answers = call(f"of=t1 free={at}")
        mine = answers[victim]
        wrong = wrong_contents(answers, before, victim)
        if peers[victim].expect("cuda")["uses"] < at:  # the tensor is read in as many parts as are wanted at once
            wrong = wrong or next((a["text"] for a in answers if a["code"] != SUCCESS), None)
        elif mine["code"] != INTERNAL_ERROR or "was freed during the call" not in mine["text"]:
            wrong = wrong or "another error"
        elif answers[1 - victim]["code"] == SUCCESS and victim == 0:
            wrong = wrong or "a receiver has got a tensor that was freed"
        if wrong:
            faults.append(f"use {at} of {uses}, peer {victim}, kernels {kernels}: {wrong}: {answers}")
    lab.drop_all(peers)
    return faults


def freed(lab):
    faults = []
    for place, which in (("out", "send"), ("out", "recv"), ("in", "send")):
        faults += freed_in_reduce(lab, place, which)
    check(not faults, "a buffer that is freed during an all-reduce fails it, and the others go on", faults[:3])
    faults = []
    for kernels in (True, False):
        os.environ["DOUBLE_NO_KERNELS"] = "0" if kernels else "1"
        faults += freed_in_sync(lab, 0, kernels) + freed_in_sync(lab, 1, kernels)
    os.environ.pop("DOUBLE_NO_KERNELS", None)
    check(not faults, "a tensor that is freed during a synchronization fails it, in sender and receiver", faults[:3])


def killed(lab, number, kill, env=None):
    """Kills a trainer, or an agent, while operands and results are copied. `env` is for the last trainer."""
    peers = [lab.start_peer(k, host, env=env if k == 2 else None) for k, host in enumerate((0, 1, 1))]
    lib.form_run(peers)
    for peer in peers:
        peer.send(f"storm n=256 type=f32 op=sum count=300007 place={('in', 'out')[number % 2]}")
    for peer in peers:
        peer.read()  # "prepared"
    kill(peers)
    return peers


def trainer_killed(lab, rng):
    stop = lab.folder / "stop"

    def kill_in_a_copy(peers):
        stop.touch()
        lib.until(lambda: not stop.exists(), "no copy was made")  # and then it has stopped in its middle
        os.kill(peers[2].pid, signal.SIGKILL)

    peers = killed(lab, rng.randrange(2), kill_in_a_copy, {"DOUBLE_STOP": str(stop)})
    answers = [p.read() for p in peers[:2]]
    check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in answers)
          and len({a["hash"] for a in answers}) == 1,
          "the others go on after a trainer was killed in the middle of a copy", answers)
    lab.drop_all(peers)


def agent_killed(lab, rng):
    peers = killed(lab, rng.randrange(2), lambda peers: lib.restart_agent(lab, 1))
    answers = [p.read() for p in peers]
    check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in answers)
          and len({a["hash"] for a in answers}) == 1,
          "all go on after an agent was killed and started again", answers)
    lab.drop_all(peers)


class Devices(lib.Lab):
    def drop_all(self, peers):
        for peer in peers:
            self.drop_peer(peer)


def test():
    if not has_cuda():
        raise lib.Skipped("the build has no CUDA")
    rng = random.Random(int(os.environ.get("E2E_SEED", "1")))
    with Devices(2) as lab:
        lab.start()
        for memory in ("cuda", "mixed", "halves"):
            os.environ["E2E_MEMORY"] = memory
            peers = lab.start_peers((0, 1, 1))
            wrong = [w for w in (judge(reduce(peers, line)) for line in KINDS) if w]
            check(not wrong, f"peers with memory \"{memory}\" reduce", wrong)
            lab.drop_all(peers)
        os.environ["E2E_MEMORY"] = "cuda"
        state(lab)
        trainer_killed(lab, rng)
        agent_killed(lab, rng)
        freed(lab)
        no_agent_has_cuda(lab)
        wrong = [w for w in (one_error(lab, rng) for _ in range(ERRORS)) if w]
        check(not wrong, f"{ERRORS} errors of the driver end operations well", wrong[:3])
        state_errors(lab, rng)
        lab.check_alive()


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    lib.run(test, 300 + 10 * ERRORS)
