# SPDX-License-Identifier: MIT
"""What the processes of the soak hold on to, and whether it becomes more.

Growth: at quiet points of the same load (one trainer per host, nothing away) every process that has
lived since an earlier one must hold what it held then. Operations and deaths of others lie between
them, in numbers that a leak per operation or per death exceeds what is allowed.

The end: when all trainers have left, daemons must hold what they held before the first one came; a
trainer that has given all back must hold what LEFT says; of the run no process, no zombie, no
socket and no file is left but those that must be.
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

# What may be more at a later quiet point. Agents keep a few regions for a few seconds, trainers map
# results until ten seconds after their last use. malloc keeps what the busiest moment took: masters
# that have just started hold 320 to 440 KiB, and up to 1000 when they have worked for minutes.
GROWTH = {"threads": 0, "descriptors": 8, "sockets": 2, "memfds": 8, "memfd mappings": 12,
          "mappings": 24, "heap KiB": 1024, "shared KiB": 8192, "addresses KiB": 16384}
GROWTH_OF_TRAINERS = {**GROWTH, "threads": 1, "memfd mappings": 48, "mappings": 60, "shared KiB": 24576,
                      "addresses KiB": 24576}
# Agents let malloc keep 32 MiB, but say what of the heap is in use.
GROWTH_OF_AGENTS = {**GROWTH, "addresses KiB": GROWTH["addresses KiB"] + 32768}
# A link that is made while the machine is too busy to answer within 5 ms is taken for a long one and
# has more streams. Of each the agent has a socket, and a buffer for a segment.
STREAM_KIB = 257
# Numbers of pcclctl status: they must be what they were.
COUNTED = {"pcclagentd": ("sessions", "peers", "runs", "links_in", "links_out"),
           "ccoip-masterd": ("agents", "connections", "accepted", "registered", "disconnected", "groups")}
# Of an idle daemon, compared with the time before the first trainer.
IDLE_SAME = ("threads", "descriptors", "sockets", "memfds", "memfd mappings")
IDLE_AGENT_ZERO = ("sessions", "peers", "runs", "ops", "memory", "links_in", "links_out")
IDLE_HEAP_KIB = 4096
# Of a trainer with nothing but the library's session: itself and the library's threads, of which one
# starts with the first operand that is copied for it.
LEFT = {"threads": 4, "descriptors": 5, "sockets": 2, "memfds": 0, "memfd mappings": 0}
SAMPLING, PAUSE = 2.0, 0.25  # seconds


def usage(pid):
    """What a process holds on to; None when it is gone."""
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
    """In KiB. Those that malloc has set aside for later are no mapping of anything."""
    ends = (re.match("([0-9a-f]+)-([0-9a-f]+) (?!---p)", line) for line in maps)
    return sum(int(m[2], 16) - int(m[1], 16) for m in ends if m) >> 10


def least(samples):
    return {key: min(s[key] for s in samples) for key in samples[0]}


def ctl_status(daemon):
    """The numbers of pcclctl status."""
    whom = "--agent" if "agent" in daemon.name else "--master"
    result = subprocess.run([lib.CTL, "--json", whom, daemon.admin, "status"], timeout=lib.WAIT,
                            stdout=subprocess.PIPE, check=False)
    if result.returncode != 0:
        raise lib.Failed(f"pcclctl status of {daemon.name} ends with {result.returncode}")
    row = json.loads(result.stdout)["status"][0]
    return {k: v for k, v in row.items() if isinstance(v, int)}


def held(daemon, numbers):
    """What an agent says of its heap, instead of what malloc keeps as well, and without its streams."""
    if "agent" not in daemon.name:
        return {}
    return {"heap KiB": (numbers["heap"] >> 10) - STREAM_KIB * numbers["streams"]}


def counted(daemon):
    """And the number of its streams."""
    numbers = ctl_status(daemon)
    return {**{f"{key} in pcclctl status": numbers[key]
               for key in COUNTED[daemon.name.split()[0]]}, **held(daemon, numbers)
            }, numbers.get("streams", 0)


class Growth:
    """Every process at every quiet point that it lives to see."""

    def __init__(self, folder):
        self.file = folder / "usage.tsv"  # every few seconds, to look at when something has grown
        self.points = {}  # (pid, name) -> [(done before it, usage)]
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
        """processes: pid -> name. done: what has been done so far, as a Counter."""
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
        """must: pid -> name, of those that have to have been looked at more than once."""
        for pid, name in must.items():
            check(len(self.points.get((pid, name), [])) > 1, f"{name} saw several quiet points")
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
            # What is freed is kept for a while.
            and not (key.endswith("KiB") and lib.sanitized())]


def told(done):
    return ", ".join(f"{number} {what}" for what, number in done.items())


# ---- the end


class Idle:
    """What daemons hold when there is nothing to do."""

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
        """Daemons close links and regions a moment after the last process has gone."""
        deadline = time.monotonic() + 12
        for daemon in daemons:
            while True:
                over = self.excess(daemon)
                if not over or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            check(not over, f"{daemon.name}, when all have left, holds "
                  + ("; ".join(over) if over else "no more than at first"))


def left_by(trainer):
    """What a trainer that has given everything back still holds, as a sentence, or None."""
    found = usage(trainer.process.pid)
    over = [f"{found[k]} {k}, not {n}" for k, n in LEFT.items() if found and found[k] > n]
    if not over:
        return None
    return (f"trainer {trainer.number} on host {trainer.host} has given everything back and holds "
            + ", ".join(over))


def check_leftovers(lab, before):
    """Ends the daemons as an operator does; nothing of the run may be left. before: shared_memory()
    at the start."""
    for daemon in lab.daemons:
        daemon.process.terminate()
    for daemon in lab.daemons:
        status = daemon.ended()
        check(status == 0, f"{daemon.name}, told to end, ends with status {status}")
    paths = [path for d in lab.daemons for path in (d.admin, getattr(d, "socket", None)) if path]
    lab.daemons.clear()
    left = [p.name for p in paths if p.exists()]
    check(not left, "daemons that ended leave no sockets", " ".join(left))
    strange = [str(p.relative_to(lab.folder)) for p in lab.folder.rglob("*")
               if not expected(p, lab.folder)]
    check(not strange, "the run leaves no strange files", " ".join(strange))
    left = sorted(shared_memory() - before)
    check(not left, "the run leaves nothing in /dev/shm", " ".join(left))
    left = processes_of(lab.folder)
    check(not left, "the run leaves no process", "; ".join(left))


def expected(path, folder):
    """Logs, the master's journal, and admin sockets of masters that were killed."""
    relative = path.relative_to(folder)
    if relative.parts[0] == "state":
        return relative == pathlib.Path("state") or path.name == "lock" or path.suffix == ".journal"
    return path.suffix in (".log", ".tsv", ".txt") or re.fullmatch(r"master-\d+\.admin", path.name)


def shared_memory():
    """Names that could be of the system under test."""
    return {name for name in os.listdir("/dev/shm") if re.search("pccl|ccoip", name)}


def processes_of(folder):
    """What runs with the run's environment, and children of ours that nobody has waited for."""
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
    """Those of these whose children have ended and are not waited for. processes: pid -> name"""
    found = collections.Counter()
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (proc / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) in processes:
            found[processes[int(fields[1])]] += 1
    return [f"{name} has zombies: {number}" for name, number in found.items()]
