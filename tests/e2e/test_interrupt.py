#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pcclInterrupt in a signal handler ends any blocked call of the peer. The peer's buffers are
unchanged, the others go on without the peer, and the peer can join again."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import lib
from lib import BUILD, INTERRUPTED, RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge, together

OP = "type=f32 op=sum count=100000 tag={} seed=3 ids={}"
# Calls that block while no other peer calls anything. {} is an operation.
CALLS = {"update": "pcclUpdateTopology", "optimize": "pcclOptimizeTopology",
         "pending": "pcclArePeersPending", "reduce place=in {}": "pcclAllReduce",
         "reduce place=out mem=shared {}": "pcclAllReduce of registered memory",
         "submit+await": "pcclAwaitAsyncReduce",
         "several n=4 window=2 {}": "pcclAllReduceMultipleWithRetry",
         "sync": "pcclSynchronizeSharedState"}
TOP = pathlib.Path(__file__).resolve().parents[2]
# The parts that the example leaves to the reader: address, group, streams.
CREATE = """
comm = ctypes.c_void_p()
params = struct.pack("=I4B16xH2xII", 0, *map(int, sys.argv[2].split(".")), int(sys.argv[3]), 0, 1)
if pccl.pcclInitExtended() or pccl.pcclCreateCommunicator(params, ctypes.byref(comm)):
    sys.exit("create")
"""
BLOCK = """
try:
    print("blocks", flush=True)
    code = pccl.pcclConnect(comm)  # the member does not vote
    sys.exit(f"code {code} came back")
except KeyboardInterrupt:
    print("Ctrl-C")
"""
LARGE = "reduce place=in type=f32 op=sum count=4000000 tag={} seed={} ids={}"
ROUNDS = 12


def sleeps_in(peer):
    """Returns the system call in which the peer sleeps, or None."""
    text = pathlib.Path(f"/proc/{peer.pid}/syscall").read_text(encoding="ascii")
    return None if text.startswith("running") else text.split()[0]


def interrupt(peer, line):
    """Interrupts a blocked call and returns its answer."""
    lib.until(lambda: sleeps_in(peer), "the peer does not wait for commands")
    idle = sleeps_in(peer)
    peer.send(line)
    lib.until(lambda: sleeps_in(peer) not in (None, idle), f"{line} does not block")
    os.kill(peer.pid, signal.SIGUSR2)
    return peer.read()


def join_again(peers, newcomer):
    newcomer.send("connect", f"until world={len(peers)}")
    others = [p for p in peers if p is not newcomer]
    together(others, f"until world={len(peers)}")
    return [newcomer.read(), newcomer.read()]


def reduce_all(peers, tag, retry=0):
    return together(peers, "reduce place=in " + OP.format(tag, ids_of(peers)) + f" retry={retry}")


def blocked(peers, number, line):
    victim = peers[number % len(peers)]
    others = [p for p in peers if p is not victim]
    what = CALLS[line]
    op = OP.format(100 * number, ids_of(peers))
    if line == "submit+await":
        victim.expect(f"submit slot=0 place=in {op}")
        answer = interrupt(victim, "await slot=0")
    elif line.startswith("several"):
        answer = interrupt(victim, line.format(op))
        answer = [answer] + [victim.read() for _ in range(3)]
        answer = next(a for a in answer if "code" in a)
    else:
        answer = interrupt(victim, line.format(op))
    check(answer["code"] == INTERRUPTED and answer.get("check", "ok") == "ok"
          and "pcclConnect" in answer["text"],
          f"{what} ends when it is interrupted, buffers are unchanged", answer)
    answers = together(others, f"until world={len(others)}")
    check([a["world"] for a in answers] == [len(others)] * 2,
          f"{what}: the interrupted peer leaves the run", answers)
    wrong = judge(reduce_all(others, 100 * number + 50, 5))
    check(not wrong, f"{what}: the others go on after an interrupt", wrong)
    answers = join_again(peers, victim)
    check([a["code"] for a in answers] == [SUCCESS] * 2, f"{what}: the interrupted peer joins again", answers)
    wrong = judge(reduce_all(peers, 100 * number + 60))
    check(not wrong, f"{what}: the interrupted peer reduces with the others again", wrong)


def standing_still(peers, daemon, who, lines, tag):
    """Stops the agent of host 0, or the master, while a call of the peer on host 0 is blocked. An
    interrupt still ends the call, and the others go on when the daemon runs again. Returns the
    durations."""
    victim, *others = peers
    times = []
    for number, line in enumerate(lines):
        what = f"with {who} that is stopped, {line.split()[0]}"
        if line == "connect":
            victim.expect("destroy")
            together(others, f"until world={len(others)}")
            victim.expect("create")
        lib.until(lambda: sleeps_in(victim), "the peer does not wait for commands")
        idle = sleeps_in(victim)
        victim.send(line.format(OP.format(tag + 10 * number, ids_of(peers))))
        lib.until(lambda: sleeps_in(victim) not in (None, idle), f"{line} does not block")
        # After this pause the agent has certainly passed the call on. Without the pause the
        # interrupt would end the call, too, but perhaps before the agent passes it on.
        time.sleep(0.2)
        daemon.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        os.kill(victim.pid, signal.SIGUSR2)
        answer = victim.read()
        took = time.monotonic() - begin
        times.append(took)
        daemon.send_signal(signal.SIGCONT)
        check(answer["code"] == INTERRUPTED and took < 1 and answer.get("check", "ok") == "ok"
              and "pcclConnect" in answer["text"],
              f"{what}: an interrupt ends the call in {took:.2f} s", answer)
        answers = together(others, f"until world={len(others)}")
        check([a["world"] for a in answers] == [len(others)] * 2,
              f"{what}: the interrupted peer leaves the run", answers)
        answers = join_again(peers, victim)
        check([a["code"] for a in answers] == [SUCCESS] * 2,
              f"{what}: the interrupted peer joins again", answers)
        wrong = judge(reduce_all(peers, tag + 5 + 10 * number))
        check(not wrong, f"{what}: the interrupted peer reduces with the others again", wrong)
    return times


def connecting(lab, peers):
    newcomer = lab.start_peer(9, 1)
    newcomer.expect("create")
    answer = interrupt(newcomer, "connect")
    check(answer["code"] == INTERRUPTED, "pcclConnect ends when it is interrupted", answer)
    answers = join_again([*peers, newcomer], newcomer)
    check([a["code"] for a in answers] == [SUCCESS] * 2,
          "a peer whose pcclConnect was interrupted connects later", answers)
    newcomer.expect("destroy")
    lab.drop_peer(newcomer)
    together(peers, f"until world={len(peers)}")


def under_way(peers, rng, rounds=ROUNDS, words=""):
    """Interrupts operations that all peers have called. The peer, like the others, has either the
    result or an unchanged buffer."""
    seen = set()
    for number in range(rounds):
        for peer in peers:
            peer.send(LARGE.format(9000 + number, number, ids_of(peers)) + words)
        time.sleep(rng.random() * (0.05 if number % 2 else 0.5))
        os.kill(peers[0].pid, signal.SIGUSR2)
        answers = [peer.read() for peer in peers]
        codes = [a["code"] for a in answers]
        seen.add(codes[0])
        good = codes[0] in (SUCCESS, INTERRUPTED) and set(codes[1:]) in (
            {SUCCESS}, {RANK_CONNECTION_LOST}) and all(a["check"] == "ok" for a in answers)
        if codes[0] == SUCCESS:  # the interrupt ends the next call
            good = good and set(codes) == {SUCCESS}
            answers.append(peers[0].call("update"))
            good = good and answers[-1]["code"] == INTERRUPTED
        if not good:
            check(False,
                  "an interrupted operation that is under way is done for all or for none, "
                  f"round {number}", answers)
            return
        together(peers[1:], f"until world={len(peers) - 1}")
        join_again(peers, peers[0])
    check(True, f"interrupted operations that are under way are done for all or for none, {sorted(seen)}{words}")


def example():
    """Returns the Python example of pcclInterrupt(3)."""
    text = (TOP / "man/man3/pcclInterrupt.3").read_text("utf-8")
    code = re.search(r"^import ctypes.*?(?=^\.Ed$)", text, re.M | re.S)[0]
    return "import struct, sys\n" + code.replace('"libpccl-shim.so"', "sys.argv[1]").replace(
        "# comm = ctypes.c_void_p(), set by pcclCreateCommunicator", CREATE)


def python(lab):
    """Checks that Ctrl-C ends a blocked call of a Python program."""
    peer = lab.start_peer(11, 0)
    peer.expect("create")
    peer.expect("connect")
    host, port = lab.master.address.rsplit(":", 1)
    program, log = lab.spawn("python", 0, [
        sys.executable, "-c", example() + BLOCK,
        BUILD / "libpccl-shim/.libs/libpccl-shim.so", host, port],
        stdout=subprocess.PIPE, env={"PCCL_AGENT_SOCKET": str(lab.agents[0].socket)})
    started = program.stdout.readline()
    lib.until(lambda: sleeps_in(program), "the program does not block")
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=lib.WAIT)
    check(started == b"blocks\n" and out == b"Ctrl-C\n" and program.returncode == 0,
          "Ctrl-C ends a blocked call of a Python program", (out, log.read_text("utf-8")))
    peer.expect("destroy")
    lab.drop_peer(peer)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers([0, 1, 1])
        for peer in peers:
            peer.expect("state revision=3")
            peer.expect("tensors name=w type=f32 count=1000 seed=1 like=0")
        for number, line in enumerate(CALLS):
            blocked(peers, number, line)
        standing_still(peers, lab.agents[0].process, "an agent",
                       ("update", "pending", "reduce place=in {}", "sync", "connect"), 20000)
        times = standing_still(peers, lab.master.process, "a master",
                               ("update", "reduce place=in mem=shared {}"), 21000)
        check(min(times) < 0.2, "an interrupt does not wait for the master to process the leave", times)
        connecting(lab, peers)
        under_way(peers, random.Random(4))
        for peer in list(peers):
            peer.expect("destroy")
            lab.drop_peer(peer)
        if not lib.sanitized():  # Python does not load the sanitizer
            python(lab)
        lab.check_alive()
    with lib.Lab(4) as lab:
        lab.start(master_options=("--algorithm", "direct"))
        peers = lab.start_peers(range(4))
        lib.await_mesh(lab, range(4))
        under_way(peers, random.Random(5), 4, f" {lib.QUANTIZED['int8']}")
        under_way(peers, random.Random(6), 4)
        lab.check_alive()


lib.run(test, 240)
