# SPDX-License-Identifier: MIT
"""Checks the resources of the soak's processes for growth.

Growth: at quiet points with the same load (one trainer per host, no daemon missing) every process
that has lived since an earlier quiet point must hold the same resources as then. Between two quiet
points there are so many operations and deaths that a leak in each of them would exceed the allowed
growth.

End: after all trainers have left, daemons must hold the same resources as before the first trainer.
A trainer that has released everything must hold only the resources in LEFT. No process, zombie,
socket or file of the run may remain, except the expected ones.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import time

import lib
from lib import check

# The allowed growth between quiet points. Agents keep a few regions for a few seconds. Trainers
# keep results mapped until ten seconds after the last use. malloc keeps the memory of the busiest
# moment: masters hold 320 to 440 KiB after the start, and up to 1000 after some minutes of work.
GROWTH = {"threads": 0, "descriptors": 8, "sockets": 2, "memfds": 8, "memfd mappings": 12,
          "mappings": 24, "heap KiB": 1024, "shared KiB": 8192, "addresses KiB": 16384}
GROWTH_OF_TRAINERS = {**GROWTH, "threads": 1, "memfd mappings": 48, "mappings": 60, "shared KiB": 24576,
                      "addresses KiB": 24576}
# Agents let malloc keep 32 MiB, but report how much of the heap is in use.
GROWTH_OF_AGENTS = {**GROWTH, "addresses KiB": GROWTH["addresses KiB"] + 32768}
# A link that is opened while the machine is too busy to answer within 5 ms counts as a high
# round-trip path and has more streams. For each stream the agent has a socket, and a buffer for a
# segment.
STREAM_KIB = 257
# Numbers of pcclctl status that must not change.
COUNTED = {"pcclagentd": ("sessions", "peers", "runs", "links_in", "links_out"),
           "ccoip-masterd": ("agents", "connections", "accepted", "registered", "disconnected", "groups")}
# Values of an idle daemon that must be the same as before the first trainer.
IDLE_SAME = ("threads", "descriptors", "sockets", "memfds", "memfd mappings")
IDLE_AGENT_ZERO = ("sessions", "peers", "runs", "ops", "memory", "links_in", "links_out")
IDLE_HEAP_KIB = 4096
# Resources of a trainer that has only the library's session: its own thread and the library's
# threads, one of which starts with the first operand that it copies.
LEFT = {"threads": 4, "descriptors": 5, "sockets": 2, "memfds": 0, "memfd mappings": 0}
SAMPLING, PAUSE = 2.0, 0.25  # seconds


def usage(pid):
    """Returns the resources of a process, or None when it is gone."""
    proc = pathlib.Path(f"/proc/{pid}")
    fds = collections.Counter()
    try:
        status = dict(re.findall(r"^(\w+):\s+(\d+)", (proc / "status").read_text("ascii"), re.M))
        maps = (proc / "maps").read_text("utf-8", "replace").splitlines()
        for fd in os.listdir(proc / "fd"):
            try:
                fds[re.match(r"/memfd|[^:\[(]*", os.readlink(proc / "fd" / fd))[0]] += 1
            except FileNotFoundError:
                continue  # closed meanwhile
        return {"threads": int(status["Threads"]), "descriptors": sum(fds.values()),
                "sockets": fds["socket"], "memfds": fds["/memfd"],
                "memfd mappings": sum(" /memfd:" in line for line in maps),
                "mappings": len(maps), "heap KiB": int(status["RssAnon"]),
                "shared KiB": int(status["RssShmem"]), "addresses KiB": addresses(maps)}
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return None


def addresses(maps):
    """Returns the mapped addresses in KiB. Addresses that malloc has reserved for later are not
    counted."""
    ends = (re.match("([0-9a-f]+)-([0-9a-f]+) (?!---p)", line) for line in maps)
    return sum(int(m[2], 16) - int(m[1], 16) for m in ends if m) >> 10


def least(samples):
    return {key: min(s[key] for s in samples) for key in samples[0]}


def ctl_status(daemon):
    """Returns the numbers of pcclctl status."""
    whom = "--agent" if "agent" in daemon.name else "--master"
    result = subprocess.run([lib.CTL, "--json", whom, daemon.admin, "status"], timeout=lib.WAIT,
                            stdout=subprocess.PIPE, check=False)
    if result.returncode != 0:
        raise lib.Failed(f"pcclctl status of {daemon.name} ends with {result.returncode}")
    row = json.loads(result.stdout)["status"][0]
    return {k: v for k, v in row.items() if isinstance(v, int)}


def held(daemon, numbers):
    """Returns the heap in use that an agent reports, without the buffers of its streams. malloc may
    keep more."""
    if "agent" not in daemon.name:
        return {}
    return {"heap KiB": (numbers["heap"] >> 10) - STREAM_KIB * numbers["streams"]}


def counted(daemon):
    """Returns the numbers that must not change, and the number of streams."""
    numbers = ctl_status(daemon)
    return {**{f"{key} in pcclctl status": numbers[key]
               for key in COUNTED[daemon.name.split()[0]]}, **held(daemon, numbers)
            }, numbers.get("streams", 0)


class Growth:
    """The usage of every process at each quiet point during its life."""

    def __init__(self, folder):
        self.file = folder / "usage.tsv"  # a sample every few seconds, to read when some usage has grown
        self.points = {}  # (pid, name) -> [(events before it, usage)]
        self.rows = 0

    def look(self, processes):
        """processes: pid -> name"""
        with open(self.file, "a", encoding="utf-8") as file:
            for pid, name in processes.items():
                found = usage(pid)
                if found:
                    if self.rows == 0:
                        file.write("\t".join(["seconds", "pid", "name", *found]) + "\n")
                    self.rows += 1
                    file.write("\t".join(map(str, [round(time.monotonic(), 1), pid, name,
                                                   *found.values()])) + "\n")

    def quiet_point(self, processes, daemons, done, spin):
        """Samples all processes at a quiet point. processes: pid -> name. done: the events so far,
        as a Counter."""
        samples = collections.defaultdict(list)
        for _ in range(int(SAMPLING / PAUSE)):
            for pid in processes:
                samples[pid].append(usage(pid))
            spin(PAUSE)
        numbers = {d.pid: counted(d) for d in daemons}
        for pid, name in processes.items():
            if None not in samples[pid]:
                told_by_it, streams = numbers.get(pid, ({}, 0))
                found = {**least(samples[pid]), **told_by_it}
                for key in ("sockets", "descriptors"):
                    found[key] -= streams
                self.points.setdefault((pid, name), []).append((done, found))

    def judge(self, must):
        """Checks the growth. must: pid -> name of processes that must have been sampled more than
        once."""
        for pid, name in must.items():
            check(len(self.points.get((pid, name), [])) > 1, f"{name} was sampled at several quiet points")
        for (_, name), points in self.points.items():
            if len(points) < 2:
                continue
            more = "; ".join(f"{key}: " + ", ".join(str(p[key]) for _, p in points)
                             for key in grown(name, points))
            check(not more, f"{name} holds {'more and more, ' if more else 'no more'}{more}, after "
                  + told(points[-1][0] - points[0][0]))

    def summary(self):
        return {f"{name}, {pid}": {key: [p[key] for _, p in points] for key in points[0][1]}
                for (pid, name), points in self.points.items() if len(points) > 1}


def grown(name, points):
    (_, first), (_, last) = points[0], points[-1]
    allowed = {"trainer": GROWTH_OF_TRAINERS, "pcclagentd": GROWTH_OF_AGENTS}.get(
        name.split()[0], GROWTH)
    return [key for key in last if last[key] > first[key] + allowed.get(key, 0)
            # freed memory is kept for a while
            and not (key.endswith("KiB") and lib.sanitized())]


def told(done):
    return ", ".join(f"{number} {what}" for what, number in done.items())


# ---- the end


class Idle:
    """The resources of daemons that have nothing to do."""

    def __init__(self, daemons):
        self.first = {d.name: self.look(d)[0] for d in daemons}

    @staticmethod
    def look(daemon):
        numbers = ctl_status(daemon)
        return {**usage(daemon.pid), **held(daemon, numbers)}, numbers

    def excess(self, daemon):
        first = self.first[daemon.name]
        last, numbers = self.look(daemon)
        over = [f"{last[k]} {k}, not {first[k]}" for k in IDLE_SAME if last[k] > first[k]]
        zero = IDLE_AGENT_ZERO if "agent" in daemon.name else COUNTED["ccoip-masterd"]
        over += [f"{k} {numbers[k]} in pcclctl status" for k in zero if numbers[k]]
        if not lib.sanitized() and last["heap KiB"] > first["heap KiB"] + IDLE_HEAP_KIB:
            over.append(f"{last['heap KiB']} KiB of heap, not {first['heap KiB']}")
        return over

    def check(self, daemons):
        """Checks that idle daemons hold no more than at first. They close links and regions a
        moment after the last process has gone."""
        deadline = time.monotonic() + 12
        for daemon in daemons:
            while True:
                over = self.excess(daemon)
                if not over or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            check(not over, f"after all trainers have left, {daemon.name} holds "
                  + ("; ".join(over) if over else "no more than at first"))


def left_by(trainer):
    """Returns which resources a trainer still holds after it has released everything, as a
    sentence, or None."""
    found = usage(trainer.process.pid)
    over = [f"{found[k]} {k}, not {n}" for k, n in LEFT.items() if found and found[k] > n]
    if not over:
        return None
    return (f"trainer {trainer.number} on host {trainer.host} has released everything but still "
            "holds " + ", ".join(over))


def check_leftovers(lab, before):
    """Ends the daemons as an operator does, and checks that nothing of the run remains. before: the
    result of shared_memory() at the start."""
    for daemon in lab.daemons:
        daemon.process.terminate()
    for daemon in lab.daemons:
        status = daemon.ended()
        check(status == 0, f"{daemon.name} ends in order after SIGTERM, status {status}")
    paths = [path for d in lab.daemons for path in (d.admin, getattr(d, "socket", None)) if path]
    lab.daemons.clear()
    left = [p.name for p in paths if p.exists()]
    check(not left, "daemons remove their sockets when they end", " ".join(left))
    strange = [str(p.relative_to(lab.folder)) for p in lab.folder.rglob("*")
               if not expected(p, lab.folder)]
    check(not strange, "the run leaves only the expected files", " ".join(strange))
    left = sorted(shared_memory() - before)
    check(not left, "the run leaves nothing in /dev/shm", " ".join(left))
    left = processes_of(lab.folder)
    check(not left, "the run leaves no process", "; ".join(left))


def expected(path, folder):
    """Returns whether a file is expected: a log, the master's journal, or the admin socket of a
    killed master."""
    relative = path.relative_to(folder)
    if relative.parts[0] == "state":
        return relative == pathlib.Path("state") or path.name == "lock" or path.suffix == ".journal"
    return path.suffix in (".log", ".tsv", ".txt") or re.fullmatch(r"master-\d+\.admin", path.name)


def shared_memory():
    """Returns the names that could belong to the system under test."""
    return {name for name in os.listdir("/dev/shm") if re.search("pccl|ccoip", name)}


def processes_of(folder):
    """Returns processes with the run's environment, and zombies of this process."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (proc / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            environment = (proc / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(f"zombie {proc.name}")
        elif f"XDG_RUNTIME_DIR={folder}".encode() in environment:
            found.append(f"{(proc / 'comm').read_text('utf-8').strip()} {proc.name}")
    return found


def zombies_of(processes):
    """Returns which of these processes have zombies. processes: pid -> name"""
    found = collections.Counter()
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (proc / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) in processes:
            found[processes[int(fields[1])]] += 1
    return [f"{name} has zombies: {number}" for name, number in found.items()]
