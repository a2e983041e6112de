#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how long each kind of failure stops the work of the other peers. bench/RESULTS.md keeps
the table.

usage: ./dev figures recovery [--events N] [--json FILE] [ROW...]

Three hosts, or four for pair-cut-4, are network namespaces (root). On every survivor, each result
is compared with the sum of exactly those peers that took part according to the call. Times are in
milliseconds; no test depends on them. An event is measured only if it came at the intended moment,
mostly in the middle of an operation. Events that came at another moment are only
counted. Events are repeated until enough of them were measured.
"""

import argparse
import json
import pathlib
import random
import re
import select
import signal
import subprocess
import time

import lib
from lib import SUCCESS, Failed, check, ids_of, judge

SIZE = "type=f32 op=sum count=4194304 place=in"  # 16 MiB
SMALL = "type=f32 op=sum count=1000 place=in"
MS = 1e6
WINDOW_NS = 3e9  # duration of steps with and without a newcomer
# for the row `unreachable`: the duration of a window, and the number of pairs of windows for each
# entry of WALLS
LONG_WINDOW_NS, PAIRS = 20e9, 8
TRIES = 4  # tries per measured event, on average


def now():
    return time.monotonic_ns()


class Row:
    """One kind of event. figures: lists of ns by name; seen: how often each text was seen."""

    def __init__(self, events):
        self.events, self.figures, self.shares, self.seen = events, {}, {}, {}
        self.measured = 0

    def each(self):
        """Yields the number of the event and how many events were measured before. Ends when enough
        events were measured. The row reports each event with hit() or miss()."""
        for k in range(TRIES * self.events):
            if self.measured == self.events:
                return
            yield k, self.measured
        if self.measured < self.events:
            raise Failed(f"only {self.measured} of {TRIES * self.events} events came at the "
                         f"intended moment: {self.seen}")

    def hit(self):
        self.measured += 1

    def miss(self, why):
        self.count(f"not measured: {why}")

    def add(self, figure, ns):
        self.figures.setdefault(figure, []).append(ns)

    def share(self, figure, value):
        self.shares.setdefault(figure, []).append(value)

    def count(self, what, n=1):
        self.seen[what] = self.seen.get(what, 0) + n

    def summary(self):
        def of(values):
            v = sorted(values)
            return {"n": len(v), "median": v[len(v) // 2] / MS, "max": v[-1] / MS}
        shares = {k: {"n": len(v), "median": sorted(v)[len(v) // 2], "min": min(v)}
                  for k, v in self.shares.items()}
        return {"figures": {k: of(v) for k, v in self.figures.items()}, "shares": shares,
                "seen": self.seen}


def told(text):
    """Returns the text with the names of peers and the numbers replaced, so that equal errors are
    counted together."""
    text = re.sub(r"peer@\S+ pid \d+|peer [0-9a-f]{8}\b", "a peer", text)
    return re.sub(r"\b(host-)?\d+(\.\d+)?( s)?\b", "N", text)


def good(answers, what="an operation"):
    wrong = judge(answers)
    if wrong or len({a["world"] for a in answers}) != 1:
        raise Failed(f"{what}: {wrong}: {answers}")
    return answers


def form(lab, places, streams=2, how=lib.form_run):
    peers = lab.start_peers(places, streams=streams, form=how)
    good(lib.together(peers, f"reduce {SIZE} tag=1 ids={ids_of(peers)} verify=1"))
    return peers


def join(row, lab, survivors, number, host):
    """Starts a peer that joins at the next vote or at a later one. A host whose cable was out may
    find no path to another host for a moment."""
    lib.together(survivors, f"until world={len(survivors)}")  # the survivors may not know of the loss yet
    newcomer = lab.start_peer(number, host)
    newcomer.send("create streams=2", "connect")
    n = len(survivors) + 1
    for peer in survivors:
        peer.send(f"until world={n}")
    newcomer.read()
    answer = newcomer.read()
    for _ in range(3):
        if answer["code"] in (lib.RANK_CONNECTION_FAILED, lib.MASTER_CONNECTION_FAILED):
            row.count(f"the newcomer connects again: {told(answer['text'])}")
            answer = newcomer.call("connect")
    for answer in (answer, *(p.read() for p in survivors)):
        if answer["code"] != SUCCESS or answer.get("world", n) != n:
            raise Failed(f"a newcomer was not admitted: {answer}")
    return newcomer


def retried(row, peers, began):
    """Reads the answers of peers that repeat a call until it succeeds. began: the time of the
    failure. The event does not count if no peer got an error."""
    answers = good([p.read() for p in peers])
    if not any(a["losses"] for a in answers):
        over = max(a["end"] for a in answers) <= began
        row.miss("the operation ended before the event" if over else
                 "the operation succeeded in spite of the event")
        return
    row.hit()
    for a in answers:
        if a["losses"]:
            row.add("error", a["first_loss"] - began)
        row.count(f"errors per call: {a['losses']}")
    row.add("next success", max(a["end"] for a in answers) - began)


def moment(row, peers, rng):
    """Runs two operations of SIZE: the first opens connections, the second is measured. Returns a
    random time in seconds after ask(), at which such an operation is probably running."""
    good(lib.together(peers, f"reduce {SIZE} tag=1 ids={ids_of(peers)}"))
    sent = now()
    normal = good(lib.together(peers, f"reduce {SIZE} tag=1 ids={ids_of(peers)}"))
    begin, end = min(a["begin"] for a in normal), max(a["end"] for a in normal)
    row.add("normal operation", end - begin)
    return (begin + rng.uniform(0.1, 0.9) * (end - begin) - sent) / 1e9


def ask(peers, everybody, survivors, line=SIZE):
    for peer in peers:
        peer.send(f"reduce {line} tag=1 retry=9 hurry=1 ids={ids_of(everybody)} "
                  f"or={ids_of(survivors)} verify=1")


def trainer_killed(row, hosts):
    rng = random.Random(1)
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k, _ in row.each():
            survivors, victim = peers[:2], peers[2]
            pause = moment(row, peers, rng)
            ask(peers, peers, survivors)
            time.sleep(pause)
            began = now()
            victim.kill()
            retried(row, survivors, began)
            lab.drop_peer(victim)
            peers[2] = join(row, lab, survivors, 10 + k, k % 3)
        lab.check_alive()


def trainer_stopped(row, hosts):
    bound_ms = 1000
    with lib.Lab(3, hosts) as lab:
        lab.start(agent_options=["--stopped-timeout-ms", bound_ms])
        peers = form(lab, (0, 1, 2))
        for k in range(row.events):
            survivors, victim = peers[:2], peers[2]
            ask(survivors, peers, survivors)
            began = now()
            victim.process.send_signal(signal.SIGSTOP)
            agent = lab.agents[victim.host]
            while True:
                said = subprocess.run([lib.CTL, "--json", "--agent", agent.admin, "peers"], text=True,
                                      capture_output=True, timeout=10, check=False).stdout
                if re.search(r'"stopped": *[1-9]', said):
                    row.add("named by pcclctl", now() - began)
                    break
                if now() - began > 5e9:
                    raise Failed(f"pcclctl does not name the stopped peer: {said}")
            answers = good([p.read() for p in survivors])
            row.add(f"error, after the bound of {bound_ms} ms",
                    max(a["first_loss"] for a in answers) - began - int(bound_ms * MS))
            victim.process.send_signal(signal.SIGCONT)
            answer = victim.call(f"reduce {SMALL} tag=1")
            row.count(f"the stopped peer gets: {answer['code']} {answer['text']}")
            victim.send("connect")
            n = len(peers)
            lib.together(survivors, f"until world={n}")
            if victim.read()["code"] != SUCCESS:
                raise Failed("the peer that was stopped cannot connect again")
        lab.check_alive()


def agent_killed(row, hosts):
    rng = random.Random(2)
    with lib.Lab(3, hosts) as lab:
        paths = {h: {"path": lab.folder / f"{h}.sock", "admin": lab.folder / f"{h}.admin"}
                 for h in range(3)}
        lab.start_master()
        for host in range(3):
            lab.start_agent(host, **paths[host])
        peers = form(lab, (0, 1, 2))
        for _, m in row.each():
            host = m % 3
            pause = moment(row, peers, rng)
            ask(peers, peers, peers)
            time.sleep(pause)
            killed = now()
            lab.drop(lab.agents[host])
            time.sleep(0.1)
            lab.start_agent(host, **paths[host])
            restarted = now()
            answers = good([p.read() for p in peers])
            ask(peers, peers, peers, SMALL)
            more = good([p.read() for p in peers])
            end = max(a["end"] for a in answers)
            if end <= restarted:
                row.miss("the operation ended before the kill" if end <= killed else
                         "the operation ended between the kill and the restart")
                continue
            row.hit()
            for a, b in zip(answers, more):
                row.count(f"errors per call: {a['losses']}")
                row.count(f"errors of the next call: {b['losses']}")
            row.add("next success after the kill", end - killed)
            row.add("next success after the restart", end - restarted)
        lab.check_alive()


def host_vanished(row, hosts):
    rng = random.Random(5)
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k, m in row.each():
            survivors, victim = peers[:2], peers[2]
            if m % 2:
                pause = moment(row, peers, rng)
                ask(peers, peers, survivors)
                time.sleep(pause)
            else:  # the operation cannot end without the victim
                ask(survivors, peers, survivors)
            began = now()
            hosts.link(victim.host, False)
            retried(row, survivors, began)
            hosts.link(victim.host, True)
            lab.drop_peer(victim)
            peers[2] = join(row, lab, survivors, 10 + k, 2)
        lab.check_alive()


def master_killed(row, hosts):
    rng = random.Random(3)
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k, _ in row.each():
            if k % 2:  # an operation is under way, or starts while there is no master
                pause = moment(row, peers, rng)
                ask(peers, peers, peers)
                time.sleep(pause)
            lab.drop(lab.master)
            if not k % 2:
                ask(peers, peers, peers)
            time.sleep(0.2)
            lab.start_master(port=lab.master.port)
            restarted = now()
            first = good([p.read() for p in peers])
            ask(peers, peers, peers, SMALL)
            answers = good([p.read() for p in peers])
            for a in (*first, *answers):
                row.count(f"errors per call: {a['losses']}")
            end = max(a["end"] for a in first)
            if end <= restarted:
                row.miss("the operation ended before the restart")
                continue
            row.hit()
            row.add("next success after the restart", end - restarted)
        lab.check_alive()


def master_host_cut(row, hosts):
    """The master is alone on its host, whose cable is out for a while. No peer loses its
    membership."""
    with lib.Lab(3, hosts) as lab:
        lab.start_master()
        for host in (1, 2):
            lab.start_agent(host)
        peers = form(lab, (1, 2))
        for _, m in row.each():
            hosts.link(0, False)
            ask(peers, peers, peers)
            time.sleep((2, 3, 4)[m % 3])
            hosts.link(0, True)
            back = now()
            answers = good([p.read() for p in peers])
            end = max(a["end"] for a in answers)
            if end <= back:
                row.miss("the operation ended before the cable was back")
                continue
            row.hit()
            for a in answers:
                row.count(f"errors per call: {a['losses']}")
            row.add("next success after the cable is back", end - back)
        lab.check_alive()


def master_gone(row, hosts):
    """The agents abandon the run after the lease. The next master has another port. In every second
    event pcclctl gives the new address to the agents; in the others the peers create communicators
    for it."""
    lease_ms = 1000
    with lib.Lab(3, hosts) as lab:
        lab.start(agent_options=["--master-lease-ms", lease_ms])
        peers = form(lab, (0, 1, 2))
        name = lab.master.address  # the address that the communicators use
        for k in range(row.events):
            began = now()
            lab.drop(lab.master)
            for a in lib.together(peers, f"reduce {SMALL} tag=1"):
                row.count(f"code {a['code']}")
                row.add(f"error, after the lease of {lease_ms} ms",
                        a["end"] - began - int(lease_ms * MS))
            lab.start_master()
            started = now()
            words = ["connect", f"until world={len(peers)}"]
            if k % 2:
                for agent in lab.agents.values():
                    subprocess.run([lib.CTL, "--agent", agent.admin, "agent", "set-master", name,
                                    lab.master.address], timeout=10, check=True)
            else:
                name = lab.master.address
                words = ["destroy", f"create streams=2 master={name}", *words]
            for peer in peers:
                peer.send(*words)
            for answer in [p.read() for p in peers for _ in words]:
                if answer["code"] != SUCCESS:
                    raise Failed(f"a new master at another port: {answer}")
            answers = good(lib.together(
                peers, f"reduce {SIZE} tag=1 ids={ids_of(peers)} verify=1"))
            row.add("next success after the new master's start, checks of the result included",
                    max(a["end"] for a in answers) - started)
        lab.check_alive()


def newcomer(row, hosts):
    """The members reduce all the time and vote between two operations."""
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1))
        for k in range(row.events):
            fresh = lab.start_peer(10 + k, 2)
            fresh.send("create streams=2", "connect")
            fresh.read()
            while True:
                good(lib.together(peers, f"reduce {SMALL} tag=1 ids={ids_of(peers)} verify=1"))
                row.count("operations meanwhile")
                if all(a["pending"] for a in lib.together(peers, "pending")):
                    break
            voted = now()
            answers = lib.together(peers, "update")
            joined = fresh.read()
            if joined["code"] != SUCCESS or any(a["world"] != 3 for a in answers):
                raise Failed(f"a newcomer was not admitted: {joined} {answers}")
            row.add("from the vote to the newcomer's and all others' return",
                    max(joined["end"], *(a["end"] for a in answers)) - voted)
            everybody = [*peers, fresh]
            good(lib.together(everybody, f"reduce {SMALL} tag=1 ids={ids_of(everybody)} verify=1"))
            fresh.expect("destroy")
            lab.drop_peer(fresh)
            # the survivors get one error after the newcomer has left
            for peer in peers:
                peer.send(f"until world={len(peers)}")
            for peer in peers:
                peer.read()
        lab.check_alive()


WALLS = {  # the ways in which the newcomer's host 2 and host 1 are separated
    "dropped in both directions": lambda hosts, on, _: cut(hosts, (1, 2), on),
    "dropped in one direction": lambda hosts, on, way: hosts.deafen(*way, on),
    "rejected": lambda hosts, on, _: [hosts.reject(*way, on) for way in ((1, 2), (2, 1))],
}


class Unreachable:
    """A peer that repeats pcclConnect 0.2 s after each failure."""

    def __init__(self, peer):
        self.peer, self.waits, self.next = peer, False, 0
        peer.expect("create streams=2")

    def look(self, row, how, again):
        """Reads an answer if there is one, and connects again if `again` allows it."""
        if self.waits and select.select([self.peer.process.stdout], [], [], 0)[0]:
            answer = self.peer.read()
            if answer["code"] == SUCCESS:
                raise Failed(f"{how}: a newcomer that reaches no member of host 1 was admitted")
            row.count(f"{how}: newcomer: code {answer['code']}")
            self.waits, self.next = False, now() + 0.2e9
        if again and not self.waits and now() > self.next:
            self.peer.send("connect")
            self.waits = True


def firewalled(row, hosts, window_ns=WINDOW_NS, pairs=0):
    """Hosts 1 and 2 reach the master and host 0, but not each other. In each step, the two members
    vote if a newcomer is waiting, and then reduce. One window of steps has a newcomer on host 2, and
    the other window has none."""
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1))

        def step():
            if lib.together(peers, "pending")[0]["pending"]:
                row.count(f"{how}: votes")
                lib.together(peers, f"until world={len(peers)}")
            good(lib.together(peers, f"reduce {SMALL} tag=1 ids={ids_of(peers)} verify=1"))

        def window(there):
            began, n = now(), 0
            while now() - began < window_ns:
                fresh.look(row, how, there)
                step()
                n += 1
            took = (now() - began) / n
            while fresh.waits:  # the last answer belongs to no window
                step()
                fresh.look(row, how, False)
            return took

        for k in range(pairs or row.events):
            how, wall = list(WALLS.items())[k % 3]
            way = ((1, 2), (2, 1))[k // 3 % 2]
            wall(hosts, True, way)
            fresh = Unreachable(lab.start_peer(10 + k, 2))
            times = {there: window(there) for there in ((False, True), (True, False))[k % 2]}
            row.add(f"{how}: a step without the newcomer", times[False])
            row.add(f"{how}: a step with the newcomer", times[True])
            row.share(f"{how}: steps per second with the newcomer, as a share of those without it",
                      times[False] / times[True])
            wall(hosts, False, way)
            lab.drop_peer(fresh.peer)
        lab.check_alive()


def unreachable(row, hosts):
    """Does the same as firewalled(), for so long that differences of a few per cent are visible.
    Ignores --events."""
    firewalled(row, hosts, LONG_WINDOW_NS, PAIRS * len(WALLS))


def cut(hosts, pair, off):
    for host, other in (pair, pair[::-1]):
        hosts.deafen(host, other, off)


def pair_cut(row, hosts):
    """The path between two neighbours is cut, during an operation or just before it. Both hosts
    still reach the master. With three hosts no ring is possible without this pair, so one host is
    evicted."""
    rng = random.Random(4)
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = form(lab, range(hosts.n_hosts), how=lib.form_ring)
        for k, m in row.each():
            pair = peers[1].host, peers[2].host
            survivors = []  # unknown before the event
            pause = moment(row, peers, rng)
            if m % 2:
                ask(peers, survivors, survivors)
                time.sleep(pause)
            began = now()
            cut(hosts, pair, True)
            if not m % 2:
                ask(peers, survivors, survivors)
            answers = [p.read() for p in peers]
            gone = [p for p, a in zip(peers, answers) if a["code"] != SUCCESS]
            survivors = [p for p in peers if p not in gone]
            good([a for a in answers if a["code"] == SUCCESS])
            if any(a["losses"] or a["code"] != SUCCESS for a in answers):
                row.hit()
                pair_cut_figures(row, answers, began)
                row.count(f"evicted: {len(gone)}")
            else:
                over = max(a["end"] for a in answers) <= began
                row.miss("the operation "
                         f"{'ended before' if over else 'succeeded in spite of'} the event")
            cut(hosts, pair, False)
            goes = gone[0] if gone else peers[1]
            lab.drop_peer(goes)
            survivors = [p for p in peers if p is not goes]
            peers = [*survivors, join(row, lab, survivors, 10 + k, goes.host)]
        lab.check_alive()


def pair_cut_figures(row, answers, began):
    ends = []
    for a in answers:
        if a["code"] != SUCCESS:
            row.add("error of the evicted peer", a["first_loss"] - began)
        else:
            ends.append(a["end"])
            row.count(f"errors per call: {a['losses']}")
    if ends:
        row.add("next success", max(ends) - began)


ALIKE = "type=f32 op=sum count=1000"
DISSENT = {  # the call of the peer that disagrees
    "count": "type=f32 op=sum count=1001",
    "data type": "type=i32 op=sum count=1000",
    "operator": "type=f32 op=max count=1000",
}


def disagreement(row, hosts):
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k in range(row.events):
            kind, otherwise = list(DISSENT.items())[k % 3]
            began = now()
            for n, peer in enumerate(peers):
                peer.send(f"reduce {otherwise if n == k // 3 % 3 else ALIKE} place=in tag=1")
            answers = [p.read() for p in peers]
            for a in answers:
                if (a["code"] != lib.INVALID_ARGUMENT or a["check"] != "ok"
                        or f"disagree on tag 1: {kind} is" not in a["text"]):
                    raise Failed(f"the peers disagree on the {kind}, but the answer is: {a}")
            row.count(f"{kind}: {told(answers[0]['text'])}")
            row.add(f"another {kind}: everybody's return", max(a["end"] for a in answers) - began)
            # every peer is still a member
            good(lib.together(peers, f"reduce {SMALL} tag=1 ids={ids_of(peers)} verify=1"))
        lab.check_alive()


ROWS = {
    "trainer-killed": trainer_killed,
    "trainer-stopped": trainer_stopped,
    "agent-killed": agent_killed,
    "host-vanished": host_vanished,
    "master-killed": master_killed,
    "master-gone": master_gone,
    "master-host-cut": master_host_cut,
    "newcomer": newcomer,
    "firewalled": firewalled,
    "unreachable": unreachable,
    "pair-cut": pair_cut,
    "pair-cut-4": pair_cut,
    "disagreement": disagreement,
}


def show(name, summary):
    print(f"# {name}")
    for figure, f in summary["figures"].items():
        print(f"#   {figure}: median {f['median']:.1f} ms, max {f['max']:.1f} ms ({f['n']})")
    for figure, f in summary["shares"].items():
        print(f"#   {figure}: median {f['median']:.3f}, min {f['min']:.3f} ({f['n']})")
    for what, n in sorted(summary["seen"].items(), key=lambda x: -x[1])[:12]:
        print(f"#   {n} x {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=50, help="events of each row")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    parser.add_argument("rows", nargs="*", metavar="ROW",
                        help=f"some of {', '.join(ROWS)}; default: all")
    args = parser.parse_args()
    found = {}

    def test():
        for name in args.rows or ROWS:
            hosts = lib.make_namespaces(4 if name == "pair-cut-4" else 3)
            if not hosts:
                raise lib.Skipped("no network namespaces")
            row = Row(args.events)
            try:
                ROWS[name](row, hosts)
                check(True, f"{name}: {args.events} events")
            except Failed as error:
                check(False, f"{name}: {error}")
            found[name] = row.summary()
            show(name, found[name])
        if args.json:
            args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")

    lib.run(test, 7200)


main()
