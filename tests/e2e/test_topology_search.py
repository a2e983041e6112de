#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The search for better rings goes on after pcclOptimizeTopology has returned: what pcclctl topology
shows of it, when a better plan is put in force, and that it is dropped if the hosts change.

The hosts of a problem that needs seconds are too many for a test. So a library (late.c) lets the time
for the first answer be over after some steps of a small problem, and the search waits until the test
releases it. The rates of the problem come from a journal that the test has written."""

import os
import pathlib
import re
import struct
import time
import zlib

import lib
import wire
from lib import SUCCESS, check, ids_of, judge, together

LIBRARY = lib.BUILD / "tests/e2e/.libs/late.so"
LOOKS = 20  # at the clock until the first answer, which has fewer rings than the last one
REST = 0.05  # seconds without a step, after which a thread has nothing to do
G = 10**9
N_HOSTS = 6
# Even hosts reach each other fast, and so do odd hosts. The ring in the order of the hosts has only
# slow links between them. One ring can have SLOW, four rings together four times as much. All links
# that lead from even to odd hosts have BOUND together.
FAST, SLOW, SLOWEST = 1000 * G, 50 * G, 20 * G
BOUND = 6 * SLOW + 3 * SLOWEST
RINGS = 4
OPERATIONS = ("type=f32 op=sum count=1 place=in", "type=i32 op=max count=65537 place=out mem=send",
              "type=f32 op=sum count=300007 place=out")


def rate(a, b):
    if a % 2 == b % 2:
        return FAST
    return SLOWEST if b == (a + 1) % N_HOSTS else SLOW


def write_rates(path, ports):
    """Writes a journal with the rates of the links between all hosts (proto/journal.proto). ports:
    the ports for links of the hosts' agents."""
    def host(k):
        address = wire.data(1, bytes((127, 0, 0, 1))) + wire.number(2, ports[k])
        return (wire.data(1, os.urandom(16)) + wire.data(2, f"host-{k}") + wire.data(3, address)
                + wire.number(4, FAST) + wire.number(5, FAST)
                + wire.number(8, 100))  # confidence, %

    def link(a, b):
        return (wire.number(1, a) + wire.number(2, b) + wire.number(3, rate(a, b))
                + wire.number(4, 1000)  # round trip, us
                + wire.number(8, 100))  # confidence, %

    hosts = range(len(ports))
    record = (b"".join(wire.data(1, host(k)) for k in hosts)
              + b"".join(wire.data(2, link(a, b)) for a in hosts for b in hosts if a != b)
              + wire.number(3, int(time.time())))
    payload = wire.data(4, record)
    path.write_bytes(struct.pack("<8sII", b"PCCLJRNL", 2, 0)
                     + struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)


class Search(lib.Lab):
    """A run of N_HOSTS hosts, whose rates the master knows from its journal. The search of its
    optimizations waits after the first answer until release()."""

    def __init__(self, looks=LOOKS, options=()):
        super().__init__(N_HOSTS)
        self.looks, self.options = looks, options

    def __enter__(self):
        super().__enter__()
        self.hold = self.folder / "hold"
        self.hold.touch()
        state = self.folder / "state"
        state.mkdir(mode=0o700)
        ports = [lib.free_port() for _ in range(N_HOSTS)]
        write_rates(state / "rates.journal", ports)
        self.start_master(options=("--state-dir", state, "--benchmark-ms", "100", "--log-level", "debug",
                                   *self.options))
        for host, port in enumerate(ports):
            self.start_agent(host, options=("--p2p-port", port))
        self.run = [self.start_peer(host, host) for host in range(N_HOSTS)]
        lib.form_ring(self.run)
        return self

    def __exit__(self, *error):
        self.release()
        super().__exit__(*error)

    def spawn(self, name, host, args, env=None, **streams):
        if name == "master":
            env = {**(env or {}), "LD_PRELOAD": str(LIBRARY), "LATE_LOOKS": str(self.looks),
                   "LATE_HOLD": str(self.hold)}
        return super().spawn(name, host, args, env=env, **streams)

    def release(self):
        self.hold.unlink(missing_ok=True)

    # ---- what the master knows

    def plan(self):
        """Returns the row of pcclctl topology, with numbers in bit/s or None."""
        return lib.tables("--master", self.master, "topology")["plans"][0]

    def rings(self):
        """Returns the links of each ring as a set of pairs of hosts."""
        found = {}
        for row in lib.tables("--master", self.master, "topology")["rings"]:
            found.setdefault(row["ring"], set()).add((row["host"], row["next"]))
        return list(found.values())

    def await_end(self):
        lib.until(lambda: self.plan()["search"] != "running", "the search does not end")

    def await_idle(self):
        """Waits until the master's thread that searches has nothing to do. While it waits for
        release(), it wakes up every millisecond."""
        since = {}

        def rests():
            now = time.monotonic()
            texts = [(task / "status").read_text("ascii") for task in self.tasks()]
            key = tuple(re.findall(r"^State:.*|^voluntary_ctxt_switches:.*", "".join(texts), re.M))
            began = since.setdefault(key, now)
            return "(running)" not in str(key) and now - began > REST

        lib.until(rests, "the search does not end")

    def tasks(self):
        """Returns the threads of the master without its main thread."""
        folder = pathlib.Path(f"/proc/{self.master.pid}/task")
        return sorted(task for task in folder.iterdir() if task.name != str(self.master.pid))

    # ---- calls of all peers

    def all(self, call, what):
        answers = together(self.run, call)
        check(all(a["code"] == SUCCESS for a in answers), f"{what}: {call} succeeds", answers)

    def logs(self, call, what):
        """Makes all peers call. Returns the lines that the master has logged meanwhile."""
        begin = len(self.master.log_lines())
        self.all(call, what)
        return self.master.log_lines()[begin:]

    def reduce(self, what):
        wrong = None
        for tag, line in enumerate(OPERATIONS):
            for peer in self.run:
                peer.send(f"reduce {line} tag={tag} seed={tag} ids={ids_of(self.run)} "
                          f"verify={int(peer is self.run[tag % len(self.run)])}")
            wrong = wrong or judge([peer.read() for peer in self.run])
        check(not wrong, f"{what}: operations of all sizes are right", wrong)



def is_near(value, wanted):
    return value is not None and abs(value / wanted - 1) < 0.01


def has(lines, words):
    return any(words in line for line in lines)


def admit(lab, host):
    """Starts a peer, which the others admit with one topology vote."""
    newcomer = lab.start_peer(max(p.number for p in lab.run) + 1, host)
    newcomer.send("create", "connect")
    lib.until(lambda: all(a["pending"] for a in together(lab.run, "pending")), "no newcomer is pending")
    for answer in together(lab.run, "update"):
        if answer["code"] != SUCCESS:
            raise lib.Failed(f"the newcomer is not admitted: {answer}")
    if [newcomer.read()["code"] for _ in range(2)] != [SUCCESS, SUCCESS]:
        raise lib.Failed("the newcomer cannot connect")
    lab.run.append(newcomer)


def leave(lab):
    """Lets the last peer leave, and with it the last host."""
    lab.run.pop().expect("destroy")
    for answer in together(lab.run, f"until world={len(lab.run)}"):
        if answer["code"] != SUCCESS:
            raise lib.Failed(f"after a peer has left: {answer}")


# ------------------------------------------------------------------------------- scenes


def begun(lab):
    """Optimizes. The search goes on."""
    lines = lab.logs("optimize", "a search that goes on")
    row = lab.plan()
    check(has(lines, "looking for the best rings of 1 groups") and not has(lines, ": measuring "),
          "all rates are known, so nothing is measured", lines)
    check(row["search"] == "running" and row["better"] is None and is_near(row["bound"], FAST),
          "pcclctl topology shows that the search goes on", row)
    return row


def ended(lab):
    """Lets the search end with a better plan."""
    before = lab.plan()
    lab.release()
    lab.await_end()
    row = lab.plan()
    check(row["search"] == "ended" and is_near(row["better"], RINGS * SLOW),
          "pcclctl topology shows that the search has ended, and the rate of the better plan", row)
    check(is_near(row["bound"], BOUND) and row["gap_percent"] == f"{100 * (1 - row['predicted'] / BOUND):.1f}",
          "the bound and the gap follow the search", row)
    check(all(row[key] == before[key] for key in ("rings", "predicted")), "the plan in force stays", (before, row))


def check_best(lab, what, lines):
    """The better plan is in force."""
    row, rings = lab.plan(), lab.rings()
    check(row["rings"] == RINGS and is_near(row["predicted"], RINGS * SLOW) and row["better"] is None,
          f"{what}: the better plan is in force", row)
    check(len({frozenset(r) for r in rings}) == RINGS and all(len(r) == N_HOSTS for r in rings),
          f"{what}: all its rings have all hosts", rings)
    check(not has(lines, "looking for the best rings of 1 groups"), f"{what}: without another search", lines)
    lab.reduce(what)


def adopted_by(call):
    """A call puts the better plan in force: a topology vote without newcomers, or an optimization."""
    with Search() as lab:
        row = begun(lab)
        check(row["rings"] < RINGS and SLOWEST < row["predicted"] < RINGS * SLOW,
              "the first answer is better than the ring before, and worse than the best plan", row)
        lab.reduce("while the search goes on")
        lines = lab.logs("update", "while there is no better plan")
        check(not has(lines, ": round "), "a topology vote changes nothing", lines)
        ended(lab)
        check_best(lab, f"with {call}", lab.logs(call, "with a better plan"))
        lines = lab.logs(call, "again")
        check(not has(lines, ": round "), f"{call}: nothing changes any more", lines)
        lab.check_alive()


def nothing_at_first(algorithm, rings):
    """The first answer has no ring yet, although the links make rings. rings: of the best plan."""
    what, best = f"--algorithm {algorithm}", rings * SLOW
    with Search(looks=1, options=("--algorithm", algorithm)) as lab:
        before = lab.rings()
        lab.all("optimize", what)
        row = lab.plan()
        check(row["search"] == "running" and is_near(row["predicted"], SLOWEST) and lab.rings() == before,
              f"{what}: the ring stays, and the search for another one goes on", row)
        check(row["bound"] is None or is_near(row["bound"], FAST), f"{what}: no bound is shown before it is known", row)
        check(not has(lab.master.log_lines(), "make no ring"),
              f"{what}: the master does not claim that there is no ring", lab.master.log_lines())
        lab.release()
        lab.await_end()
        check(is_near(lab.plan()["better"], best), f"{what}: the search ends with a ring", lab.plan())
        lab.all("update", what)
        row = lab.plan()
        check(row["rings"] == rings and is_near(row["predicted"], best) and is_near(
            row["bound"], best if rings == 1 else BOUND), f"{what}: a topology vote puts it in force", row)
        lab.reduce(what)
        lab.check_alive()


def check_dropped(lab, what):
    row, before = lab.plan(), lab.rings()
    check(row["hosts"] == len({p.host for p in lab.run}) and row["better"] is None and row["search"] != "running",
          f"{what}: pcclctl topology shows no search and no better plan", row)
    lines = lab.logs("update", what)
    check(not has(lines, ": round ") and lab.rings() == before, f"{what}: a topology vote changes nothing", lines)
    lab.reduce(what)


def newcomer():
    """A better plan outlives a newcomer on one of its hosts."""
    with Search() as lab:
        begun(lab)
        ended(lab)
        admit(lab, 0)
        row = lab.plan()
        check(row["rings"] < RINGS and is_near(row["better"], RINGS * SLOW),
              "a newcomer on a host of the better plan: the plan is kept", row)
        check_best(lab, "after a newcomer", lab.logs("update", "with a newcomer"))
        lab.check_alive()


def join(lab):
    """A peer on a new host joins."""
    lab.start_agent(N_HOSTS)
    admit(lab, N_HOSTS)


def dropped(what, change, late):
    """The hosts change before or after the search has found a better plan. late: after that."""
    what = f"{what} {'after' if late else 'during'} the search"
    with Search() as lab:
        begun(lab)
        if late:
            ended(lab)
        change(lab)
        check_dropped(lab, what)
        if not late:
            begin = len(lab.master.log_lines())
            lab.release()
            lab.await_idle()
            lines = lab.master.log_lines()[begin:]
            check(not has(lines, "warning") and not has(lines, ": round "), f"{what}: its end changes nothing", lines)
            check_dropped(lab, f"{what}, which has ended")
        lines = lab.logs("optimize", what)
        check(has(lines, "looking for the best rings of 1 groups"),
              f"{what}: the next optimization looks for rings of the present hosts", lines)
        check(lab.plan()["predicted"] is not None, f"{what}: with success", lab.plan())
        lab.reduce(f"{what}, after an optimization")
        lab.check_alive()


def test():
    if lib.sanitized():
        raise lib.Skipped("a sanitizer has to be loaded before other libraries")
    adopted_by("update")
    adopted_by("optimize")
    nothing_at_first("auto", RINGS)
    nothing_at_first("ring", 1)
    newcomer()
    for what, change in (("a host has left", leave), ("a host has joined", join)):
        dropped(what, change, late=True)
        dropped(what, change, late=False)


lib.run(test, 120)
