#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Peers, agents and masters that are killed in the middle of operations: the others are told soon
and all alike, find their buffers as they were, and go on."""

import random
import signal
import time

import lib
from lib import RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge

KILLS = 100
BOUND_NS = 2 * 10**9  # for a busy machine; the aim is 200 ms
SURVIVOR_HOSTS = (0, 1)
HOSTS = 3  # so that a victim is alone on its host now and then
OPERATIONS = (
    "type=f32 op=sum count=1 place=in",
    "type=bf16 op=avg count=1009 place=out mem=shared",
    "type=f64 op=sum count=131072 place=out",
    "type=f32 op=sum count=2000003 place=in mem=shared",
    "type=i32 op=max count=700001 place=out mem=send",
    "type=f32 op=avg count=4194304 place=out",
)


class Toll:
    """What has been seen in all kills."""

    def __init__(self):
        self.latency = []  # ns from the kill to a survivor's return with the error
        self.lost = self.unharmed = self.repeats = 0


def duration(peers, line):
    """How long an operation takes here when nobody dies, s."""
    began = time.monotonic()
    wrong = judge(lib.together(peers, line))
    if wrong:
        raise lib.Failed(f"{line}: {wrong}")
    return time.monotonic() - began


def add_victim(lab, survivors, number, host):
    victim = lab.start_peer(number, host)
    victim.send("create streams=2", "connect")
    for peer in survivors:
        peer.send(f"until world={len(survivors) + 1}")
    for peer, n in [*((p, 1) for p in survivors), (victim, 2)]:
        for _ in range(n):
            answer = peer.read()
            if answer["code"] != SUCCESS:
                raise lib.Failed(f"peer {peer.number}: {answer}")
    return victim


def take_toll(toll, killed_at, answers):
    """Answers of the survivors to one operation. True if it was lost, alike for all."""
    codes = {a["code"] for a in answers}
    if codes not in ({SUCCESS}, {RANK_CONNECTION_LOST}):
        raise lib.Failed(f"survivors disagree: {answers}")
    if any(a["check"] != "ok" for a in answers) or len({a.get("hash") for a in answers}) != 1:
        raise lib.Failed(f"results or buffers: {answers}")
    if codes == {SUCCESS}:
        toll.unharmed += 1
        return False
    toll.lost += 1
    toll.latency.extend(a["end"] - killed_at for a in answers)
    return True


def repeat(toll, survivors, line):
    """The same call again until it succeeds: at once, or once more where the death of the victim
    was not known yet."""
    for _ in range(3):
        answers = lib.together(survivors, f"reduce {line} ids={ids_of(survivors)} verify=1")
        if not judge(answers):
            return
        if {a["code"] for a in answers} != {RANK_CONNECTION_LOST} or any(
                a["check"] != "ok" for a in answers):
            raise lib.Failed(f"the repeated call: {answers}")
        toll.repeats += 1
    raise lib.Failed("the repeated call is lost again and again")


def kill_in_one(toll, survivors, victim, line, delay):
    """In a blocking call."""
    everybody = [*survivors, victim]
    for peer in everybody:
        peer.send(f"reduce {line} ids={ids_of(everybody)}")
    time.sleep(delay)
    killed_at = time.monotonic_ns()
    victim.kill()
    take_toll(toll, killed_at, [p.read() for p in survivors])
    repeat(toll, survivors, line)


def kill_in_several(toll, survivors, victim, line, delay, rng):
    """With operations in flight: each is lost for all or done for all."""
    everybody = [*survivors, victim]
    n = 4
    lib.submit_all(everybody, [line] * n, rng, ids=ids_of(everybody))
    victim.send(*(f"await slot={k}" for k in range(n)))
    time.sleep(delay)
    killed_at = time.monotonic_ns()
    victim.kill()
    for answers in lib.await_all(survivors, n, rng):
        take_toll(toll, killed_at, answers)
    repeat(toll, survivors, line)


def many_kills():
    rng = random.Random(3)
    toll = Toll()
    with lib.Lab(HOSTS) as lab:
        lab.start()
        survivors = lab.start_peers(SURVIVOR_HOSTS, streams=2)
        victim = add_victim(lab, survivors, 99, 2)
        lasts = [duration([*survivors, victim], f"reduce {line}") for line in OPERATIONS]
        lasts = [duration([*survivors, victim], f"reduce {line}") for line in OPERATIONS]
        for k in range(KILLS):
            which = k % len(OPERATIONS)
            line = f"{OPERATIONS[which]} tag={k % 3} seed={k}"
            delay = rng.uniform(0, 1.1 * lasts[which])
            if k % 4 == 3:
                kill_in_several(toll, survivors, victim, line, delay, rng)
            else:
                kill_in_one(toll, survivors, victim, line, delay)
            lab.drop_peer(victim)
            victim = add_victim(lab, survivors, 100 + k, k % HOSTS)
        lab.check_alive()
    check(True, f"{KILLS} kills in a row: {toll.lost} operations lost, {toll.unharmed} not, "
          f"{toll.repeats} repeated twice")
    print(f"# from SIGKILL to the survivors' return: {lib.spread(toll.latency)}")
    check(toll.lost > KILLS / 4, "enough of the kills hit an operation")
    check(max(toll.latency, default=0) < BOUND_NS, "survivors are told soon",
          f"{max(toll.latency, default=0) / 1e9:.1f} s")


def other_group():
    """A death in one group is no concern of another group's operations."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = [lab.start_peer(k, k % 2, group=k // 3) for k in range(6)]
        lib.form_run(peers)
        mine, others = peers[:3], peers[3:]
        victim = mine.pop()
        for peer in mine:
            peer.send(f"reduce {OPERATIONS[2]}")
        lib.together(others, f"submit slot=0 {OPERATIONS[3]} tag=1 ids={ids_of(others)}")
        victim.kill()
        wrong = judge(lib.together(others, "await slot=0"))
        codes = [p.read()["code"] for p in mine]
        check(not wrong and codes == [RANK_CONNECTION_LOST] * 2,
              "a death in one peer group does not harm another", f"{wrong} {codes}")


def agent_death():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1, 1))
        here, there = peers[:2], peers[2:]
        line = f"{OPERATIONS[3]} tag=1"
        # without the last peer the operation cannot end before the agent is killed
        for peer in peers[:3]:
            peer.send(f"reduce {line}")
        time.sleep(0.05)
        killed_at = time.monotonic_ns()
        lab.agents[1].process.kill()
        lab.agents[1].process.wait()
        answers = [p.read() for p in here]
        took = max(a["end"] for a in answers) - killed_at
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers)
              and took < BOUND_NS, f"an agent is killed: peers elsewhere know after "
              f"{took / 1e6:.1f} ms", answers)
        answers = [there[0].read(), there[1].call(f"reduce {line}")]
        check(all(a["code"] != SUCCESS and a["check"] == "ok" for a in answers),
              f"its own peers get an error: {answers[0]['code']}, {answers[0]['text']}", answers)
        toll = Toll()
        repeat(toll, here, line)
        check(toll.repeats == 0, "the others go on")
        lab.daemons.remove(lab.agents[1])
        lab.check_alive()


def vanished_host():
    """Nothing closes its connections: silence alone tells."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        line = f"{OPERATIONS[2]} tag=1"
        for peer in peers[:2]:
            peer.send(f"reduce {line}")
        began = time.monotonic()
        lab.agents[1].process.send_signal(signal.SIGSTOP)
        answers = [p.read() for p in peers[:2]]
        took = time.monotonic() - began
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers)
              and took < 15, f"an agent falls silent: the others know after {took:.1f} s", answers)
        repeat(Toll(), peers[:2], line)
        lab.agents[1].process.send_signal(signal.SIGCONT)
        answer = peers[2].call(f"reduce {line}")
        check(answer["code"] != SUCCESS and answer["check"] == "ok",
              f"when it is back, its peer is told: {answer['code']}, {answer['text']}", answer)
        lab.check_alive()


def master_death():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 1))
        for peer in peers[:2]:
            peer.send(f"reduce {OPERATIONS[2]}")
        time.sleep(0.05)
        lab.master.process.kill()
        lab.master.process.wait()
        answers = [p.read() for p in peers[:2]]
        check(all(a["code"] == lib.MASTER_CONNECTION_FAILED and a["check"] == "ok"
                  for a in answers), f"the master is killed: {answers[0]['text']}", answers)
        lab.daemons.remove(lab.master)
        lab.start_master()
        lab.check_alive()


def test():
    many_kills()
    other_group()
    agent_death()
    vanished_host()
    master_death()


lib.run(test, 300)
