#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers, agents and masters are killed with SIGKILL in each step of an optimization. Agents and
masters are restarted at once. No call hangs, each survivor sees at most one error, which a
repetition of its call mends, and all survivors see the same results.

A step that ends by itself too soon is kept open: the process that must take the next step is stopped
until the victim is dead. A kill counts only if the log of the master shows that the step had not ended
when the victim was dead. Other kills are repeated.

usage: test_topology_kill.py [--count N] [--seed N]    or TOPOLOGY_KILLS, TOPOLOGY_SEED

N: the number of kills of each kind in each step."""

import argparse
import collections
import mmap
import os
import pathlib
import random
import signal
import struct
import time
import typing

import lib
from lib import (SUCCESS, TOPOLOGY_OPTIMIZATION_FAILED, Failed, check, ids_of,
                 together)

BOUND = 30  # seconds, for any call
MS = 100  # the time of a measurement
OPTIONS = ("--benchmark-ms", str(MS), "--log-level", "debug")
HOSTS = 4
PER_LAB = 20  # kills
# The most kills of a kind that are aimed at one step: this many, and this many for each kill that must
# be inside. Some optimizations find no better rings, so they have no round and no commit.
ATTEMPTS = (20, 4)
KINDS = ("trainer", "agent", "master")
HOLD = lib.BUILD / "tests/inject/.libs/hold.so"

# What the master logs when a phase begins.
VOTING = "IDLE -> VOTE_OPTIMIZE_TOPOLOGY"
FIRST, LATER, CAPS = ": round 1 of ", ": round 2 of ", ", all hosts at once"
SOLVING, REWIRING, COMMITTED = "looking for the best", ": rewiring ", "is committed"
DONE = "the topology is optimized"
PHASES = ((VOTING, "voting"), (FIRST, "first"), (CAPS, "caps"), ("measuring links: round", "later"),
          (SOLVING, "solving"), (REWIRING, "rewiring"), (COMMITTED, "committed"), (DONE, "done"))
# The loss of a host or of a peer leads to rounds, too, which are no part of the optimization.
AFTER = {"rewiring": ("solving", "rewiring"), "committed": ("rewiring",)}


class Step(typing.NamedTuple):
    """When a kill comes. The phase has begun; `delay` is the range of the time until the kill, in
    seconds."""

    phase: str  # the last one that the master has logged when the victim is dead
    delay: tuple
    late: bool = False  # one of the survivors does not vote before the kill
    words: str = ""  # wait until the master has logged these words
    held_at: str = ""  # instead: the master stops itself when it logs these words
    # One agent is stopped then. A master that has stopped itself goes on, and logs these words.
    then: str = ""


# Each kill comes before the phase can end. In the measuring phase, the delays are shorter than the
# rounds.
STEPS = {
    "votes": Step("voting", (0, 0.01), late=True, words=VOTING),
    "first": Step("first", (0, 0.8 * MS / 1000), words=FIRST),
    "later": Step("later", (0, 0.8 * MS / 1000), words=LATER),
    "caps": Step("caps", (0, 0.3 * MS / 1000), words=CAPS),
    # One agent has not answered.
    "answers": Step("caps", (MS / 1000, 1.5 * MS / 1000), held_at=CAPS, then=CAPS),
    "solving": Step("solving", (0, 0), held_at=SOLVING),
    # One agent does not open the links of the new rings.
    "rewiring": Step("rewiring", (0, 0.02), held_at=SOLVING, then=REWIRING),
    # The master has committed the new rings and has told nobody.
    "commit": Step("committed", (0, 0), held_at=COMMITTED),
    # The master has sent the commit and the answer. One agent reads neither.
    "end": Step("done", (0, 0.005), held_at=COMMITTED, then=DONE),
}
OPERATIONS = ("type=f32 op=sum count=9001 place=out", "type=f32 op=sum count=700001 place=in",
              "type=f32 op=avg count=1000003 place=out")


def phases_in(text):
    """Returns the phases of an optimization, in their order, from the log of the master."""
    phases = ["none"]
    for line in text.splitlines():
        phase = next((phase for words, phase in PHASES if words in line), None)
        if phase and phases[-1] in AFTER.get(phase, phases):
            phases.append(phase)
    return phases


class Toll:
    def __init__(self):
        self.aimed = collections.Counter()  # by kind and step
        self.hit = collections.Counter()  # by kind and step: kills inside the step
        self.outside = collections.Counter()  # by step and the phase that was hit instead
        self.failed = collections.Counter()  # by kind: kills after which optimizations failed
        self.lost = collections.Counter()  # by kind: kills after which operations were lost
        self.texts = collections.Counter()
        self.longest = 0


class HoldLab(lib.Lab):
    """A lab whose masters stop themselves when they log certain words."""

    def __init__(self, n_hosts):
        super().__init__(n_hosts)
        if not HOLD.exists():
            raise Failed(f"{HOLD} is missing: build tests/inject/hold.la")
        path = self.folder / "hold"
        path.write_bytes(bytes(mmap.PAGESIZE))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.held = {"LD_PRELOAD": str(HOLD), "HOLD_CONTROL": str(path),
                     "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def spawn(self, name, host, args, env=None, **streams):
        if name == "master":
            env = {**(env or {}), **self.held}
        return super().spawn(name, host, args, env=env, **streams)

    def arm(self, *words):
        """The master stops itself once, when it logs a line with one of these words."""
        text = "\n".join(words).encode() + b"\0"
        self.map[4:4 + len(text)] = text
        self.map[0:4] = struct.pack("I", 1)


def is_stopped(daemon):
    text = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text("ascii")
    return text.rpartition(")")[2].split()[0] == "T"


class Trial:
    """A run whose daemons and trainers are killed."""

    def __init__(self, lab, toll, rng):
        self.lab, self.toll, self.rng = lab, toll, rng
        self.peers = lab.start_peers(range(HOSTS), streams=2)
        self.victim, self.number, self.seed = None, 100, 0
        self.master, self.offset = None, 0  # of this optimization
        self.stopped = []  # daemons

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

    # ---- one kill

    def one(self, kind, step):
        """Kills in this step, or soon after it. Returns whether it was in the step, and a sentence."""
        plan = STEPS[step]
        lib.measure_again(self.lab.master)
        if kind == "trainer":
            self.admit_victim()
        self.master = self.lab.master
        self.offset = self.master.log.stat().st_size
        first, second = self.rng.sample(range(HOSTS), 2)  # an agent that is killed, and one that is stopped
        late = self.peers[self.rng.randrange(HOSTS)] if plan.late else None
        if plan.held_at:
            self.lab.arm(plan.held_at, DONE)
        for peer in (*self.peers, *([self.victim] if self.victim else [])):
            if peer is not late:
                peer.send("optimize")
        self.reach(plan, self.lab.agents[second])
        killed = time.monotonic_ns()
        restart = self.kill(kind, first)
        phases = phases_in(self.log())
        hit = self.is_inside(plan, phases, self.lab.agents[second])
        self.go_on()
        restart()
        if late:
            late.send("optimize")
        errors = self.survive(kind, killed if hit else 0, [self.peers[second]] if step == "end" else self.peers)
        if self.victim:
            self.lab.drop_peer(self.victim)
            self.victim = None
        self.again()
        self.lab.check_alive()
        self.toll.aimed[kind, step] += 1
        self.toll.hit[kind, step] += hit
        self.toll.outside[step, phases[-1]] += not hit
        return hit, f"{kind} at {step}, {'inside' if hit else 'outside'}, phase {phases[-1]}: {errors}"

    def log(self):
        """Returns what the master has logged about this optimization."""
        with open(self.master.log, "rb") as log:
            log.seek(self.offset)
            return log.read().decode("utf-8", "replace")

    def await_words(self, words):
        """Waits until the master logs the words, or the end of an optimization that does not have
        this step."""
        def logged():
            text = self.log()
            return words in text or DONE in text

        lib.until(logged, f"the master does not log: {words}")

    def stop(self, daemon):
        daemon.process.send_signal(signal.SIGSTOP)
        self.stopped.append(daemon)
        lib.until(lambda: is_stopped(daemon), f"{daemon.name} does not stop")

    def go_on(self):
        """Lets all stopped daemons that are still there go on, after a while in which others notice
        the death."""
        if self.stopped:
            time.sleep(self.rng.uniform(0, 0.02))
        for daemon in self.stopped:
            daemon.process.send_signal(signal.SIGCONT)
        self.stopped = []

    def reach(self, plan, agent):
        """Waits for the step, and keeps it open."""
        if plan.held_at:
            lib.until(lambda: is_stopped(self.master), f"the master does not stop at: {plan.held_at}")
            self.stopped.append(self.master)
        else:
            self.await_words(plan.words)
        if plan.then:
            self.stop(agent)
            if plan.held_at:
                self.stopped.remove(self.master)
                self.master.process.send_signal(signal.SIGCONT)
            self.await_words(plan.then)
        time.sleep(self.rng.uniform(*plan.delay))

    def is_inside(self, plan, phases, agent):
        """Was the victim dead before the step ended? phases: what the master has logged when the victim
        was dead. The daemons that keep the step open are still stopped."""
        stopped = [daemon for daemon in self.stopped if daemon.alive()]
        if not all(map(is_stopped, stopped)):
            raise Failed("a daemon that was stopped goes on by itself")
        if plan.then and agent not in stopped:
            raise Failed("the agent that keeps the step open is dead")
        # If there is no better ring, the optimization ends without a commit.
        return phases[-1] == plan.phase and (plan.held_at != COMMITTED or "committed" in phases)

    def kill(self, kind, host):
        """Kills a victim. Returns a function that starts the next daemon at its place."""
        if kind == "trainer":
            self.victim.kill()
            self.victim.process.wait()
            return lambda: None
        old = self.lab.agents[host] if kind == "agent" else self.master
        self.lab.drop(old)
        if kind == "agent":
            return lambda: self.lab.start_agent(host, path=old.socket, admin=old.admin)
        return lambda: self.lab.start_master(port=old.port, options=OPTIONS)

    def survive(self, kind, killed, waiting):
        """Reads the answers of the survivors, who repeat their calls. Returns the errors of each.
        The calls of the peers that were waiting at the time of the kill cannot have ended before."""
        answers = self.read()
        if any(a["end"] < killed for a, peer in zip(answers, self.peers) if peer in waiting):
            raise Failed(f"{kind}: a call has ended before the kill: {answers}, {killed}")
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
    """Returns the kinds and steps of the kills that came too late."""
    missed = []
    with HoldLab(HOSTS + 1) as lab:
        lab.start(OPTIONS)
        trial = Trial(lab, toll, rng)
        for kind, step in plan:
            try:
                hit, text = trial.one(kind, step)
            except Failed as error:
                raise Failed(f"{kind} killed at {step}: {error}") from error
            finally:
                trial.go_on()
            if not hit:
                missed.append((kind, step))
            if verbose:
                print(f"# {text}", flush=True)
    return missed


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=int(os.environ.get("TOPOLOGY_KILLS", "1")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TOPOLOGY_SEED", "1")))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    toll = Toll()
    plan = [(kind, step) for kind in KINDS for step in STEPS] * args.count
    rng.shuffle(plan)
    while plan:
        missed = kills(toll, rng, plan[:PER_LAB], "TOPOLOGY_VERBOSE" in os.environ)
        plan = plan[PER_LAB:] + [x for x in missed if toll.aimed[x] < ATTEMPTS[0] + ATTEMPTS[1] * args.count]
    for kind in KINDS:
        aimed, hits = ({step: counter[kind, step] for step in STEPS} for counter in (toll.aimed, toll.hit))
        check(all(n == args.count for n in hits.values()),
              f"{kind}: {sum(aimed.values())} kills were aimed at a step, {sum(hits.values())} were inside it: "
              f"{hits}; {toll.failed[kind]} optimizations failed once, {toll.lost[kind]} operations were lost once",
              aimed)
    for (step, phase), n in sorted(toll.outside.items()):
        if n:
            print(f"# {n} kills aimed at {step} hit the phase {phase}")
    print(f"# longest call {toll.longest / 1e9:.1f} s")
    for text, n in toll.texts.most_common():
        if n:
            print(f"# {n} times: {text}")


lib.run(test, 3600)
