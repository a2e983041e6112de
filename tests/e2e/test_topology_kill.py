#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers, agents and masters are killed with SIGKILL in each step of an optimization. Agents and
masters are restarted at once. No call hangs, each survivor sees at most one error, which a
repetition of its call mends, and all survivors see the same results.

usage: test_topology_kill.py [--count N] [--seed N]    or TOPOLOGY_KILLS, TOPOLOGY_SEED

N: the number of kills of each kind in each step."""

import argparse
import collections
import os
import random
import signal
import time

import lib
from lib import (SUCCESS, TOPOLOGY_OPTIMIZATION_FAILED, Failed, check, ids_of,
                 together)

BOUND = 30  # seconds, for any call
MS = 100  # the time of a measurement
OPTIONS = ("--benchmark-ms", str(MS), "--log-level", "debug")
HOSTS = 4
PER_LAB = 20  # kills
KINDS = ("trainer", "agent", "master")
# What the master logs when a step begins, and the range of the delay until the kill in seconds.
# Solving and rewiring take a few milliseconds on loopback. In these steps the master stands still
# until the kill.
STEPS = {
    "votes": ("IDLE -> VOTE_OPTIMIZE_TOPOLOGY", (0, 0.002)),
    "first": (": round 1 of ", (0, MS / 1000)),
    "later": (": round 2 of ", (0, MS / 1000)),
    "caps": ("all hosts at once", (0, MS / 1000)),
    "answers": ("all hosts at once", (MS / 1000, MS / 1000 + 0.03)),
    "solving": ("looking for the best", None),
    "rewiring": (": rewiring ", None),
    "end": ("the topology is optimized", (0, 0.002)),
}
# How the first lines of steps show in the log, in their order. The last one that was logged before
# the kill names the step that the kill has hit.
SEEN = ((": rewiring ", "rewiring"), ("the topology is optimized", "end"), ("looking for the best", "solving"),
        ("all hosts at once", "caps"), (": round 1 of ", "first"), ("measuring links: round", "later"),
        ("VOTE_OPTIMIZE_TOPOLOGY", "votes"))
OPERATIONS = ("type=f32 op=sum count=9001 place=out", "type=f32 op=sum count=700001 place=in",
              "type=f32 op=avg count=1000003 place=out")


def begun(line):
    return next((step for words, step in SEEN if words in line), None)


class Toll:
    def __init__(self):
        self.kills = collections.Counter()  # by kind
        self.hit = collections.Counter()  # by kind and the step that was hit
        self.failed = collections.Counter()  # by kind: kills after which optimizations failed
        self.lost = collections.Counter()  # by kind: kills after which operations were lost
        self.texts = collections.Counter()
        self.longest = 0


class Trial:
    """A run whose daemons and trainers are killed."""

    def __init__(self, lab, toll, rng):
        self.lab, self.toll, self.rng = lab, toll, rng
        self.peers = lab.start_peers(range(HOSTS), streams=2)
        self.victim, self.number, self.seed, self.offset = None, 100, 0, 0

    # ---- the life of the run

    def admit_victim(self):
        """Adds a trainer that will be killed: on its own host, or beside another one."""
        host = self.number % (HOSTS + 1)
        self.victim = self.lab.start_peer(self.number, host, ready=False)
        self.number += 1
        self.victim.read()
        self.victim.send("create streams=2", "connect")
        self.all(f"until world={HOSTS + 1}")
        for _ in range(2):
            if self.victim.read()["code"] != SUCCESS:
                raise Failed("the next trainer cannot join")

    def all(self, line):
        answers = together(self.peers, line, BOUND)
        if any(a["code"] != SUCCESS for a in answers):
            raise Failed(f"{line}: {answers}")
        return answers

    def kill(self, kind):
        if kind == "trainer":
            self.victim.kill()
        elif kind == "agent":
            lib.restart_agent(self.lab, self.rng.randrange(HOSTS))
        else:
            old = self.lab.master
            self.lab.drop(old)
            self.lab.start_master(port=old.port, options=OPTIONS)

    # ---- one kill

    def one(self, kind, step):
        words, delays = STEPS[step]
        lib.measure_again(self.lab.master)
        if kind == "trainer":
            self.admit_victim()
        master = self.lab.master
        before = len(master.log_lines())
        self.offset = master.log.stat().st_size
        for peer in (*self.peers, *([self.victim] if self.victim else [])):
            peer.send("optimize")
        self.await_step(master, words, delays)
        lines = len(master.log_lines())
        self.kill(kind)
        if kind != "master":
            master.process.send_signal(signal.SIGCONT)
        hit = next((x for x in map(begun, reversed(master.log_lines()[before:lines])) if x), "none")
        errors = self.survive(kind)
        if self.victim:
            self.lab.drop_peer(self.victim)
            self.victim = None
        self.again()
        self.lab.check_alive()
        self.toll.kills[kind] += 1
        self.toll.hit[kind, hit] += 1
        return f"{kind} at {step}, hit {hit}: {errors}"

    def await_step(self, master, words, delays):
        """Waits for the step, or for the end if this optimization does not have the step. Then waits
        for a while, or stops the master. Looks often, because some steps are short."""
        deadline, seen = time.monotonic() + lib.WAIT, b""
        with open(master.log, "rb") as log:
            log.seek(self.offset)
            while words.encode() not in seen and b"the topology is optimized" not in seen:
                time.sleep(0.0002)
                seen += log.read()
                if time.monotonic() > deadline:
                    raise Failed(f"the master does not log: {words}")
        if delays:
            time.sleep(self.rng.uniform(*delays))
        else:
            master.process.send_signal(signal.SIGSTOP)

    def survive(self, kind):
        """Reads the answers of the survivors, who repeat their calls. Returns the errors of each."""
        answers = self.read()
        codes = {a["code"] for a in answers}
        failed = codes == {TOPOLOGY_OPTIMIZATION_FAILED}
        if len(codes) != 1 or not (failed or codes == {SUCCESS}):
            raise Failed(f"{kind}: the survivors' calls end differently: {answers}")
        for a in answers:
            self.toll.texts[a["text"]] += failed
        if failed:
            self.toll.failed[kind] += 1
            for peer in self.peers:
                peer.send("optimize")
            again = self.read()
            if any(a["code"] != SUCCESS for a in again):
                raise Failed(f"{kind}: the repetition does not succeed: {answers}, {again}")
        losses = self.reduce()
        lost = max(losses) > 0
        self.toll.lost[kind] += lost
        if lost + failed > 1 or max(losses) > 1:
            raise Failed(f"{kind}: more than one error: {answers[0]}, {losses}")
        return "failed" if failed else "lost" if lost else "no error"

    def read(self):
        answers = [peer.read(BOUND) for peer in self.peers]
        self.toll.longest = max(self.toll.longest, *(a["end"] - a["begin"] for a in answers))
        return answers

    def reduce(self):
        """Runs an operation. Returns the losses of each survivor."""
        self.seed += 1
        line = OPERATIONS[self.seed % len(OPERATIONS)]
        for peer in self.peers:
            peer.send(f"reduce {line} tag=1 seed={self.seed} retry=5 ids={ids_of(self.peers)} "
                      f"verify={int(peer is self.peers[self.seed % HOSTS])}")
        answers = self.read()
        wrong = lib.judge(answers)
        if wrong or {a["world"] for a in answers} != {HOSTS}:
            raise Failed(f"an operation after a kill: {wrong}: {answers}")
        return [a["losses"] for a in answers]

    def again(self):
        """After the kill and its error everything works at once."""
        for peer in self.peers:
            peer.send("optimize")
        answers = self.read()
        if any(a["code"] != SUCCESS for a in answers):
            raise Failed(f"an optimization after a kill: {answers}")
        if any(self.reduce()):
            raise Failed("the operation after an optimization is lost")


def kills(toll, rng, plan, verbose):
    with lib.Lab(HOSTS + 1) as lab:
        lab.start(OPTIONS)
        trial = Trial(lab, toll, rng)
        for kind, step in plan:
            try:
                text = trial.one(kind, step)
            except Failed as error:
                raise Failed(f"{kind} killed at {step}: {error}") from error
            if verbose:
                print(f"# {text}", flush=True)


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=int(os.environ.get("TOPOLOGY_KILLS", "1")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TOPOLOGY_SEED", "1")))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    toll = Toll()
    plan = [(kind, step) for kind in KINDS for step in STEPS] * args.count
    rng.shuffle(plan)
    for k in range(0, len(plan), PER_LAB):
        kills(toll, rng, plan[k:k + PER_LAB], "TOPOLOGY_VERBOSE" in os.environ)
    for kind in KINDS:
        hits = {step: n for (k, step), n in sorted(toll.hit.items()) if k == kind}
        check(toll.kills[kind] == args.count * len(STEPS),
              f"{kind} killed {toll.kills[kind]} times, in these steps: {hits}; {toll.failed[kind]} "
              f"optimizations failed once, {toll.lost[kind]} operations were lost once", toll.kills)
    print(f"# longest call {toll.longest / 1e9:.1f} s")
    for text, n in toll.texts.most_common():
        if n:
            print(f"# {n} times: {text}")


lib.run(test, 3600)
