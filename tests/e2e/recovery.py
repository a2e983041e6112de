#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long each kind of failure keeps the others from their work; bench/RESULTS.md keeps the table.

usage: abs_top_builddir=BUILD tests/e2e/recovery.py [--events N] [--json FILE] [ROW...]

Three hosts, four for pair-cut-4, are network namespaces (root). Every result is compared with the sum
of exactly those who the call says took part, on every survivor. Times are in milliseconds; nothing
is judged by them.
"""

import argparse
import json
import pathlib
import random
import re
import signal
import subprocess
import time

import lib
from lib import SUCCESS, Failed, check, ids_of, judge

SIZE = "type=f32 op=sum count=4194304 place=in"  # 16 MiB
SMALL = "type=f32 op=sum count=1000 place=in"
MS = 1e6


def now():
    return time.monotonic_ns()


class Row:
    """One kind of event: figures by name, each a list of ns, and how often what was seen."""

    def __init__(self, events):
        self.events, self.figures, self.seen = events, {}, {}

    def add(self, figure, ns):
        self.figures.setdefault(figure, []).append(ns)

    def count(self, what, n=1):
        self.seen[what] = self.seen.get(what, 0) + n

    def summary(self):
        def of(values):
            v = sorted(values)
            return {"n": len(v), "median": v[len(v) // 2] / MS, "max": v[-1] / MS}
        return {"figures": {k: of(v) for k, v in self.figures.items()}, "seen": self.seen}


def good(answers, what="an operation"):
    wrong = judge(answers)
    if wrong or len({a["world"] for a in answers}) != 1:
        raise Failed(f"{what}: {wrong}: {answers}")
    return answers


def form(lab, places, streams=2, how=lib.form_run):
    peers = lab.start_peers(places, streams=streams, form=how)
    good(lib.together(peers, f"reduce {SIZE} tag=1 ids={ids_of(peers)} verify=1"))
    return peers


def join(lab, survivors, number, host):
    """A new peer, taken in at the next vote."""
    lib.together(survivors, f"until world={len(survivors)}")  # the loss may be news to them
    newcomer = lab.start_peer(number, host)
    newcomer.send("create streams=2", "connect")
    n = len(survivors) + 1
    for answer in lib.together(survivors, f"until world={n}"):
        if answer["code"] != SUCCESS or answer["world"] != n:
            raise Failed(f"a newcomer: {answer}")
    for _ in range(2):
        if newcomer.read()["code"] != SUCCESS:
            raise Failed("the newcomer cannot connect")
    return newcomer


def retried(row, peers, began):
    """All of peers repeat the call until it succeeds; began: when it went wrong."""
    answers = good([p.read() for p in peers])
    for a in answers:
        if a["losses"]:
            row.add("error", a["first_loss"] - began)
        row.count(f"errors per call: {a['losses']}")
    row.add("next success", max(a["end"] for a in answers) - began)
    return answers


def moment(row, peers, rng):
    """Seconds from ask() until SIZE is under way, as it was just now; counts it as normal."""
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
        for k in range(row.events):
            survivors, victim = peers[:2], peers[2]
            pause = moment(row, peers, rng)
            ask(peers, peers, survivors)
            time.sleep(pause)
            began = now()
            victim.kill()
            retried(row, survivors, began)
            lab.drop_peer(victim)
            peers[2] = join(lab, survivors, 10 + k, k % 3)
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
                    raise Failed(f"pcclctl does not name who is stopped: {said}")
            answers = good([p.read() for p in survivors])
            row.add(f"error, after the bound of {bound_ms} ms",
                    max(a["first_loss"] for a in answers) - began - int(bound_ms * MS))
            victim.process.send_signal(signal.SIGCONT)
            answer = victim.call(f"reduce {SMALL} tag=1")
            row.count(f"it hears: {answer['code']} {answer['text']}")
            victim.send("connect")
            n = len(peers)
            lib.together(survivors, f"until world={n}")
            if victim.read()["code"] != SUCCESS:
                raise Failed("who was stopped cannot connect anew")
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
        for k in range(row.events):
            host = k % 3
            pause = moment(row, peers, rng)
            ask(peers, peers, peers)
            time.sleep(pause)
            killed = now()
            lab.drop(lab.agents[host])
            time.sleep(0.1)
            lab.start_agent(host, **paths[host])
            restarted = now()
            answers = good([p.read() for p in peers])
            for a in answers:
                row.count(f"errors per call: {a['losses']}")
            ask(peers, peers, peers, SMALL)
            more = good([p.read() for p in peers])
            for a in more:
                row.count(f"errors of the call after: {a['losses']}")
            end = max(a["end"] for a in answers)
            if end > killed:  # else it was over when the agent was killed
                row.add("next success after the kill", end - killed)
                row.add("next success after the restart", max(0, end - restarted))
        lab.check_alive()


def host_vanished(row, hosts):
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k in range(row.events):
            survivors, victim = peers[:2], peers[2]
            # without the victim it cannot end; half of the times it is under way
            ask(peers if k % 2 else survivors, peers, survivors)
            began = now()
            hosts.link(victim.host, False)
            retried(row, survivors, began)
            hosts.link(victim.host, True)
            lab.drop_peer(victim)
            peers[2] = join(lab, survivors, 10 + k, 2)
        lab.check_alive()


def master_killed(row, hosts):
    rng = random.Random(3)
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k in range(row.events):
            if k % 2:  # an operation is under way, or is begun while nobody steers
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
            row.add("next success after the restart",
                    max(0, max(a["end"] for a in first) - restarted))
        lab.check_alive()


def master_gone(row, hosts):
    """Until the run is given up. The next one is at another port: every other time the agents are
    told, else the peers make communicators for its address."""
    grace_ms = 1000
    with lib.Lab(3, hosts) as lab:
        lab.start(agent_options=["--master-grace-ms", grace_ms])
        peers = form(lab, (0, 1, 2))
        name = lab.master.address  # as the communicators say
        for k in range(row.events):
            began = now()
            lab.drop(lab.master)
            for a in lib.together(peers, f"reduce {SMALL} tag=1"):
                row.count(f"code {a['code']}")
                row.add(f"error, after the grace time of {grace_ms} ms",
                        a["end"] - began - int(grace_ms * MS))
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
            row.add("next success after the new master's start, with a look at the result",
                    max(a["end"] for a in answers) - started)
        lab.check_alive()


def newcomer(row, hosts):
    """The others reduce all the time and vote between two operations."""
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
                raise Failed(f"a newcomer: {joined} {answers}")
            row.add("from the vote to the newcomer's and all others' return",
                    max(joined["end"], *(a["end"] for a in answers)) - voted)
            everybody = [*peers, fresh]
            good(lib.together(everybody, f"reduce {SMALL} tag=1 ids={ids_of(everybody)} verify=1"))
            fresh.expect("destroy")
            lab.drop_peer(fresh)
            # the survivors are told once that somebody has left
            for peer in peers:
                peer.send(f"until world={len(peers)}")
            for peer in peers:
                peer.read()
        lab.check_alive()


def firewalled(row, hosts):
    """Hosts 1 and 2 reach the master and host 0, but not each other."""
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1))
        for k in range(row.events):
            hosts.deafen(2, 1, True)
            hosts.deafen(1, 2, True)
            fresh = lab.start_peer(10 + k, 2)
            fresh.send("create streams=2", "connect")
            fresh.read()
            while not all(a["pending"] for a in lib.together(peers, "pending")):
                pass
            voted = now()
            answers = lib.together(peers, "update")
            joined = fresh.read()
            row.add("from the vote to everybody's return",
                    max(joined["end"], *(a["end"] for a in answers)) - voted)
            row.count(f"newcomer: code {joined['code']}, the others: world {answers[0]['world']}, "
                      f"{'/'.join(str(a['code']) for a in answers)}")
            hosts.deafen(2, 1, False)
            hosts.deafen(1, 2, False)
            fresh.send("destroy")
            fresh.read()
            lab.drop_peer(fresh)
            lib.together(peers, f"until world={len(peers)}")
            good(lib.together(peers, f"reduce {SMALL} tag=1 retry=2 ids={ids_of(peers)} verify=1"))
        lab.check_alive()


def cut(hosts, pair, off):
    for host, other in (pair, pair[::-1]):
        hosts.deafen(host, other, off)


def pair_cut(row, hosts):
    """Two neighbours hear nothing of each other any more, amid an operation or just before it; both
    hear the master. Three hosts have no ring without the two: somebody has to go."""
    rng = random.Random(4)
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        peers = form(lab, range(hosts.n_hosts), how=lib.form_ring)
        for k in range(row.events):
            pair = peers[1].host, peers[2].host
            survivors = []  # whoever it will be
            pause = moment(row, peers, rng)
            if k % 2:
                ask(peers, survivors, survivors)
                time.sleep(pause)
            began = now()
            cut(hosts, pair, True)
            if not k % 2:
                ask(peers, survivors, survivors)
            answers = [p.read() for p in peers]
            gone = [p for p, a in zip(peers, answers) if a["code"] != SUCCESS]
            survivors = [p for p in peers if p not in gone]
            good([a for a in answers if a["code"] == SUCCESS])
            for a in answers:
                if a["code"] != SUCCESS:
                    row.add("error of who has to go", a["first_loss"] - began)
                elif a["end"] > began:
                    row.add("next success", a["end"] - began)
                    row.count(f"errors per call: {a['losses']}")
            row.count(f"have to go: {len(gone)}")
            cut(hosts, pair, False)
            goes = gone[0] if gone else peers[1]
            lab.drop_peer(goes)
            survivors = [p for p in peers if p is not goes]
            peers = [*survivors, join(lab, survivors, 10 + k, goes.host)]
        lab.check_alive()


def disagreement(row, hosts):
    with lib.Lab(3, hosts) as lab:
        lab.start()
        peers = form(lab, (0, 1, 2))
        for k in range(row.events):
            lines = [f"reduce type=f32 op=sum count={1000 + (n == k % 3)} place=in tag=1"
                     for n in range(3)]
            began = now()
            for peer, line in zip(peers, lines):
                peer.send(line)
            answers = [p.read() for p in peers]
            for a in answers:
                row.count(f"code {a['code']}, buffers {a['check']}")
            row.count(answers[0]["text"])
            row.add("everybody's return", max(a["end"] for a in answers) - began)
            good(lib.together(peers, f"reduce {SMALL} tag=1 ids={ids_of(peers)} verify=1"))
        lab.check_alive()


ROWS = {
    "trainer-killed": trainer_killed,
    "trainer-stopped": trainer_stopped,
    "agent-killed": agent_killed,
    "host-vanished": host_vanished,
    "master-killed": master_killed,
    "master-gone": master_gone,
    "newcomer": newcomer,
    "firewalled": firewalled,
    "pair-cut": pair_cut,
    "pair-cut-4": pair_cut,
    "disagreement": disagreement,
}


def show(name, summary):
    print(f"# {name}")
    for figure, f in summary["figures"].items():
        print(f"#   {figure}: median {f['median']:.1f} ms, max {f['max']:.1f} ms ({f['n']})")
    for what, n in sorted(summary["seen"].items(), key=lambda x: -x[1])[:6]:
        print(f"#   {n} x {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=50, help="of each row")
    parser.add_argument("--json", type=pathlib.Path, help="the figures go there, too")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; default: all")
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

    lib.run(test, 3600)


main()
