#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An attacker in its own network namespace reaches the ports and is no member (attacker.py). No
result is wrong, no member loses its membership, and the memory and the logs of the daemons are
bounded."""

import contextlib
import threading
import time

import lib
from attack import Attack
from lib import Failed, check

TIMES = {"connections": 2000, "silence": 700, "garbage": 500, "knocks": 600, "noise_under_seal": 500,
         "agents": 40, "other_names": 20, "higher_terms": 20, "unread_joins": 25, "half_frames": 200,
         "much_to_say": 40, "long_messages": 20,
         "links": 500, "probes": 500, "newcomers": 2}
KEPT = {"ccoip-masterd": 110 << 10, "pcclagentd": 32 << 10}  # KiB by which a daemon may grow
# For the test in which several newcomers at a time spoil rounds, while the members vote in each
# step. No newcomer is admitted for 4 s after the second spoiled round, and for 8, 16 and 30 s after
# the next ones (SHUT_MIN_MS).
SPOILERS, VOTING = 3, 20  # attackers, seconds
SPOILT = 5  # rounds spoiled in that time, at most
LONG = 0.5  # seconds; only a call in a spoiled round takes so long
LOGGED, LOGGED_PER_S = 100 << 10, 8 << 10  # bytes of all logs, at most


class Work:
    """Peers that run operations and votes, as programs do, and check each result. No newcomer is
    admitted."""

    def __init__(self, peers):
        self.peers, self.count, self.wrong = peers, 0, None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.is_set() and not self.wrong:
                size = (1, 1009, 300001)[self.count % 3]
                self.wrong = lib.judge(lib.together(
                    self.peers, f"reduce type=f32 op=sum count={size} ids=0,1 tag={self.count % 2} "
                    f"seed={self.count} verify=1")) or self.vote()
                self.count += 1
        except Failed as error:
            self.wrong = str(error)

    def vote(self):
        for line in ("pending", "update"):
            answers = lib.together(self.peers, line)
            if any(a["code"] != lib.SUCCESS for a in answers):
                return answers
            if line == "pending" and not answers[0]["pending"]:
                return None
        return None if all(a["world"] == 2 for a in answers) else answers

    def end(self):
        self.stop.set()
        self.thread.join(lib.WAIT)


def attack(lab, work, name):
    before = work.count
    with Attack(lab, name, 2, TIMES[name]) as process:
        process.wait()
    lib.until(lambda: work.wrong or work.count > before + 3, "operations no longer end during the attack")
    check(not work.wrong, f"{name}: the members make {work.count - before} steps during {TIMES[name]} attempts",
          work.wrong)
    lab.check_alive()


def vote_each_step(lab, peers):
    """Only spoiled rounds make the members wait, and these are few."""
    def spoilt():
        return sum("did not report on connection round" in x for x in lab.master.log_lines())

    before, steps, slow, longest = spoilt(), 0, 0, 0
    with contextlib.ExitStack() as stack:
        for _ in range(SPOILERS):
            stack.enter_context(Attack(lab, "newcomers", 2))
        end = time.monotonic() + VOTING
        while time.monotonic() < end:
            for line in ("update", "reduce type=f32 op=sum count=1009 ids=0,1 tag=1 verify=1"):
                answers = lib.together(peers, line)
                if any(a["code"] != lib.SUCCESS for a in answers):
                    raise Failed(f"{line}: {answers}")
                took = max(a["end"] - a["begin"] for a in answers) / 1e9
                slow += took > LONG
                longest = max(longest, took)
            steps += 1
    rounds = spoilt() - before
    check(0 < rounds <= SPOILT, f"{steps} steps with a vote while there are {SPOILERS} attackers: {rounds} "
          f"rounds are spoiled, at most {SPOILT} are allowed", rounds)
    check(slow <= rounds, f"at most one call for each spoiled round takes longer than {LONG} s: "
          f"{slow} calls, the longest {longest:.1f} s", (slow, rounds))


def test():
    hosts = lib.make_namespaces(3)
    if not hosts:
        raise lib.Skipped("no network namespaces")
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master()
        for host in (0, 1):
            lab.start_agent(host)
        peers = lab.start_peers((0, 1), streams=2)
        status = lib.ask("--master", lab.master, "status")[0]
        began = time.monotonic()
        kept = [d.status("VmRSS") for d in lab.daemons]
        work = Work(peers)
        try:
            for name in TIMES:
                attack(lab, work, name)
                more = [d.status("VmRSS") - k for d, k in zip(lab.daemons, kept)]
                check(lib.sanitized() or all(m < KEPT[d.name.split()[0]]
                                             for m, d in zip(more, lab.daemons)),
                      f"{name}: the attack hardly raises the daemons' memory", f"{more} KiB")
            check(any("did not report on connection round" in line
                      for line in lab.master.log_lines()), "a round waited for an attacker's newcomer")
        finally:
            work.end()
        check(not work.wrong, f"{work.count} steps have right results in spite of all attacks", work.wrong)
        vote_each_step(lab, peers)
        after = lib.ask("--master", lab.master, "status")[0]
        check(all(after[k] == status[k] for k in ("accepted", "lost_members", "epoch")),
              "no member has lost its membership because of an attack", (status, after))
        logged = sum(d.log.stat().st_size for d in lab.daemons)
        seconds = time.monotonic() - began
        check(logged < LOGGED + LOGGED_PER_S * seconds,
              f"{logged} bytes of logs in {seconds:.0f} s are within the bound")


lib.run(test, 300)
