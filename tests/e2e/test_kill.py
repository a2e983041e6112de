#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Peers are killed during operations, and hosts vanish. The others soon get the same errors, their
buffers are unchanged, and they go on."""

import random
import re
import signal
import time

import lib
from lib import (AGENT_UNAVAILABLE, INVALID_USAGE, RANK_CONNECTION_LOST, SUCCESS, TOO_FEW_PEERS,
                 check, ids_of, judge)

KILLS = 100
BATCHES, BATCH = 12, 8  # calls, and operations in each
OF_BATCH = "type=f32 op=sum count=20011 place=in mem=shared"
BOUND_NS = 2 * 10**9  # bound for a busy machine; the aim is 200 ms
SILENCE_NS = 3 * 10**9  # the longest silence of a host that is accepted
SURVIVOR_HOSTS = (0, 1)
HOSTS = 3  # one more host than survivors have, so that a victim is sometimes alone on its host
OPERATIONS = (
    "type=f32 op=sum count=1 place=in",
    "type=bf16 op=avg count=1009 place=out mem=shared",
    "type=f64 op=sum count=131072 place=out",
    "type=f32 op=sum count=2000003 place=in mem=shared",
    "type=i32 op=max count=700001 place=out mem=send",
    "type=f32 op=avg count=4194304 place=out",
)

QUANTIZED = tuple(f"{line} {lib.QUANTIZED[mode]}" for line, mode in (
    ("type=f32 op=sum count=1009 place=in", "int8"),
    ("type=bf16 op=avg count=65537 place=out mem=shared", "int4"),
    ("type=f64 op=sum count=500009 place=out", "minmax"),
    ("type=f32 op=sum count=2000003 place=in mem=shared", "int4"),
    ("type=f32 op=max count=700001 place=out mem=send", "int8")))


class Toll:
    """The results of all kills."""

    def __init__(self):
        self.latency = []  # ns from the kill, or from the call, to a survivor's return with the error
        self.lost = self.unharmed = 0  # numbers of operations
        self.uneven = 0  # operations that some survivors lost more often than others
        self.most = 0  # the most losses of one call

    def take(self, killed_at, answers):
        """Adds the answers of the survivors to one operation, which every survivor has repeated
        until it succeeded."""
        wrong = judge(answers)
        if wrong or len({a["world"] for a in answers}) != 1:
            raise lib.Failed(f"survivors: {wrong}: {answers}")
        if any(float(a.get("error", 0)) > lib.QUANTIZED_ERROR for a in answers):
            raise lib.Failed(f"survivors: the error is too large: {answers}")
        losses = [a["losses"] for a in answers]
        self.latency.extend(
            a["first_loss"] - max(killed_at, a["begin"]) for a in answers if a["losses"])
        self.lost += any(losses)
        self.unharmed += not any(losses)
        self.uneven += len(set(losses)) > 1
        self.most = max(self.most, *losses)


def window(peers, line):
    """Measures when an operation begins and ends if nobody dies, in seconds after the command."""
    sent = time.monotonic_ns()
    answers = lib.together(peers, f"reduce {line}")
    if judge(answers):
        raise lib.Failed(f"{line}: {judge(answers)}")
    return ((min(a["begin"] for a in answers) - sent) / 1e9,
            (max(a["end"] for a in answers) - sent) / 1e9)


def add_victim(lab, survivors, number, host):
    victim = lab.start_peer(number, host, ready=False)
    n = len(survivors)
    for answer in lib.together(survivors, f"until world={n}"):
        if answer["code"] != SUCCESS or answer["world"] != n:
            raise lib.Failed(f"without the victim: {answer}")
    victim.read()
    victim.send("create streams=2", "connect")
    for peer in survivors:
        peer.send(f"until world={n + 1}")
    for peer, n in [*((p, 1) for p in survivors), (victim, 2)]:
        for _ in range(n):
            answer = peer.read()
            if answer["code"] != SUCCESS:
                raise lib.Failed(f"peer {peer.number}: {answer}")
    return victim


def kill_one(toll, survivors, victim, line, delay, several):
    """Kills the victim in a blocking call, or with several operations in flight. The survivors
    repeat lost operations. Returns whether the kill hit an operation."""
    lost_before = toll.lost
    everybody = [*survivors, victim]
    what = f"many n={several}" if several else "reduce"
    for peer in everybody:
        peer.send(f"{what} {line} retry=5 ids={ids_of(everybody)} or={ids_of(survivors)} verify=1")
    time.sleep(delay)
    killed_at = time.monotonic_ns()
    victim.kill()
    answers = [[p.read() for _ in range(several or 1)] for p in survivors]
    for of_one in zip(*answers):
        toll.take(killed_at, of_one)
    return toll.lost > lost_before


def many_kills(kills=KILLS, operations=OPERATIONS, places=SURVIVOR_HOSTS, algorithm="ring"):
    """Each host of `places` has a survivor. The victim is on one of these hosts or on another one."""
    rng = random.Random(3)
    toll = Toll()
    hosts = len(places) + 1
    what = f"{hosts} hosts, {algorithm}{', quantized' * any('quant' in x for x in operations)}"

    def next_victim(number, host):
        victim = add_victim(lab, survivors, number, host)
        if algorithm != "ring":
            lib.await_mesh(lab, {*places, host})
        return victim

    with lib.Lab(hosts) as lab:
        lab.start(master_options=("--algorithm", algorithm))
        survivors = lab.start_peers(places, streams=2)
        victim = next_victim(99, hosts - 1)
        for _ in range(2):  # the first pass warms up
            windows = [window([*survivors, victim], line) for line in operations]
        # How fast operations are depends on what else the machine does: kills that come too late
        # make the next ones earlier.
        share = [1.0] * len(operations)
        for k in range(kills):
            which = k % len(operations)
            line = f"{operations[which]} tag={k % 3} seed={k}"
            several = 4 if k % 4 == 3 else 0
            begin, end = windows[which]
            delay = share[which] * rng.uniform(0.9 * begin, end) * (several or 1)
            hit = kill_one(toll, survivors, victim, line, delay, several)
            share[which] = min(1.0, share[which] * (1.1 if hit else 0.8))
            lab.drop_peer(victim)
            victim = next_victim(100 + k, k % hosts)
        lab.check_alive()
    check(toll.most <= 2, f"{what}, {kills} kills in a row: {toll.lost} operations lost and repeated, "
          f"{toll.unharmed} not lost", f"one was repeated {toll.most} times")
    check(toll.uneven == 0, f"{what}: each operation was lost for all survivors or for none", toll.uneven)
    print(f"# from SIGKILL to the survivors' return: {lib.spread(toll.latency)}")
    check(toll.lost > kills / 10, f"{what}: more than a tenth of the kills hit an operation")
    check(max(toll.latency, default=0) < BOUND_NS, f"{what}: survivors get the error of a kill soon",
          f"{max(toll.latency, default=0) / 1e9:.1f} s")


def batch(peers, n, line, everybody, survivors):
    for peer in peers:
        peer.send(f"several n={n} {line} ids={ids_of(everybody)} or={ids_of(survivors)} verify=1")


def with_retry():
    """Repeats with pcclAllReduceMultipleWithRetry. Each result is the sum of exactly those peers
    that took part, and is the same on all of them, until one peer is alone."""
    rng = random.Random(4)
    worlds = []
    with lib.Lab(HOSTS) as lab:
        lab.start()
        survivors = lab.start_peers(SURVIVOR_HOSTS, streams=2)
        victim = add_victim(lab, survivors, 99, 2)
        usual = 0.0  # seconds; the first batch warms up
        for k in range(BATCHES):
            line = f"{OF_BATCH} window={(1, 3, BATCH)[k % 3]} tag={100 * k} seed={k}"
            everybody, begin = [*survivors, victim], time.monotonic()
            # The victim does not call the second half of the operations, so these end only when the
            # victim dies.
            batch(survivors, BATCH, line, everybody, survivors)
            batch([victim], BATCH // 2, line, everybody, survivors)
            if k % 2:
                time.sleep(rng.uniform(0, usual))
            else:
                for _ in range(BATCH // 2):
                    victim.read()
                usual = time.monotonic() - begin
            victim.kill()
            for answers in zip(*([p.read() for _ in range(BATCH)] for p in survivors)):
                wrong = judge(answers)
                if wrong or len({a["world"] for a in answers}) != 1:
                    raise lib.Failed(f"batch {k}: {wrong}: {answers}")
                worlds.append(answers[0]["world"])
            lab.drop_peer(victim)
            victim = add_victim(lab, survivors, 200 + k, k % HOSTS)
        n = BATCHES * BATCH // 2
        check(worlds.count(2) >= n and worlds.count(3) >= n // 2, f"{BATCHES} batches, a peer "
              f"killed in each: {worlds.count(3)} operations with it, {worlds.count(2)} without",
              worlds)
        last, others = survivors[0], [*survivors[1:], victim]
        batch([last], BATCH, line, [last, *others], [last])
        batch(others, BATCH // 2, line, [last, *others], [last])
        for peer in others:
            peer.kill()
        answers = [last.read() for _ in range(BATCH)]
        alone = [a for a in answers if a["code"] != SUCCESS]
        check(all(a["check"] == "ok" for a in answers) and len(alone) >= BATCH // 2
              and all(a["code"] == TOO_FEW_PEERS for a in alone),
              f"all others are killed: the last peer gets the error: {alone and alone[0]['text']}", answers)
        lab.check_alive()


def late_caller():
    """A survivor that calls only after the loss gets the same error as the others. So all survivors
    do the same next: here they look for newcomers before they go on."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 1, 1))
        early, late, victim = peers
        lib.submit_all([early], [OPERATIONS[2]], random)
        victim.kill()
        answers = [early.call("await slot=0"), late.call(f"reduce {OPERATIONS[2]} tag=0")]
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers),
              "a survivor that calls after the loss also gets the error", answers)
        answers = lib.together([early, late], "update")
        check(all(a["code"] == SUCCESS and a["world"] == 2 for a in answers),
              "all survivors can update the topology after a loss", answers)
        wrong = judge(lib.together([early, late], f"reduce {OPERATIONS[2]} ids=0,1 verify=1"))
        check(not wrong, "survivors reduce after the update of the topology", wrong)
        lab.check_alive()


def other_group():
    """A death in one group does not affect operations of another group."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = [lab.start_peer(k, k % 2, group=k // 3) for k in range(6)]
        lib.form_run(peers)
        mine, others = peers[:3], peers[3:]
        victim = mine.pop()
        lib.submit_all(mine, [OPERATIONS[2]], random)
        lib.submit_all(others, [OPERATIONS[3]], random, ids=ids_of(others))
        victim.kill()
        wrong = judge(lib.together(others, "await slot=0"))
        codes = [a["code"] for a in lib.together(mine, "await slot=0")]
        check(not wrong and codes == [RANK_CONNECTION_LOST] * 2,
              "a death in one peer group does not harm another", f"{wrong} {codes}")


def stopped_group(hosts=2, algorithm="ring", mode=""):
    """A process that stops during an operation delays only its own group, although another group
    uses the same links."""
    what = f"{hosts} hosts, {algorithm} {mode}".rstrip()
    with lib.Lab(hosts) as lab:
        lab.start(master_options=("--algorithm", algorithm))
        peers = [lab.start_peer(k, k % hosts, group=k // hosts) for k in range(2 * hosts)]
        lib.form_run(peers)
        if algorithm != "ring":
            lib.await_mesh(lab, range(hosts))
        mine, others = peers[:hosts], peers[hosts:]
        for peer in mine:
            peer.send(f"reduce {OPERATIONS[5]} {mode} tag=1 freeze={int(peer is mine[1])}")
        lib.await_stop(mine[1])
        began = time.monotonic_ns()
        wrong = judge(lib.together(others, f"reduce {OPERATIONS[3]} {mode} tag=2 ids={ids_of(others)}"))
        took = time.monotonic_ns() - began
        check(not wrong and took < BOUND_NS, f"{what}: a process that is stopped does not delay another "
              "peer group", wrong or f"{took / 1e9:.1f} s")
        lib.wake(mine[1])
        wrong = judge([p.read() for p in mine])
        check(not wrong, f"{what}: the group of a stopped process goes on when the process runs again", wrong)
        lab.check_alive()


def descriptors_closed():
    """A program that closes all descriptors also closes those of the library, and goes on."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        peers[0].call("closefrom")
        mine, *others = lib.together(peers, f"reduce {OPERATIONS[2]} tag=1", 10)
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in others),
              "if a program closes the descriptors of the library, the call ends for all",
              others)
        check(mine["code"] == AGENT_UNAVAILABLE and "has closed descriptor" in mine["text"],
              "a program that has closed the library's descriptors gets the reason", mine)
        wrong = judge(lib.together(peers[1:], f"reduce {OPERATIONS[2]} ids={ids_of(peers[1:])}"))
        check(not wrong, "the others go on after a program has closed the library's descriptors", wrong)
        peers[0].send("connect")
        lib.together(peers[1:], "until world=3")
        check(peers[0].read()["code"] == SUCCESS,
              "a program that has closed the library's descriptors can connect again")
        for pause in (0, 1):  # the second pause is long enough for all threads of the library to notice
            reused_descriptors(peers, pause)
        lab.check_alive()


def reused_descriptors(peers, pause):
    """The program reuses the numbers of the library's descriptors for its own descriptors, which
    the library must not touch."""
    victim, *others = peers
    victim.expect("alloc bytes=100000")
    for peer in others:  # so that the agent asks the victim's process whether it runs
        peer.send("update")
    time.sleep(0.3)  # the library's answer to the agent cannot be observed
    answer = victim.call("closefrom mine=1")
    check(answer["child"] == 0, f"a forked child leaves the program's descriptors alone", answer)
    time.sleep(pause)
    answer = victim.call("update")
    check(answer["code"] == AGENT_UNAVAILABLE and "has closed descriptor" in answer["text"],
          f"no request to the agent is sent on a program's descriptor, after {pause} s", answer)
    for peer in others:
        peer.read()
    victim.send("connect")
    lib.together(others, "until world=3")
    check(victim.read()["code"] == SUCCESS, "a program that reuses descriptors connects again")
    check(victim.call("free")["check"] == "ok", "a program that reuses descriptors frees its memory")
    wrong = judge(lib.together(peers, f"reduce {OPERATIONS[2]} ids={ids_of(peers)}"))
    check(not wrong, "all peers reduce with the program that reuses descriptors", wrong)
    answer = victim.call("mine")
    check(answer["touched"] == 0,
          f"the library leaves the program's descriptors alone, after {pause} s", answer)


def vanished_host(places=(0, 0, 1), algorithm="ring", mode=""):
    """No packet closes the connections of the host, so only its silence shows the loss. When the
    host is back, its peer can join again."""
    what = f"{places[-1] + 1} hosts, {algorithm} {mode}".rstrip()
    with lib.Lab(places[-1] + 1) as lab:
        lab.start(master_options=("--algorithm", algorithm))
        peers = lab.start_peers(places)
        if algorithm != "ring":
            lib.await_mesh(lab, places)
        here, there = peers[:-1], peers[-1]
        line = f"{OPERATIONS[2]} {mode} tag=0"
        lib.submit_all(here, [f"{OPERATIONS[2]} {mode}"], random)
        began = time.monotonic_ns()
        lab.agents[there.host].process.send_signal(signal.SIGSTOP)
        answers = lib.together(here, "await slot=0")
        took = max(a["end"] for a in answers) - began
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in answers)
              and took < SILENCE_NS + BOUND_NS,
              f"{what}: an agent falls silent: the others get the error after {took / 1e9:.1f} s", answers)
        wrong = judge(lib.together(here, f"reduce {line} ids={ids_of(here)} verify=1"))
        check(not wrong, f"{what}: the others reduce without the silent agent's peer", wrong)
        lab.agents[there.host].process.send_signal(signal.SIGCONT)
        answer = there.call(f"reduce {line}")
        check(answer["code"] == RANK_CONNECTION_LOST and answer["check"] == "ok",
              f"{what}: when the silent agent is back, its peer gets the error: {answer['text']}", answer)
        answer = there.call(f"reduce {line}")
        check(answer["code"] == INVALID_USAGE and answer["check"] == "ok",
              f"{what}: a peer that was lost cannot repeat the call", answer)
        there.send("connect")
        answers = [*lib.together(here, f"until world={len(peers)}"), there.read()]
        wrong = judge(lib.together(peers, f"reduce {line} ids={ids_of(peers)} verify=1"))
        check(not wrong and all(a["code"] == SUCCESS for a in answers),
              f"{what}: a peer that was lost joins again with pcclConnect",
              f"{wrong} {answers}")
        lab.check_alive()


def patience():
    """The master's operator sets how long a host may be silent, in the configuration file or on the
    command line, which takes precedence. Agents use the same bound for the master."""
    for in_file, options in (("1", ()), ("5", ("--host-timeout", "1"))):
        with lib.Lab(2) as lab:
            file = lab.folder / "master.conf"
            file.write_text(f"[master]\nhost_timeout = {in_file}\n", "utf-8")
            lab.start(master_options=("--config", file, *options))
            lab.start_peers((0, 1))
            for victim, witness, words in (
                    (lab.agents[1], lab.master, "the agent on host-1 has been"),
                    (lab.master, lab.agents[0], r"lost the master at [0-9.:]+ \(")):
                victim.process.send_signal(signal.SIGSTOP)
                said = re.compile(words + r" ?silent for \d+\.\d s, bound 1\.0 s").search
                lib.until(lambda: any(map(said, witness.log_lines())),
                          f"{witness.name} does not log the silence of {victim.name}")
            check(True,
                  "a host timeout of one second holds for agents and the master"
                  + ", on the command line" * bool(options))
            for daemon in (lab.master, lab.agents[1]):
                daemon.process.send_signal(signal.SIGCONT)
            lab.check_alive()


def test():
    many_kills()
    many_kills(10, QUANTIZED)
    many_kills(12, (*QUANTIZED, *OPERATIONS[2:5]), (0, 1, 2), "direct")
    many_kills(12, (*OPERATIONS[2:5], *QUANTIZED), (0, 1, 2), "tree")
    with_retry()
    late_caller()
    other_group()
    stopped_group()
    stopped_group(3, "direct", lib.QUANTIZED["int8"])
    stopped_group(3, "tree")
    descriptors_closed()
    vanished_host()
    vanished_host((0, 1, 2, 3), "direct", lib.QUANTIZED["int4"])
    patience()


lib.run(test, 600)
