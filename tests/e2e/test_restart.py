#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Agents and masters are killed, or ended by a signal, while their peers live. A new agent at the
same socket costs its peers at most one retriable error of a call, and no peer its membership. A new
master costs nothing. If an agent does not come back, its peers are lost when the lease has expired.
If a master does not come back, its run is lost."""

import json
import os
import random
import re
import signal
import subprocess
import time

import lib
from lib import (AGENT_UNAVAILABLE, MASTER_CONNECTION_FAILED, RANK_CONNECTION_LOST, SUCCESS, Failed,
                 await_stop, check, ids_of, judge, restart_agent, wake)

COUNT = 300007
# The buffers of an operation. The peers use these entries in turn.
PLACES = ("place=out", "place=in mem=shared", "place=in", "place=out mem=shared", "place=out mem=recv",
          "place=out mem=send")
RANDOM_KILLS = 16
SHORT_LEASE_MS = 700


class Run:
    """A lab, peers that form a run, and calls of all these peers."""

    def __init__(self, lab, places, mode=""):
        self.lab, self.mode = lab, mode
        self.peers = lab.start_peers(places, streams=2)
        self.seed = 0
        self.all_again()  # the first calls warm up

    def line(self, k, tag, seed, frozen=None, retry=5, count=COUNT):
        peer = self.peers[k]
        return (f"type=f32 op=sum count={count} tag={tag} seed={seed} ids={ids_of(self.peers)} "
                f"verify=1 retry={retry} "
                f"{PLACES[0] if peer is frozen else PLACES[k % len(PLACES)]} "
                f"freeze={int(peer is frozen)} {self.mode}")

    def ask(self, frozen=None, but=None, **words):
        """Starts an all-reduce on all peers except `but`. The peers repeat it if a peer is lost.
        frozen: a peer that stops when half of its operand is read; this function returns after it
        has stopped."""
        self.seed += 1
        for k, peer in enumerate(self.peers):
            if peer is not but:
                peer.send(f"reduce {self.line(k, 1, self.seed, frozen, **words)}")
        if frozen:
            await_stop(frozen)
            await_running(self.lab, {p.host for p in self.peers}, 1)

    def ask_late(self, late):
        """Starts the call of the peer that was left out."""
        late.send(f"reduce {self.line(self.peers.index(late), 1, self.seed)}")

    def good(self, losses, what):
        """Reads the answers to ask(). Every call must have succeeded, after at most this many
        losses."""
        answers = [p.read() for p in self.peers]
        n = len(self.peers)
        wrong = judge(answers)
        seen = [a["losses"] for a in answers]
        if not wrong and {a["world"] for a in answers} != {n}:
            wrong = f"world sizes {[a['world'] for a in answers]}"
        if not wrong and max(seen) > losses:
            wrong = f"losses {seen}"
        if wrong:
            raise Failed(f"{what}: {wrong}")
        return seen

    def again(self, losses, what):
        """Runs another operation with the same tag. If only some peers repeated the operation
        before it, the repetition would meet this operation."""
        self.ask()
        return self.good(losses, what)

    def all_again(self):
        for _ in range(2):
            self.again(0, "when nobody dies")
        self.count_peers()

    def count_peers(self):
        n = len(self.peers)
        for a in lib.together(self.peers, "attr"):
            if a["global"] != n:
                raise Failed(f"world size {a['global']}, not {n}")


def await_running(lab, hosts, tag):
    """Waits until the agents of the hosts report that the operation with this tag is running."""
    deadline = time.monotonic() + lib.WAIT
    for host in hosts:
        while True:
            done = subprocess.run([lib.CTL, "--json", "--agent", lab.agents[host].admin, "ops"],
                                  capture_output=True, text=True, timeout=lib.WAIT, check=True)
            ops = {op["tag"]: op["state"] for op in json.loads(done.stdout)["ops"]}
            if ops.get(tag) == "running":
                break
            if time.monotonic() > deadline:
                raise Failed(f"an operation does not start on host {host}: {ops}")


def restart_master(lab, options=()):
    lab.drop(lab.master)
    lab.start_master(port=lab.master.port, options=options)


def set_master(lab, host, *words):
    done = subprocess.run([lib.CTL, "--agent", lab.agents[host].admin, "agent", "set-master", *words],
                          capture_output=True, text=True, timeout=lib.WAIT, check=False)
    if done.returncode:
        raise Failed(f"set-master {words}: {done.stderr}")


# ---------------------------------------------------------------------------- agents


def agent_amid_operation(run):
    """Half of the data has been sent. The operands are staged, registered and in place."""
    lab = run.lab
    seen = []
    for victim in (0, 1):
        for frozen in (run.peers[0], run.peers[2]):
            run.ask(frozen)
            restart_agent(lab, victim)
            wake(frozen)
            seen.append(run.good(1, f"the agent of host {victim} amid an operation"))
            run.again(0, "the next operation")
    check(all(min(s) == 1 for s in seen),
          "an agent dies during an operation, which is lost once for all peers", seen)
    run.count_peers()


def agent_before_operation(run):
    """Not all peers have called. In one case the agent has already voted for the submissions that
    it has; in the other it has not voted yet."""
    lab = run.lab
    for late in (run.peers[-1], run.peers[0]):
        run.ask(but=late)
        restart_agent(lab, 1)
        run.ask_late(late)
        run.good(1, "an agent dies before an operation starts")
        run.again(1, "the next operation")
    run.count_peers()
    check(True, "all peers go on after an agent dies while an operation waits for a peer")


def agent_between(run):
    lab = run.lab
    for host in (0, 1):
        restart_agent(lab, host)
        run.again(1, "an operation after an agent's death between operations")
        run.again(0, "the next operation")
    run.count_peers()
    old = lab.agents[1]
    lab.drop(old)
    run.ask()  # no agent is there to receive the calls
    lab.start_agent(1, path=old.socket, admin=old.admin)
    run.good(1, "calls that are made while there is no agent")
    run.again(0, "the next operation")
    check(True, "all peers go on after an agent dies between operations")


def agent_twice(run):
    """The second agent dies as soon as it listens, while its peers are being attached."""
    lab = run.lab
    for frozen in (run.peers[1], run.peers[3]):
        run.ask(frozen)
        restart_agent(lab, 1)
        restart_agent(lab, 1)
        wake(frozen)
        run.good(2, "two agents die in a row")
        run.again(1, "the next operation")
    for _ in range(3):
        restart_agent(lab, 0)
    run.again(1, "an operation after the deaths of three agents in a row")
    run.again(0, "the next operation")
    for host in (0, 1):
        restart_agent(lab, host)
    run.again(2, "an operation after the deaths of both agents")
    run.again(0, "the next operation")
    run.count_peers()
    check(True, "all peers go on after agents die one after the other")


def submit_several(run, n, frozen=None):
    """Submits and awaits slots 0 .. n - 1 on all peers. frozen: as in ask(), for the last
    operation."""
    run.seed += 1
    for k, peer in enumerate(run.peers):
        for slot in range(n):
            last = frozen if slot == n - 1 else None
            peer.send(f"submit slot={slot} {run.line(k, 10 + slot, run.seed, last)}")
        peer.send(*(f"await slot={slot}" for slot in range(n)))
    if frozen:
        await_stop(frozen)
        await_running(run.lab, {p.host for p in run.peers}, n + 9)


def await_several(run, n):
    """Returns the answers as [slot][peer]. Checks that an operation is done for all or lost for
    all."""
    of_peer = []
    for peer in run.peers:
        answers = [peer.read() for _ in range(2 * n)]
        if any(a["code"] != SUCCESS for a in answers[:n]):
            raise Failed(f"submit: {answers[:n]}")
        of_peer.append(answers[n:])
    of_slot = list(zip(*of_peer))
    for slot, answers in enumerate(of_slot):
        codes = {a["code"] for a in answers}
        if codes not in ({SUCCESS}, {RANK_CONNECTION_LOST}) \
                or any(a["check"] != "ok" for a in answers) or (SUCCESS in codes and judge(answers)):
            raise Failed(f"operation {slot} of {n}: {answers}")
    return of_slot


def several_in_flight(run):
    """Each of several operations is lost for all peers or for none, and only lost operations are
    repeated."""
    n, seen = 5, []
    for victim, frozen in ((0, run.peers[2]), (1, run.peers[3])):
        for _ in range(2):  # after this warm-up the processes have mapped the memory for results
            submit_several(run, n)
            await_several(run, n)
        submit_several(run, n, frozen)
        restart_agent(run.lab, victim)
        wake(frozen)
        for slot, answers in enumerate(await_several(run, n)):
            seen.append(answers[0]["code"])
            if answers[0]["code"] == SUCCESS:
                continue
            for k, peer in enumerate(run.peers):
                peer.send(f"reduce {run.line(k, 10 + slot, run.seed, retry=0)}")
            run.good(0, "repeated")
    check(RANK_CONNECTION_LOST in seen,
          f"{seen.count(SUCCESS)} of {len(seen)} operations in flight were done when an agent died, "
          "each for all peers or for none", seen)
    run.count_peers()


def agent_at_any_moment(run, kills=RANDOM_KILLS):
    """An agent ends at a random moment, also when the last bytes arrive, or when some peers already
    know the result."""
    lab, rng = run.lab, random.Random(7)
    lost = 0
    for k in range(kills):
        began = time.monotonic()
        run.again(0, "nobody died")
        took = time.monotonic() - began
        run.ask()
        time.sleep(rng.uniform(0, took))
        number = signal.SIGTERM if k % 4 > 1 else signal.SIGKILL
        restart_agent(lab, k % 2, number=number)
        lost += any(run.good(1, f"end {k} of an agent at a random moment"))
        run.again(1, f"an operation after end {k} of an agent at a random moment")
    run.count_peers()
    check(True, f"{kills} agents end at random moments: {lost} operations were lost and repeated")


def agent_told_to_end(run):
    """A signal ends an agent, as in systemctl restart or an upgrade. The agent announces its end,
    and costs no more than a killed agent."""
    lab = run.lab
    for victim, frozen in ((0, run.peers[0]), (1, run.peers[0]), (1, run.peers[2])):
        run.ask(frozen)
        restart_agent(lab, victim, number=signal.SIGTERM)
        wake(frozen)
        run.good(1, f"the agent of host {victim} is told to end amid an operation")
        run.again(0, "the next operation")
    for number in (signal.SIGTERM, signal.SIGINT):
        for host in (0, 1):
            restart_agent(lab, host, number=number)
            run.again(1, "an operation after the end of an agent between operations")
            run.again(0, "the next operation")
    run.ask(but=run.peers[-1])
    restart_agent(lab, 1, number=signal.SIGTERM)
    run.ask_late(run.peers[-1])
    run.good(1, "an agent is told to end before an operation starts")
    run.again(1, "the next operation")
    old = lab.agents[0]
    lab.end(old)
    run.ask()
    lab.start_agent(0, path=old.socket, admin=old.admin)
    run.good(1, "calls that are made while there is no agent")
    run.again(0, "the next operation")
    run.count_peers()
    check(True, "all peers go on after agents were ended and replaced")
    lost = [x for x in lab.master.log_lines() if re.search("process died|did not come back|left", x)]
    check(not lost, "the master loses no peer when agents are ended and replaced", lost)


def agent_deaths_on_route(algorithm, mode):
    """Agents and masters die while hosts have links to all others."""
    options = ("--algorithm", algorithm)
    with lib.Lab(3) as lab:
        lab.start(master_options=options)
        run = Run(lab, (0, 0, 1, 2), mode)
        lib.await_mesh(lab, range(3))
        agent_amid_operation(run)
        agent_at_any_moment(run, 6)
        master_amid_operation(run, options)
        check(True, f"{algorithm} {mode}: masters die during operations, and no call fails")
        lab.check_alive()


def agent_deaths():
    with lib.Lab(2) as lab:
        lab.start()
        run = Run(lab, (0, 0, 1, 1))
        agent_amid_operation(run)
        agent_before_operation(run)
        agent_between(run)
        agent_twice(run)
        several_in_flight(run)
        agent_at_any_moment(run)
        agent_told_to_end(run)
        lab.check_alive()


def agent_for_good():
    """The peers of an agent that does not come back are lost after the lease, and get the error
    after their own bound."""
    with lib.Lab(2) as lab:
        lab.start(master_options=["--agent-lease-ms", SHORT_LEASE_MS])
        here = [lab.start_peer(k, 0, ready=False) for k in range(2)]
        there = [lab.start_peer(2 + k, 1, ready=False, env={"PCCL_AGENT_LEASE_MS": "900"})
                 for k in range(2)]
        for peer in (*here, *there):
            peer.read()
        lib.form_run([*here, *there], 2)
        line = f"type=f32 op=sum count={COUNT} place=in"
        for peer in (*here, there[0]):
            peer.send(f"reduce {line} ids={ids_of([*here, *there])} or={ids_of(here)} verify=1 "
                      f"retry={5 if peer in here else 1}")
        alive = time.monotonic_ns()
        lab.drop(lab.agents[1])
        answers = [p.read() for p in here]
        check(not judge(answers) and all(a["world"] == 2 and a["losses"] <= 1 for a in answers),
              "an agent does not come back: the other hosts go on without its peers", answers)
        check(min(a["end"] for a in answers) >= alive + (SHORT_LEASE_MS - 50) * 10**6,
              "the peers of a lost agent are lost only after the lease", answers)
        answer = there[0].read()
        check(answer["code"] == AGENT_UNAVAILABLE and answer["check"] == "ok"
              and answer["end"] >= alive + 900 * 10**6,
              f"the peers of a lost agent get the error after their own bound: {answer['text']}", answer)
        answer = there[1].call(f"reduce {line}")
        check(answer["code"] == AGENT_UNAVAILABLE and answer["check"] == "ok",
              "a peer of a lost agent that calls later also gets the error", answer)
        lab.start_agent(1, path=lab.agents[1].socket, admin=lab.agents[1].admin)
        for peer in there:  # a member has to vote on the other newcomer
            peer.send("connect")
            peer.send(f"until world={len(here) + len(there)}")
        answers = lib.together(here, f"until world={len(here) + len(there)}")
        joined = [p.read() for p in there for _ in range(2)]
        check(all(a["code"] == SUCCESS for a in (*answers, *joined)),
              "the peers of a lost agent join again with pcclConnect when there is an agent", (answers, joined))
        lab.check_alive()


# --------------------------------------------------------------------------- masters


def master_amid_operation(run, options):
    """The master is restarted while data is sent, or after all of it has arrived."""
    lab = run.lab
    for frozen in (run.peers[1], run.peers[2]):
        run.ask(frozen)
        restart_master(lab, options)
        wake(frozen)
        run.good(0, "a master dies amid an operation")
        run.ask(frozen)
        lab.drop(lab.master)
        wake(frozen)
        lab.start_master(port=lab.master.port, options=options)
        run.good(0, "an operation that goes on without a master")
        run.again(0, "the next operation")
    run.count_peers()


def master_before_operation(run, options):
    lab = run.lab
    for late in (run.peers[0], run.peers[-1]):
        run.ask(but=late)
        restart_master(lab, options)
        run.ask_late(late)
        run.good(0, "a master dies while an operation waits for a peer")
    for _ in range(2):  # one after the other
        restart_master(lab, options)
    run.again(0, "a master dies between operations")
    lab.drop(lab.master)
    run.ask()
    lab.start_master(port=lab.master.port, options=options)
    run.good(0, "calls that are made while there is no master")
    run.count_peers()


def admit(run, newcomer, answers):
    """Admits a newcomer whose agent may have found the new master only after the vote."""
    n = len(run.peers) + 1
    worlds = {a["world"] for a in answers}
    if any(a["code"] != SUCCESS for a in answers) or worlds not in ({n - 1}, {n}):
        raise Failed(f"updates: {answers}")
    if worlds != {n}:
        answers = lib.together(run.peers, f"until world={n}")
    joined = newcomer.read()
    if joined["code"] != SUCCESS or any(a["code"] != SUCCESS or a["world"] != n for a in answers):
        raise Failed(f"a newcomer of host {newcomer.host}: {joined}, {answers}")
    run.peers.append(newcomer)
    run.again(0, "an operation with the newcomer")


def dismiss(run, newcomer):
    newcomer.expect("destroy")
    run.peers.remove(newcomer)
    run.lab.drop_peer(newcomer)
    for answer in lib.together(run.peers, f"until world={len(run.peers)}"):
        if answer["code"] != SUCCESS or answer["world"] != len(run.peers):
            raise Failed(f"without the newcomer: {answer}")
    run.again(1, "an operation without the newcomer")


def master_amid_vote(run, options):
    """Some peers have voted. A newcomer waits, alone on its host or with others."""
    for host in (2, 1):
        newcomer = run.lab.start_peer(50, host)
        newcomer.expect("create streams=2")
        newcomer.send("connect")
        while not all(a["pending"] for a in lib.together(run.peers, "pending")):
            pass
        for peer in run.peers[:-1]:
            peer.send("update")
        restart_master(run.lab, options)
        run.peers[-1].send("update")
        admit(run, newcomer, [p.read() for p in run.peers])
        dismiss(run, newcomer)


def master_amid_connect(run, options):
    """There is no master when the newcomer calls, on a host that has members."""
    lab = run.lab
    newcomer = lab.start_peer(51, 0)
    newcomer.expect("create streams=2")
    lab.drop(lab.master)
    newcomer.send("connect")
    for peer in run.peers:
        peer.send("update")
    lab.start_master(port=lab.master.port, options=options)
    admit(run, newcomer, [p.read() for p in run.peers])
    dismiss(run, newcomer)


def pending_amid_death(run, options):
    """pcclArePeersPending is also a vote."""
    lab = run.lab
    for peer in run.peers[:-1]:
        peer.send("pending")
    restart_master(lab, options)
    answers = [run.peers[-1].call("pending"), *(p.read() for p in run.peers[:-1])]
    if any(a["code"] != SUCCESS or a["pending"] for a in answers):
        raise Failed(f"pending: {answers}")


def master_deaths(state):
    with lib.Lab(3) as lab:
        options = ["--state-dir", lab.folder / "state"] if state else []
        if state:
            (lab.folder / "state").mkdir()
        how = "with" if state else "without"
        lab.start(master_options=options)
        run = Run(lab, (0, 0, 1, 1))
        master_amid_operation(run, options)
        check(True, f"masters {how} a journal die during operations, and no call fails")
        master_before_operation(run, options)
        check(True, f"masters {how} a journal die before operations, and no call fails")
        master_amid_vote(run, options)
        master_amid_connect(run, options)
        check(True, f"masters {how} a journal die during votes, and newcomers join")
        pending_amid_death(run, options)
        check(True, f"masters {how} a journal die during pending votes, and the votes are answered")
        lab.check_alive()


def both_die(run):
    """After both deaths, the membership of the dead agent's peers is known only to these peers and
    to the other agents."""
    lab = run.lab
    frozen = run.peers[0]
    run.ask(frozen)
    lab.drop(lab.master)
    restart_agent(lab, 1)
    lab.start_master(port=lab.master.port)
    wake(frozen)
    run.good(1, "master and agent die amid an operation")
    run.again(1, "the next operation")
    run.again(0, "the operation after the next one")
    run.count_peers()
    check(True, "all peers go on after master and agent die together")


def master_moves():
    """The master moves to another port. The agents get the new address. The old master comes back
    and is stale."""
    with lib.Lab(2) as lab:
        lab.start()
        run = Run(lab, (0, 1, 1))
        both_die(run)
        first = lab.master
        run.ask(run.peers[0])
        lab.drop(first)
        lab.start_master()
        for host in (0, 1):
            set_master(lab, host, first.address, lab.master.address)
        wake(run.peers[0])
        run.good(0, "a master that comes back at another port")
        run.again(0, "the next operation")
        check(True, "a master comes back at another port, and no call fails")
        newcomer = lab.start_peer(9, 1, master=first.address)
        newcomer.send("create", "connect")
        answers = lib.together(run.peers, f"until world={len(run.peers) + 1}")
        joined = [newcomer.read(), newcomer.read()]
        check(all(a["code"] == SUCCESS for a in (*joined, *answers)),
              "a newcomer that knows the old address is redirected to the new address", (joined, answers))
        run.peers.append(newcomer)
        run.again(0, "an operation with the newcomer")
        agents_after_move(run, first.address)
        stale_master(run)
        lab.check_alive()


def master_moves_by_configuration():
    """The operator writes the new address into the configuration, and the agents read it. An agent
    that is restarted also reads it."""
    with lib.Lab(2) as lab:
        lab.start_master()
        files = [lab.folder / f"agent-{host}.conf" for host in (0, 1)]
        for host, file in enumerate(files):
            file.write_text("[agent]\n", "utf-8")
            lab.start_agent(host, options=["--config", file])
        run = Run(lab, (0, 1, 1))
        old = lab.master
        frozen = run.peers[0]
        run.ask(frozen)
        lab.drop(old)
        wake(frozen)
        lab.start_master()
        for host, file in enumerate(files):
            file.write_text(f"[masters]\n{old.address} = {lab.master.address}\n", "utf-8")
            lab.agents[host].process.send_signal(signal.SIGHUP)
        run.good(0, "a master that moves by configuration")
        run.again(0, "the next operation")
        restart_agent(lab, 1, options=["--config", files[1]])
        run.again(1, "an agent dies after the master's move")
        newcomer = lab.start_peer(11, 0, master=old.address)
        newcomer.expect("create")
        newcomer.send("connect")
        admit(run, newcomer, lib.together(run.peers, f"until world={len(run.peers) + 1}"))
        check(True, "a master moves, agents read the address from their configuration, and no call fails")
        lab.check_alive()


def agents_after_move(run, name):
    """The restarted agents do not know where the master has moved; its name still resolves to the
    first address."""
    lab = run.lab
    for host in (1, 0):
        restart_agent(lab, host)
        run.again(1, f"the agent of host {host} dies after a master's move")
        run.again(0, "the next operation")
    run.ask(run.peers[0])
    restart_agent(lab, 1)
    wake(run.peers[0])
    run.good(1, "an agent dies amid an operation after a master's move")
    run.again(1, "the next operation")
    run.count_peers()
    newcomer = lab.start_peer(10, 1, master=name)
    newcomer.expect("create")
    newcomer.send("connect")
    admit(run, newcomer, lib.together(run.peers, f"until world={len(run.peers) + 1}"))
    check(True, "agents die after a master's move: the next agents find the master, and so do newcomers")


def stale_master(run):
    lab = run.lab
    old = lab.master
    frozen = run.peers[0]
    run.ask(frozen)
    old.process.send_signal(signal.SIGSTOP)
    lab.start_master()
    for host in (0, 1):
        set_master(lab, host, "--now", old.address, lab.master.address)
    wake(frozen)
    run.good(0, "a master is replaced while it stands still")
    run.ask(frozen)
    old.process.send_signal(signal.SIGCONT)
    wake(frozen)
    run.good(0, "the old master wakes")
    run.count_peers()
    # an agent that was sent to the wrong master finds the right one again
    set_master(lab, 1, "--now", lab.master.address, old.address)
    run.again(0, "an agent asks the old master")
    deadline = time.monotonic() + lib.WAIT
    while not any("newer master" in x for x in old.log_lines()) and time.monotonic() < deadline:
        time.sleep(0.01)
    said = [x for x in old.log_lines() if "newer master" in x]
    check(said, f"an old master that wakes gets no agent and logs the newer master: {said[:1]}",
          old.log_lines()[-5:])
    run.again(0, "the next operation")
    run.count_peers()


def master_stands_still():
    """The master is stopped for three lengths of time: shorter than any agent waits, longer than
    some agents wait, and longer than all of them wait."""
    with lib.Lab(2) as lab:
        lab.start_master(listen="[::]")
        for host in (0, 1):
            lab.start_agent(host)
        run = Run(lab, (0, 0, 1, 1))
        stop = lab.master.process.send_signal
        for seconds in (1.5, 2.4, 5.5):
            frozen = run.peers[2]
            run.ask(frozen)
            stop(signal.SIGSTOP)
            wake(frozen)
            time.sleep(seconds)
            stop(signal.SIGCONT)
            run.good(0, f"a master that stood still for {seconds} s amid an operation")
            run.ask(but=frozen)
            stop(signal.SIGSTOP)
            time.sleep(seconds)
            run.ask_late(frozen)
            stop(signal.SIGCONT)
            run.good(0, f"a master that stood still for {seconds} s before an operation")
            run.again(0, "the next operation")
        run.count_peers()
        check(True, "a master is stopped for a while, and no call fails")
        lab.check_alive()


def master_found_by_a_newcomer_first():
    """The new master has no journal, and the members' agents connect late. Before they
    connect, a newcomer founds another run."""
    for dies in (False, True):
        with lib.Lab(2) as lab:
            lab.start()
            run = Run(lab, (0, 0))
            run.ask(but=run.peers[1])
            old = lab.agents[0]
            if dies:  # the members' processes are found late, by an agent that already knows the newcomer
                for peer in run.peers:
                    os.kill(peer.pid, signal.SIGSTOP)
                restart_agent(lab, 0, number=signal.SIGKILL)
            else:
                old.process.send_signal(signal.SIGSTOP)
            restart_master(lab)
            newcomer = lab.start_peer(60, 0 if dies else 1)
            for call in ("create", "connect", "update"):
                newcomer.expect(call)
            if dies:
                for peer in run.peers:
                    wake(peer)
            else:
                old.process.send_signal(signal.SIGCONT)
            run.ask_late(run.peers[1])
            run.good(int(dies), "members that are late for a new master")
            run.again(0, "the next operation")
            answer = newcomer.call("update")
            check(answer["code"] == MASTER_CONNECTION_FAILED and "connect again" in answer["text"],
                  "a newcomer's run gives way to the earlier run", answer)
            newcomer.send("connect")
            while not all(a["pending"] for a in lib.together(run.peers, "pending")):
                pass
            lib.together(run.peers, "update")
            check(newcomer.read()["code"] == SUCCESS, "the newcomer whose run gave way connects again")
            for a in lib.together([*run.peers, newcomer], "attr"):
                if a["global"] != 3:
                    raise Failed(f"world size {a['global']}, not 3")
            lab.check_alive()


def master_for_good():
    with lib.Lab(2) as lab:
        lab.start(agent_options=["--master-lease-ms", SHORT_LEASE_MS])
        run = Run(lab, (0, 1, 1))
        peers = run.peers
        run.ask(but=peers[2], retry=0)
        died = time.monotonic_ns()
        lab.drop(lab.master)
        answers = [p.read() for p in peers[:2]]
        answers.append(peers[2].call(f"reduce {run.line(2, 1, 1, retry=0)}"))
        check(all(a["code"] == MASTER_CONNECTION_FAILED and a["check"] == "ok" for a in answers),
              f"a master does not come back: {answers[0]['text']}", answers)
        check(min(a["end"] for a in answers) >= died + (SHORT_LEASE_MS - 50) * 10**6,
              "calls fail only after the lease of a master that does not come back", answers)
        lab.start_master(port=lab.master.port)
        for peer in peers:
            peer.send("connect", f"until world={len(peers)}")
        answers = [p.read() for p in peers for _ in range(2)]
        check(all(a["code"] == SUCCESS for a in answers),
              "peers join the next master at the same address after the lease",
              answers)
        run.again(0, "an operation with a new master")
        lab.check_alive()


def test():
    agent_deaths()
    agent_deaths_on_route("direct", lib.QUANTIZED["int8"])
    agent_deaths_on_route("tree", "")
    agent_for_good()
    master_deaths(state=False)
    master_deaths(state=True)
    master_moves()
    master_moves_by_configuration()
    master_stands_still()
    master_found_by_a_newcomer_first()
    master_for_good()


lib.run(test, 400)
