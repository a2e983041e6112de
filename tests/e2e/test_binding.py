#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers over a binding that was written for PCCL 1.0 (binding.py) go on when other trainers are
killed, join or end, or when the garbage collector's thread destroys a communicator."""

import pathlib
import random
import select
import subprocess
import sys
import time

import lib
from lib import check

BINDING = pathlib.Path(__file__).with_name("binding.py")
DEATHS = 8


class Trainers:
    def __init__(self, lab):
        self.lab, self.all, self.started = lab, [], 0
        # the name that programs for PCCL 1.0 look for
        self.library = lab.folder / "libpccl.so"
        self.library.symlink_to(lib.BUILD / "libpccl-shim/.libs/libpccl-shim.so.1")
        self.weights = {}  # by revision

    def start(self):
        host = self.started % 2
        self.started += 1
        process, log = self.lab.spawn(
            f"binding-{self.started}", host,
            [sys.executable, BINDING, self.library, self.lab.master.address, self.started],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"PCCL_AGENT_SOCKET": str(self.lab.agents[host].socket)})
        peer = lib.Peer(process, self.started, host, log)
        self.lab.peers.append(peer)
        self.all.append(peer)
        return peer

    def next_step(self, peer):
        while True:
            answer = peer.read()
            if answer["what"] == "step":
                break
        revision, weights = answer["revision"], answer["weights"]
        if answer["world"] > 1 and self.weights.setdefault(revision, weights) != weights:
            raise lib.Failed(f"the weights of revision {revision} differ")
        return answer

    def go_on(self, steps=3):
        """Waits until each trainer has made this many more steps in a row with all trainers in the run."""
        for peer in self.all:
            while peer.rest or select.select([peer.process.stdout], [], [], 0)[0]:
                self.next_step(peer)
        for peer in self.all:
            done = 0
            while done < steps:
                done = done + 1 if self.next_step(peer)["world"] == len(self.all) else 0

    def kill(self, peer):
        peer.kill()
        self.all.remove(peer)
        self.lab.drop_peer(peer)


def deaths(lab, trainers, rng):
    for _ in range(DEATHS):
        time.sleep(rng.uniform(0, 0.05))  # so that the trainer dies in a random call
        trainers.kill(rng.choice(trainers.all))
        trainers.go_on()
        trainers.start()
        trainers.go_on()
    check(True, f"two trainers go on each time after the third was killed, {DEATHS} times")
    last, *others = trainers.all
    for peer in others:
        trainers.kill(peer)
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == 1,
              "the master does not notice two deaths")
    for _ in others:
        trainers.start()
    trainers.go_on()
    check(trainers.all[0] is last, "a trainer that was left alone goes on when others join")


def destroyed(peer, thread):
    while True:
        answer = peer.read()
        if answer["what"] == "destroyed":
            return check(answer["code"] == lib.SUCCESS and answer["thread"] == thread,
                         f"a communicator is destroyed by the {thread} thread", answer)


def collected(trainers):
    peer = trainers.all.pop()
    peer.send("collect")
    destroyed(peer, "other")
    trainers.go_on()
    check(peer.process.poll() is None,
          "the other trainers go on at once when one trainer has destroyed its communicator, "
          "although the process of this trainer still runs")
    peer.send("connect")
    trainers.all.append(peer)
    trainers.go_on()
    check(True, "the trainers go on together after the destroyed communicator was replaced")


def ended(trainers):
    peer = trainers.all.pop()
    peer.send("end")
    destroyed(peer, "main")
    check(peer.process.wait(lib.WAIT) == 0,
          "an interpreter ends after it has destroyed the communicator", peer.process.returncode)
    trainers.go_on()
    check(True, "the other trainers go on after one has ended")


def test():
    if lib.sanitized():
        raise lib.Skipped("Python does not load the sanitizer")
    with lib.Lab(2) as lab:
        lab.start()
        trainers = Trainers(lab)
        for _ in range(3):
            trainers.start()
        trainers.go_on()
        deaths(lab, trainers, random.Random(1))
        collected(trainers)
        ended(trainers)
        lab.check_alive()


lib.run(test, 120)
