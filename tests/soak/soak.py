#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers on three hosts reduce without a pause while trainers, agents, links and the master die and
come back. Every result is judged by who it says has contributed; nothing may hang; in the end nothing
may be left over.

usage: soak.py [--minutes M] [--seed S] [--json FILE]
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import selectors
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

TRAINER = lib.BUILD / "tests/soak/trainer"
HOSTS = 3
TRAINERS_MIN, TRAINERS_MAX = 4, 10
SLOTS = 12  # as in trainer.c
BOUND = 45  # seconds that a call of a trainer may take: more than all grace times together
RECOVERY_BOUND = 20  # seconds from any event to the next operation that succeeds
QUIET = 3.0  # seconds without new events at the end
MS = 1000000


def now():
    return time.monotonic_ns()


class Trainer:
    def __init__(self, process, number, slot, host, log):
        self.process, self.number, self.slot, self.host, self.log = process, number, slot, host, log
        self.rest = b""
        self.connected = False
        self.killed_at = None
        self.said = collections.deque(maxlen=60)

    def kill(self):
        self.killed_at = now()
        self.process.kill()


class Recovery:
    """How long after an event the first operation succeeds that was begun after it."""

    def __init__(self):
        self.open = []  # (kind, at)
        self.took = collections.defaultdict(list)

    def event(self, kind):
        self.open.append((kind, now()))

    def forget(self):
        """Events that nobody could recover from: there were less than two trainers."""
        self.open.clear()

    def operation(self, began, end):
        for kind, at in [e for e in self.open if began > e[1]]:
            self.took[kind].append(end - at)
            self.open.remove((kind, at))

    def overdue(self):
        limit = now() - RECOVERY_BOUND * 1000 * MS
        return [kind for kind, at in self.open if at < limit]


class Operations:
    """What the trainers say of the operations: all who were in one must say the same."""

    KEPT = 20000

    def __init__(self):
        self.seen = collections.OrderedDict()  # (step, tag) -> {mask: [trainer numbers]}
        self.completed = self.retried = 0
        self.wrong = []

    def take(self, trainer, words):
        key = (words["step"], words["tag"])
        mask = int(words["mask"], 16)
        masks = self.seen.get(key)
        if masks is None:
            masks = self.seen[key] = {}
            self.completed += 1
            if len(self.seen) > self.KEPT:
                self.seen.popitem(last=False)
        masks.setdefault(mask, []).append(trainer.number)
        self.retried += int(words["lost"])
        if len(masks) > 1:
            self.wrong.append(f"step {key[0]} tag {key[1]} has several results: "
                              + ", ".join(f"{m:x} for trainers {who}" for m, who in masks.items()))


class Soak:
    """The system and what is done to it."""

    def __init__(self, lab, seed):
        self.lab, self.rng, self.seed = lab, random.Random(seed), seed
        self.selector = selectors.DefaultSelector()
        self.trainers = {}  # slot -> Trainer
        self.everybody = collections.deque(maxlen=40)  # also those that have ended
        self.serial = 0
        self.operations, self.recovery = Operations(), Recovery()
        self.counts = collections.Counter()
        self.wrong = []
        self.errors = collections.Counter()
        self.later = []  # (at, function)
        self.down = {"master": False, "agent": set(), "link": set()}
        self.port = lib.free_port()
        self.state_dir = lab.folder / "state"
        self.state_dir.mkdir()

    # ---- daemons

    def start_master(self):
        self.lab.start_master(port=self.port, options=["--state-dir", self.state_dir])
        self.down["master"] = False

    def start_agent(self, host):
        self.lab.start_agent(host, path=self.lab.folder / f"host-{host}.sock",
                             admin=self.lab.folder / f"host-{host}.admin")
        self.down["agent"].discard(host)

    # ---- trainers

    def start_trainer(self):
        slot = self.rng.choice([s for s in range(SLOTS) if s not in self.trainers])
        host = self.rng.randrange(HOSTS)
        self.serial += 1
        process, log = self.lab.spawn(
            f"trainer-{self.serial}", host,
            [TRAINER, f"slot={slot}", f"serial={self.serial}", f"bound={BOUND}",
             f"seed={self.seed}", f"master={self.lab.hosts.address(0)}:{self.port}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"PCCL_AGENT_SOCKET": str(self.lab.folder / f"host-{host}.sock"),
                 "PCCL_AGENT_AUTOSPAWN": "0"})
        os.set_blocking(process.stdout.fileno(), False)
        trainer = Trainer(process, self.serial, slot, host, log)
        self.trainers[slot] = trainer
        self.everybody.append(trainer)
        self.selector.register(process.stdout, selectors.EVENT_READ, trainer)
        self.counts["trainer starts"] += 1

    def ended(self, trainer):
        self.selector.unregister(trainer.process.stdout)
        status = trainer.process.wait()
        trainer.process.stdin.close()
        trainer.process.stdout.close()
        del self.trainers[trainer.slot]
        if trainer.killed_at is None and status != 0:
            self.wrong.append(f"trainer {trainer.number} ended by itself with status {status}")

    def read(self, trainer):
        data = os.read(trainer.process.stdout.fileno(), 1 << 16)
        if not data:
            self.ended(trainer)
            return
        *lines, trainer.rest = (trainer.rest + data).split(b"\n")
        for line in lines:
            self.line(trainer, line.decode("utf-8", "replace"))

    def line(self, trainer, line):
        trainer.said.append(f"{now()} {line}")
        answer = lib.parse_answer(line)
        if answer["what"] == "op":
            words = dict(w.split("=", 1) for w in line.split()[1:])
            self.operations.take(trainer, words)
            if words["tag"] == "1":
                self.recovery.operation(int(words["began"]), int(words["end"]))
        elif answer["what"] == "connect":
            trainer.connected = answer["code"] == lib.SUCCESS
            if trainer.connected:
                self.counts["joins"] += 1
        elif answer["what"] == "error":
            self.errors[f"{answer['code']} {answer['in']}"] += 1
        elif answer["what"] == "WRONG":
            self.wrong.append(f"trainer {trainer.number} on host {trainer.host}: {line}")

    # ---- events

    def write_down(self):
        """What the trainers of the end said last, beside the logs of the daemons."""
        for trainer in self.everybody:
            if trainer.said:
                path = self.lab.folder / f"said-by-{trainer.number}-slot-{trainer.slot}.log"
                path.write_text("\n".join(trainer.said) + "\n", "utf-8")

    def kill_or_start_trainer(self):
        n = len(self.trainers)
        if n < TRAINERS_MIN or n < TRAINERS_MAX and self.rng.random() < 0.5:
            self.start_trainer()
            return
        victim = self.rng.choice(list(self.trainers.values()))
        if self.rng.random() < 0.2:
            victim.process.stdin.close()  # it leaves when its step is done
            self.counts["trainers told to leave"] += 1
            victim.killed_at = now()
        elif victim.killed_at is None:
            victim.kill()
            self.counts["trainers killed"] += 1
            self.recovery.event("trainer killed")

    def kill_agent(self):
        hosts = [h for h in range(HOSTS) if h not in self.down["agent"]]
        if not hosts:
            return
        host = self.rng.choice(hosts)
        if self.rng.random() < 0.5:
            self.lab.end(self.lab.agents[host])
            self.counts["agents told to end"] += 1
        else:
            self.lab.drop(self.lab.agents[host])
            self.counts["agents killed"] += 1
        self.down["agent"].add(host)
        self.after(self.rng.uniform(0.05, 0.4), lambda: self.agent_back(host))

    def agent_back(self, host):
        self.start_agent(host)
        self.recovery.event("agent restarted")

    def kill_master(self):
        if self.down["master"]:
            return
        self.lab.drop(self.lab.master)
        self.down["master"] = True
        self.counts["masters killed"] += 1
        self.after(self.rng.uniform(0.05, 1.0), self.master_back)

    def master_back(self):
        if self.rng.random() < 0.5:  # it knows nothing but what the agents tell
            for path in self.state_dir.iterdir():
                path.unlink()
            self.counts["masters without their journal"] += 1
        self.start_master()
        self.recovery.event("master killed and restarted")

    def cut_link(self):
        hosts = [h for h in range(1, HOSTS) if h not in self.down["link"]]
        if not self.lab.hosts.separate or not hosts:
            return
        host = self.rng.choice(hosts)  # not the master's
        self.lab.hosts.link(host, False)
        self.down["link"].add(host)
        long = self.rng.random() < 0.3
        self.counts["links cut for long" if long else "links cut"] += 1
        if long:
            self.recovery.event("host vanished")
        self.after(self.rng.uniform(4, 6) if long else self.rng.uniform(0.2, 1.5),
                   lambda: self.heal_link(host))

    def heal_link(self, host):
        self.lab.hosts.link(host, True)
        self.down["link"].discard(host)

    def after(self, seconds, function):
        self.later.append((now() + int(seconds * 1e9), function))

    # ---- the loop

    def spin(self, seconds):
        """Reads what trainers say and does what is due, for so long."""
        end = now() + int(seconds * 1e9)
        while now() < end and not self.bad():
            due = min([end, *(at for at, _ in self.later)])
            for key, _ in self.selector.select(max(0, (due - now()) / 1e9)):
                self.read(key.data)
            for entry in [e for e in self.later if e[0] <= now()]:
                self.later.remove(entry)
                entry[1]()
            if sum(t.connected for t in self.trainers.values()) < 2:
                self.recovery.forget()

    def bad(self):
        late = self.recovery.overdue()
        if late and not self.wrong:
            self.wrong.append(f"no operation succeeded for {RECOVERY_BOUND} s after: "
                              + ", ".join(late))
        for daemon in self.lab.daemons:
            if not daemon.alive() and not self.wrong:
                self.wrong.append(f"{daemon.name} has ended, status {daemon.process.returncode}")
        return bool(self.wrong or self.operations.wrong)

    def run(self, seconds):
        self.start_master()
        for host in range(HOSTS):
            self.start_agent(host)
        self.spin(0.5)
        self.idle = {h: usage(self.lab.agents[h]) for h in range(HOSTS)}
        for _ in range(TRAINERS_MIN + 2):
            self.start_trainer()
        self.spin(2)
        self.plan(self.kill_or_start_trainer, 0.5, 1.0)
        self.plan(self.kill_agent, 3, 6)
        self.plan(self.cut_link, 4, 9)
        self.plan(self.kill_master, 5, 10)
        progress = Progress(seconds)
        began = now()
        while (now() - began) / 1e9 < seconds and not self.bad():
            self.spin(1)
            progress.show((now() - began) / 1e9, self.operations.completed, self.counts)
        progress.end()

    def plan(self, function, low, high):
        def again():
            if not self.over:
                function()
                self.plan(function, low, high)
        self.after(self.rng.uniform(low, high), again)

    over = False

    def finish(self):
        """No more events; everything heals; trainers leave; the daemons must be as at first."""
        self.over = True
        self.spin(QUIET + 6)  # what was planned comes back
        before = self.operations.completed
        self.spin(2)
        check(self.operations.completed > before or self.bad(), "at rest the trainers go on")
        for trainer in list(self.trainers.values()):
            trainer.killed_at = trainer.killed_at or now()
            trainer.process.stdin.close()
        end = now() + BOUND * 1000 * MS
        while self.trainers and now() < end:
            self.spin_once()
        for trainer in self.trainers.values():
            self.wrong.append(f"trainer {trainer.number} does not leave")

    def spin_once(self):
        for key, _ in self.selector.select(0.1):
            self.read(key.data)


class Progress:
    """A line on a terminal that says how far it is."""

    def __init__(self, seconds):
        self.seconds, self.on = seconds, sys.stdout.isatty()

    def show(self, at, operations, counts):
        if self.on:
            killed = ", ".join(f"{v} {k}" for k, v in sorted(counts.items()) if "killed" in k)
            print(f"\r\033[K{at:6.0f} of {self.seconds:.0f} s: {operations} operations, {killed}",
                  end="", flush=True)

    def end(self):
        if self.on:
            print("\r\033[K", end="")


def usage(daemon):
    """What a daemon holds on to."""
    fds = collections.Counter()
    for fd in os.listdir(f"/proc/{daemon.pid}/fd"):
        try:
            target = os.readlink(f"/proc/{daemon.pid}/fd/{fd}")
        except OSError:
            continue
        fds[re.sub(r"[:\[(].*", "", target) if not target.startswith("/memfd") else "memfd"] += 1
    return {"threads": daemon.status("Threads"), "memfd": fds["memfd"],
            "descriptors": sum(fds.values()), "rss_kib": daemon.status("VmRSS")}


def check_leaks(soak):
    """Agents close links and regions a moment after the last process has gone."""
    for host in range(HOSTS):
        daemon, first = soak.lab.agents[host], soak.idle[host]
        deadline = time.monotonic() + 10
        while True:
            last = usage(daemon)
            over = [k for k in ("threads", "memfd", "descriptors") if last[k] > first[k]]
            if not over or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        check(not over, f"the agent of host {host} holds no more than at first", f"{first} {last}")
        check(last["rss_kib"] < first["rss_kib"] + 64 * 1024,
              f"the agent of host {host} has grown by "
              f"{(last['rss_kib'] - first['rss_kib']) / 1024:.1f} MiB", f"{first} {last}")


def summary(soak, seconds):
    took = {kind: sorted(v) for kind, v in sorted(soak.recovery.took.items())}
    return {
        "seconds": round(seconds, 1), "seed": soak.seed,
        "operations": soak.operations.completed, "retried": soak.operations.retried,
        "events": dict(sorted(soak.counts.items())), "errors": dict(sorted(soak.errors.items())),
        "recovery_ms": {kind: {"n": len(v), "median": v[len(v) // 2] / MS,
                               "p99": v[min(len(v) - 1, len(v) * 99 // 100)] / MS,
                               "max": v[-1] / MS} for kind, v in took.items()},
    }


def report(s):
    print(f"# {s['operations']} operations completed in {s['seconds']:.0f} s, {s['retried']} calls "
          "repeated; " + ", ".join(f"{k}: {v}" for k, v in s["events"].items()))
    print("# errors that trainers saw: " + ", ".join(f"{k}: {v}" for k, v in s["errors"].items()))
    print(f"# {'recovery after':30} {'events':>7} {'median':>10} {'99 %':>10} {'max':>10}")
    for kind, r in s["recovery_ms"].items():
        print(f"# {kind:30} {r['n']:7} {r['median']:7.0f} ms {r['p99']:7.0f} ms {r['max']:7.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="the summary goes there, too")
    args = parser.parse_args()

    def test():
        with lib.Lab(HOSTS, lib.make_namespaces(HOSTS)) as lab:
            soak = Soak(lab, args.seed)
            began = time.monotonic()
            soak.run(args.minutes * 60)
            seconds = time.monotonic() - began
            if not soak.bad():
                soak.finish()
            if soak.bad():
                soak.write_down()
            for text in (soak.wrong + soak.operations.wrong)[:10]:
                check(False, text)
            if not soak.wrong and not soak.operations.wrong:
                check(soak.operations.completed > 0, f"{soak.operations.completed} operations, each "
                      "with one result for all who were in it")
                check_leaks(soak)
            found = summary(soak, seconds)
            report(found)
            if args.json:
                args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")

    lib.run(test, int(args.minutes * 60) + 240)


signal.signal(signal.SIGPIPE, signal.SIG_IGN)
main()
