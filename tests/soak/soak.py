#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers on three hosts reduce without a pause while trainers, agents, links and the master die
and come back, connections become half open, and processes are stopped. Trainers of a fourth host,
which cannot be reached, repeat pcclConnect. Trainers of a fifth host lack memory. Every result is
compared with the sum of its contributors. The shared state, which the trainers synchronize every
few steps, is compared with its expected contents. No call may last longer than the events during
the call explain (bounds.py). No process may hold more and more resources, and nothing may be left
over at the end (leaks.py).

usage: soak.py [--minutes M] [--seed S] [--json FILE]

Everything dies, but not everything all the time, so that growth can be seen. Four trainers, the
veterans, live from the beginning to the end. The time is divided into four or more phases. Each
phase ends with a quiet point, when only the veterans run. Of every four phases the second and the
last spare the agent of one host, and the third spares the master (SPARED).
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import selectors
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import halfopen  # pylint: disable=wrong-import-position
import bounds  # pylint: disable=wrong-import-position
import leaks  # pylint: disable=wrong-import-position
import lib  # pylint: disable=wrong-import-position
import results  # pylint: disable=wrong-import-position
from bounds import MS, S, now  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

TRAINER = lib.BUILD / "tests/soak/trainer"
HOSTS = 3
SHUT, POOR = 3, 4  # additional hosts: the first cannot be reached, the other lacks memory
POOR_OPTIONS = ("--mem-per-user", "8M")
VETERANS = (0, 1, 2, 0)  # the hosts of the veterans
TRAINERS_MIN, TRAINERS_MAX = len(VETERANS), 10
SLOTS = 12  # as in trainer.c
PHASE_MAX = 900  # seconds
SPARED = (None, "agent", "master", "agent")  # by phase
# The algorithms of masters. All of them keep links between all hosts, so the number of links does not
# depend on the master. With every fifth seed, all masters have the algorithm ring instead.
ALGORITHMS = ("auto", "auto", "direct", "tree")
SETTLE = 6.0  # seconds until agents have closed what they keep for the next operation
CALM_BOUND = 25  # seconds until only the veterans reduce, after the other trainers have gone
LEAVE_BOUND = 10  # seconds until a trainer has left after the order
LOOK = 4.0  # seconds between two samples of all processes
GIVING_BACK = 10  # seconds in which a trainer must release everything; 5 of them may be its search for an agent
AHEAD = 15  # seconds after a master's death in which a peer may have a state that no other peer knows
CUT = 15  # seconds after the start of a long cut in which the host may learn that it was declared lost
# seconds after the start of a master in which it may abandon a run that newcomers have founded
YOUNG = 70


class Trainer:
    def __init__(self, process, number, slot, host, log, veteran):
        self.process, self.number, self.slot, self.host, self.log = process, number, slot, host, log
        self.veteran = veteran
        self.rest = b""
        self.connected = False
        self.connected_at = 0
        self.joins = self.last_began = 0  # the start of the last operation since the trainer joined
        self.killed = self.told = False
        self.said = collections.deque(maxlen=60)

    def kill(self):
        self.killed = True
        self.process.kill()

    def stays(self):
        return not self.killed and not self.told

    def tell_to_leave(self):
        self.told = True
        try:
            os.write(self.process.stdin.fileno(), b"leave\n")
        except BrokenPipeError:
            pass  # the trainer has ended


class Soak:
    """The system under test, and the events."""

    def __init__(self, lab, seed):
        self.lab, self.rng, self.seed = lab, random.Random(seed), seed
        self.selector = selectors.DefaultSelector()
        self.trainers = {}  # slot -> Trainer
        self.everybody = collections.deque(maxlen=40)  # also trainers that have ended
        self.serial = 0
        self.events = bounds.Events()
        self.operations, self.recovery = results.Operations(self.events), bounds.Recovery()
        self.calls = bounds.Calls(self.events, lab.folder / "slow-calls.txt")
        self.counts = collections.Counter()
        self.wrong = []
        self.errors = collections.Counter()
        self.later = []  # (at, function)
        self.down = {"master": False, "agent": set(), "link": set()}
        self.sockets, self.losing = halfopen.Sockets(lab), set()  # hosts
        self.stopped = set()  # processes
        self.spared = {"master": False, "agent": None}
        self.away = {}  # host -> event, while its agent is down
        self.paused = True
        self.waited = False
        self.shared_memory = leaks.shared_memory()
        self.growth = leaks.Growth(lab.folder)
        self.idle = None
        self.long_lived = {}
        self.port = lib.free_port()
        self.master_since = 0
        self.state_dir = lab.folder / "state"
        self.state_dir.mkdir()

    # ---- daemons

    def start_master(self):
        algorithm = self.rng.choice(ALGORITHMS) if self.seed % 5 else "ring"
        self.counts[f"masters with the algorithm {algorithm}"] += 1
        self.lab.start_master(port=self.port, options=[
            "--state-dir", self.state_dir, "--algorithm", algorithm])
        self.master_since = now()
        self.down["master"] = False

    def start_agent(self, host):
        self.lab.start_agent(host, path=self.lab.folder / f"host-{host}.sock",
                             admin=self.lab.folder / f"host-{host}.admin",
                             options=POOR_OPTIONS if host == POOR else ())
        self.down["agent"].discard(host)

    # ---- trainers

    def start_trainer(self, host=None, veteran=False):
        slots = [s for s in range(SLOTS) if s not in self.trainers]
        if not slots:
            return  # trainers that have got the order to leave still have their slots
        slot = self.rng.choice(slots)
        host = self.rng.randrange(HOSTS) if host is None else host
        self.serial += 1
        if host != SHUT:  # the unreachable host must not affect the others
            self.events.begins("trainer")
        process, log = self.lab.spawn(
            f"trainer-{self.serial}", host,
            [TRAINER, f"slot={slot}", f"serial={self.serial}", f"seed={self.seed}",
             f"shut={int(host == SHUT)}", f"master={self.lab.hosts.address(0)}:{self.port}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"PCCL_AGENT_SOCKET": str(self.lab.folder / f"host-{host}.sock"),
                 "PCCL_AGENT_AUTOSPAWN": "0"})
        os.set_blocking(process.stdout.fileno(), False)
        trainer = Trainer(process, self.serial, slot, host, log, veteran)
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
        self.calls.forget(trainer)
        if not trainer.killed and not (trainer.told and status == 0):
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
        elif answer["what"] == "sync":
            words = dict(w.split("=", 1) for w in line.split()[1:])
            self.operations.take_sync(trainer, words)
            self.counts["states given to newcomers"] += int(words["got"])
        elif answer["what"] == "connect":
            trainer.connected = answer["code"] == lib.SUCCESS
            if trainer.connected:
                trainer.connected_at = now()
                trainer.joins += 1
                trainer.last_began = 0
                self.counts["joins"] += 1
        elif answer["what"] == "slow" and trainer.host != SHUT:
            self.blame(self.calls.take(trainer, answer))
        elif answer["what"] == "bye":
            self.part_with(trainer, now() + GIVING_BACK * S)
        elif answer["what"] == "error":
            self.errors[f"{answer['code']} {answer['in']}"] += 1
            if "wait for each other" in answer["text"]:
                self.counts["calls that waited for each other"] += 1
                with open(self.lab.folder / "unmet.txt", "a", encoding="utf-8") as file:
                    file.writelines(f"{trainer.number} {x}\n" for x in list(trainer.said)[-12:])
            self.blame(self.lost_its_run(trainer, answer))
            self.blame(self.lacks_memory(trainer, answer))
            self.blame(self.may_not_synchronize(trainer, answer))
        elif answer["what"] == "WRONG":
            self.wrong.append(f"trainer {trainer.number} on host {trainer.host}: {line}")

    def part_with(self, trainer, until):
        """Lets the trainer end once it holds nothing more. While its agent is missing, the
        library's thread that looks for the next agent still holds resources of the last one."""
        left = leaks.left_by(trainer)
        if left and now() < until:
            self.after(0.2, lambda: self.part_with(trainer, until))
            return
        self.blame(left)
        trainer.process.stdin.close()

    def lost_its_run(self, trainer, answer):
        """Checks whether a trainer may have lost its run. A newcomer may have found a new master
        before the members did. The run that it has founded there gives way to theirs. No other
        trainer may lose its run because of a master's death."""
        if answer["code"] != lib.MASTER_CONNECTION_FAILED or answer["in"] == "pcclConnect":
            return None
        if trainer.connected_at > self.master_since and "does not know that run" in answer["text"] \
                and now() < self.master_since + YOUNG * S or "connect again" in answer["text"]:
            self.counts["newcomers told to connect again"] += 1
            return None
        return f"trainer {trainer.number} on host {trainer.host} lost its run: {answer['text']}"

    @staticmethod
    def lacks_memory(trainer, answer):
        """Only one host lacks memory. Trainers that reconnect to the master after such a failure
        get the code without the name of the host."""
        if answer["code"] != lib.OUT_OF_MEMORY or f"host-{POOR}" in answer["text"] or \
                "failed on another host" in answer["text"] or trainer.host == POOR:
            return None
        return f"trainer {trainer.number} on host {trainer.host} lacks memory: {answer['text']}"

    def may_not_synchronize(self, trainer, answer):
        """If only one host learned of a success before the master died, it is no success for the
        others, which offer the same revision again. A host that was cut off for long is declared
        lost, and its trainers get this error in their next call."""
        if answer["code"] != lib.INVALID_USAGE or answer["in"] != "pcclSynchronizeSharedState" or \
                "wait for each other" in answer["text"]:
            return None
        if "was declared lost" in answer["text"] and self.events.any("long cut", now() - CUT * S, now()):
            return None
        if "REVISION_INCREMENT_VIOLATION" in answer["text"]:
            self.counts["states that were ahead or lost"] += 1
            if self.events.any("master", now() - AHEAD * S, now()):
                return None
        return f"trainer {trainer.number} on host {trainer.host} may not synchronize: {answer['text']}"

    def blame(self, sentence):
        if sentence:
            self.wrong.append(sentence)

    # ---- events

    def write_down(self):
        """Writes the events, the last lines of the trainers, and the state of the daemons into
        files next to their logs."""
        with open(self.lab.folder / "events.txt", "w", encoding="utf-8") as file:
            self.events.write(file)
        for daemon in self.lab.daemons:
            whom = "--agent" if daemon in self.lab.agents.values() else "--master"
            for what in ("status", "peers", "ops"):
                with open(self.lab.folder / f"{what}-of-{daemon.log.stem}.txt", "wb") as file:
                    subprocess.run(["timeout", "5", lib.CTL, whom, daemon.admin, what],
                                   stdout=file, stderr=file, check=False)
        for trainer in self.everybody:
            if trainer.said:
                path = self.lab.folder / f"said-by-{trainer.number}-slot-{trainer.slot}.txt"
                path.write_text("\n".join(trainer.said) + "\n", "utf-8")

    def kill_or_start_trainer(self):
        n = sum(t.stays() and t.host < HOSTS for t in self.trainers.values())
        if n <= TRAINERS_MIN or n < TRAINERS_MAX and self.rng.random() < 0.5:
            self.start_trainer()
            return
        victims = [t for t in self.trainers.values()
                   if not t.veteran and t.stays() and t.host < HOSTS]
        if victims:
            self.end_trainer(self.rng.choice(victims))

    def come_or_go(self, host):
        """Starts or ends a trainer on a host that has no others."""
        there = [t for t in self.trainers.values() if t.host == host]
        if not there and host in self.lab.agents:
            self.start_trainer(host)
            self.counts["unreachable trainers" if host == SHUT else "trainers short of memory"] += 1
        for trainer in there:
            if trainer.stays():
                self.end_trainer(trainer)

    def end_trainer(self, victim):
        if victim.host == SHUT:
            victim.kill()
            return
        self.events.begins("trainer")
        if victim.host in self.away:
            self.away[victim.host].kind = "agent and trainer"
        if self.rng.random() < 0.2:
            victim.tell_to_leave()
            self.counts["trainers told to leave"] += 1
            return
        victim.kill()
        self.counts["trainers killed"] += 1
        self.recovery.event("trainer killed")

    def kill_agent(self):
        hosts = [h for h in range(HOSTS)
                 if h not in self.down["agent"] and h != self.spared["agent"]]
        if not hosts:
            return
        host = self.rng.choice(hosts)
        dying = any(t.killed and t.host == host for t in self.trainers.values())
        self.away[host] = self.events.begins("agent and trainer" if dying else "agent")
        if self.rng.random() < 0.5 and self.lab.agents[host].process not in self.stopped:
            self.lab.end(self.lab.agents[host])
            self.counts["agents told to end"] += 1
        else:
            self.lab.drop(self.lab.agents[host])
            self.counts["agents killed"] += 1
        self.down["agent"].add(host)
        self.after(self.rng.uniform(0.05, 0.4), lambda: self.agent_back(host))

    def agent_back(self, host):
        self.start_agent(host)
        self.away.pop(host).ends()
        self.recovery.event("agent restarted")

    def kill_master(self):
        if self.down["master"] or self.spared["master"]:
            return
        event = self.events.begins("master")
        self.lab.drop(self.lab.master)
        self.down["master"] = True
        self.counts["masters killed"] += 1
        self.after(self.rng.uniform(0.05, 1.0), lambda: self.master_back(event))

    def master_back(self, event):
        if self.rng.random() < 0.5:  # the new master knows only the snapshots of the agents
            for path in self.state_dir.iterdir():
                path.unlink()
            self.counts["masters without their journal"] += 1
        self.start_master()
        event.ends()
        self.recovery.event("master killed and restarted")

    def cut_link(self):
        hosts = [h for h in range(HOSTS) if h not in self.down["link"]]
        if not self.lab.hosts.separate or not hosts:
            return
        host = self.rng.choice(hosts)
        long = self.rng.random() < 0.3
        kind = ("long" if long else "short") + " cut" + " of the master" * (host == 0)
        event = self.events.begins(kind)
        self.lab.hosts.link(host, False)
        self.down["link"].add(host)
        self.counts[kind.replace("cut", "cuts")] += 1
        if long:
            self.recovery.event("master's host vanished" if host == 0 else "host vanished")
        self.after(self.rng.uniform(4, 6) if long else self.rng.uniform(0.2, 1.5),
                   lambda: self.heal_link(host, event))

    def heal_link(self, host, event):
        self.lab.hosts.link(host, True)
        event.ends()
        self.down["link"].discard(host)

    def half_open(self):
        host = self.rng.randrange(HOSTS)
        if not isinstance(self.lab.hosts, halfopen.Hosts) or host in self.losing \
                or host in self.down["link"]:
            return
        target = self.rng.choice((halfopen.INBOUND, halfopen.OUTBOUND, halfopen.AGENT_SIDE,
                                  *((halfopen.MASTER_SIDE,) if host == 0 else ())))
        of_master = target in (halfopen.AGENT_SIDE, halfopen.MASTER_SIDE)
        loss = self.rng.choice((None, halfopen.ENDS, halfopen.ENDS, halfopen.ALL))
        event = self.events.begins("half open" + " at the master" * of_master)
        self.lab.hosts.lose(host, loss, True)
        self.losing.add(host)
        self.counts["sockets closed at one end"] += self.sockets.close(host, self.sockets.chosen(
            host, target, self.rng.choice((None, self.rng.choice))))
        self.after(self.rng.uniform(0.05, 2 if loss == halfopen.ENDS else 0.3),
                   lambda: self.hear_again(host, loss, event))

    def hear_again(self, host, loss, event):
        self.lab.hosts.lose(host, loss, False)
        self.losing.discard(host)
        event.ends()
        self.recovery.event(event.kind)

    def stop_somebody(self):
        """Stops a process for a moment, like a busy machine, a debugger, or swapped memory."""
        processes = {"master": [] if self.down["master"] else [self.lab.master.process],
                     "agent": [self.lab.agents[h].process for h in range(HOSTS)
                               if h not in self.down["agent"]],
                     "trainer": [t.process for t in self.trainers.values() if t.stays()]}
        who = self.rng.choice(sorted(processes))
        running = [p for p in processes[who] if p not in self.stopped]
        if not running:
            return
        process = self.rng.choice(running)
        event = self.events.begins(f"{who} stopped")
        process.send_signal(signal.SIGSTOP)
        self.stopped.add(process)
        self.counts[f"{who}s stopped"] += 1
        self.after(self.rng.uniform(0.3, 2.5), lambda: self.go_on(process, event))

    def go_on(self, process, event):
        process.send_signal(signal.SIGCONT)  # no effect if the process was killed meanwhile
        self.stopped.discard(process)
        event.ends()
        self.recovery.event(event.kind)

    def wake_all(self):
        """Wakes all stopped processes, so that they can be asked and ended."""
        for process in self.stopped:
            process.send_signal(signal.SIGCONT)

    def after(self, seconds, function):
        self.later.append((now() + int(seconds * 1e9), function))

    # ---- the loop

    def spin(self, seconds):
        """For so many seconds, reads the trainers' reports and runs the functions of after() that
        are due."""
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
        late = self.recovery.older(bounds.RECOVERY_BOUND)
        if late and not self.wrong:
            self.wrong.append(f"no operation succeeded for {bounds.RECOVERY_BOUND} s after: "
                              + ", ".join(late))
        if not self.wrong:
            self.wrong += self.calls.late()
        for daemon in self.lab.daemons:
            if not daemon.alive() and not self.wrong:
                self.wrong.append(f"{daemon.name} has ended, status {daemon.process.returncode}")
        return bool(self.wrong or self.operations.wrong)

    def run(self, seconds):
        self.start_master()
        for host in range(self.lab.hosts.n_hosts):
            self.start_agent(host)
        if SHUT in self.lab.agents:
            self.lab.hosts.shut(SHUT)
        self.spin(0.5)
        self.idle = leaks.Idle(self.lab.daemons)
        for host in VETERANS:
            self.start_trainer(host, veteran=True)
        self.spin(2)
        self.plan(self.kill_or_start_trainer, 0.5, 1.0)
        self.plan(self.kill_agent, 3, 6)
        self.plan(self.cut_link, 4, 9)
        self.plan(self.kill_master, 5, 10)
        self.plan(self.stop_somebody, 3, 7)
        self.plan(self.half_open, 2, 5)
        self.plan(lambda: self.come_or_go(SHUT), 3, 8)
        self.plan(lambda: self.come_or_go(POOR), 4, 10)
        self.plan(self.look, LOOK, LOOK)
        progress = Progress(seconds)
        began = now()
        phases = len(SPARED) * math.ceil(seconds / PHASE_MAX / len(SPARED))
        for phase in range(phases):
            self.spare(SPARED[phase % len(SPARED)])
            self.paused = False
            for _ in range(TRAINERS_MIN):
                self.start_trainer()
            while now() - began < seconds * S * (phase + 1) / phases and not self.bad():
                self.spin(1)
                progress.show((now() - began) / S, self.operations.completed, self.counts)
            self.paused = True
            self.calm()
            self.quiet_point()
            if self.bad():
                break
        progress.end()

    def spare(self, what):
        """Spares a daemon in the next phase. It is sampled before and after the phase."""
        self.spared = {"master": what == "master",
                       "agent": self.rng.randrange(HOSTS) if what == "agent" else None}
        if what:
            daemon = self.lab.agents[self.spared["agent"]] if what == "agent" else self.lab.master
            self.long_lived[daemon.pid] = daemon.name

    def waits(self):
        """Returns whether new events must wait. Many events at the same time may delay every
        success, which is no fault. But after the events an operation must succeed."""
        waits = bool(self.recovery.older(bounds.PATIENCE))
        self.counts["waits for an operation"] += waits and not self.waited
        self.waited = waits
        return waits

    def plan(self, function, low, high):
        def again():
            if function == self.look or not self.paused and not self.waits():
                function()
            self.plan(function, low, high)
        self.after(self.rng.uniform(low, high), again)

    # ---- quiet points

    def processes(self):
        return {**{d.pid: d.name for d in self.lab.daemons},
                **{t.process.pid: f"trainer {t.number} on host {t.host}"
                   for t in self.trainers.values()}}

    def look(self):
        self.growth.look(self.processes())
        self.wrong += leaks.zombies_of(self.processes())

    def calm(self):
        """Ends all trainers except the veterans, repairs everything, and waits until only the
        veterans reduce together."""
        for trainer in [t for t in self.trainers.values() if not t.veteran and t.stays()]:
            self.end_trainer(trainer)
        since, limit = None, now() + CALM_BOUND * S
        while not self.bad() and (since is None or not self.veterans_alone(since)):
            if now() > limit:
                self.wrong.append(f"after {CALM_BOUND} s without new events the veterans do not "
                                  "reduce together, or others still take part: " + self.describe())
                return
            self.spin(0.1)
            if since is None and not (any(self.down.values()) or self.stopped or self.losing):
                since = now()

    def veterans_alone(self, since):
        mask = sum(1 << 5 * slot for slot in self.trainers)
        return all(t.veteran and self.operations.last.get(slot, (0, 0)) > (since, 0)
                   and self.operations.last[slot][1] == mask
                   and self.operations.last_sync.get(slot, 0) > since
                   for slot, t in self.trainers.items())

    def describe(self):
        return "; ".join(f"trainer {t.number} on host {t.host}, slot {t.slot}, "
                         f"{'a veteran' if t.veteran else 'killed or leaving'}, said last "
                         f"{t.said[-1] if t.said else 'nothing'}" for t in self.trainers.values())

    def quiet_point(self):
        self.spin(SETTLE)
        if not self.bad():
            done = collections.Counter(operations=self.operations.completed)
            done.update({k: v for k, v in self.counts.items()
                         if any(word in k for word in ("killed", "told", "cut", "stopped"))})
            self.growth.quiet_point(self.processes(), self.lab.daemons, done, self.spin)

    def finish(self):
        """Stops the events and lets the trainers leave."""
        alive = self.processes()
        self.long_lived.update({t.process.pid: alive[t.process.pid]
                                for t in self.trainers.values() if t.veteran})
        for trainer in list(self.trainers.values()):
            trainer.tell_to_leave()
            self.events.begins("trainer")
        end = now() + LEAVE_BOUND * S
        while self.trainers and now() < end and not self.bad():
            self.spin(0.1)
        for trainer in self.trainers.values():
            self.wrong.append(f"trainer {trainer.number} does not leave")

    def judge(self):
        self.growth.judge(self.long_lived)
        self.idle.check(self.lab.daemons)
        leaks.check_leftovers(self.lab, self.shared_memory)


class Progress:
    """A line on a terminal that shows the progress."""

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


def summary(soak, seconds):
    took = {kind: sorted(v) for kind, v in sorted(soak.recovery.took.items())}
    return {
        "seconds": round(seconds, 1), "seed": soak.seed,
        "operations": soak.operations.completed,
        "synchronizations": soak.operations.synchronizations,
        "retried": soak.operations.retried,
        "repeated_without_who_knew": len(soak.operations.split),
        "events": dict(sorted(soak.counts.items())), "errors": dict(sorted(soak.errors.items())),
        "longest_calls_s": soak.calls.longest, "held": soak.growth.summary(),
        "recovery_ms": {kind: {"n": len(v), "median": v[len(v) // 2] / MS,
                               "p99": v[min(len(v) - 1, len(v) * 99 // 100)] / MS,
                               "max": v[-1] / MS} for kind, v in took.items()},
    }


def report(s):
    print(f"# {s['operations']} operations and {s['synchronizations']} synchronizations completed in "
          f"{s['seconds']:.0f} s, {s['retried']} calls repeated, "
          f"{s['repeated_without_who_knew']} repeated without the trainers that knew of a success; "
          + ", ".join(f"{k}: {v}" for k, v in s["events"].items()))
    print("# errors that trainers saw: " + ", ".join(f"{k}: {v}" for k, v in s["errors"].items()))
    print(f"# {'recovery after':30} {'events':>7} {'median':>10} {'99 %':>10} {'max':>10}")
    for kind, r in s["recovery_ms"].items():
        print(f"# {kind:30} {r['n']:7} {r['median']:7.0f} ms {r['p99']:7.0f} ms {r['max']:7.0f} ms")
    for kind, (seconds, bound, call) in sorted(s["longest_calls_s"].items()):
        print(f"# the longest call after {kind}: {seconds:.1f} s of {bound}, {call}")


def make_hosts():
    """Creates the hosts. Returns None if hosts can only be agents of this machine. Prints which
    events cannot happen then."""
    lacks = halfopen.missing()
    hosts = None if lacks else lib.make_namespaces(HOSTS + 2, kind=halfopen.Hosts)
    if hosts:
        return hosts
    print("# left out: half-open connections, unreachable trainers, trainers short of memory: "
          + (lacks or "no network namespaces"))
    hosts = lib.make_namespaces(HOSTS)
    if not hosts:
        print("# left out: cuts of links: no network namespaces")
    return hosts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="also write the summary to this file")
    args = parser.parse_args()

    def test():
        with lib.Lab(HOSTS, make_hosts()) as lab:
            soak = Soak(lab, args.seed)
            began = time.monotonic()
            soak.run(args.minutes * 60)
            seconds = time.monotonic() - began
            if not soak.bad():
                soak.finish()
            if soak.bad():
                soak.wake_all()
                soak.write_down()
            for text in (soak.wrong + soak.operations.wrong)[:10]:
                check(False, text)
            if not soak.wrong and not soak.operations.wrong:
                check(soak.operations.completed > 0, f"{soak.operations.completed} operations, "
                      "each with one result for all trainers that took part and went on")
                check(soak.operations.synchronizations > 0,
                      f"{soak.operations.synchronizations} synchronizations, each with one state")
                given = soak.counts["states given to newcomers"]
                check(given > 0, f"{given} newcomers have got the state")
                soak.judge()
            found = summary(soak, seconds)
            report(found)
            if args.json:
                args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")

    lib.run(test, int(args.minutes * 60) + 240)


signal.signal(signal.SIGPIPE, signal.SIG_IGN)
main()
