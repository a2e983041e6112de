#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls that can never meet end at once. Votes of this kind succeed and change nothing, so that the
training loop in pccl.h works for newcomers and after deaths. All other calls of this kind are
refused to all peers."""

import os
import pathlib
import re
import shutil
import subprocess

import lib
from lib import INVALID_USAGE, RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge

TOP = pathlib.Path(__file__).resolve().parents[2]
OP = "type=f32 op=sum count=1000"
SOON = 5  # seconds; no call here waits for another peer
TOGETHER = 20  # steps with the same world size after which a trainer reports that it has met the others

# The parts that the documents leave to the reader.
PROGRAM = r"""
#include <arpa/inet.h>
#include <err.h>
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pcclComm_t *comm;
static float numbers[1000], *gradients = numbers, *weights = numbers, momentum[1000];
static const size_t n = 1000;
static pcclReduceDescriptor_t desc = {
	.count = 1000, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};
static int last = -1, steps;

/* The end of a step. */
static void count_step(void)
{
	int world = -1;

	if (pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world) != pcclSuccess)
		errx(1, "%s", pcclGetLastError());
	steps = world == last ? steps + 1 : 0;
	last = world;
	if (steps == TOGETHER) {
		printf("met world=%d\n", world);
		fflush(stdout);
	}
	usleep(1000);
}

static void compute(float *v) { v[0] = 1; }
static void apply(const float *v) { (void)v; count_step(); }
static void train_one_step(void) { count_step(); }
static void update_topology(pcclComm_t *c) { (void)pcclUpdateTopology(c); }

int main(int argc, char **argv)
{
	const int training = 1;
	pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
	pcclResult_t r = pcclSuccess;

	(void)argc; (void)r; (void)momentum; (void)weights; (void)n; (void)gradients; (void)desc;
	(void)compute; (void)apply; (void)train_one_step; (void)update_topology;
	params.master_address.inet.protocol = inetIPv4;
	if (inet_pton(AF_INET, argv[1], params.master_address.inet.ipv4.data) != 1)
		errx(2, "address");
	params.master_address.port = (unsigned short)atoi(argv[2]);
	CONNECT
	LOOP
	return 0;
}
"""
CONNECT = """
	if (pcclInit() || pcclCreateCommunicator(&params, &comm) || pcclConnect(comm))
		errx(1, "%s", pcclGetLastError());
"""


def header_loop():
    """Returns the program at the top of pccl.h, without its parameters."""
    text = (TOP / "libpccl-shim/include/pccl.h").read_text("utf-8")
    code = re.search(r"^ \*\t\S.*?^ \*\tpcclDestroyCommunicator\(comm\);$", text, re.M | re.S)[0]
    return re.sub(r"^ \*", "", code, flags=re.M)


def manual_loop():
    """The example of pcclSynchronizeSharedState(3)."""
    text = (TOP / "man/man3/pcclSynchronizeSharedState.3").read_text("utf-8")
    return re.search(r"^\.Sh EXAMPLES$.*?^\.Bd [^\n]*\n(.*?)^\.Ed$", text, re.M | re.S)[1]


def build(lab, name, connect, loop):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if not compiler:
        raise lib.Skipped("there is no compiler")
    source = lab.folder / f"{name}.c"
    source.write_text(f"#define TOGETHER {TOGETHER}\n"
                      + PROGRAM.replace("CONNECT", connect).replace("LOOP", loop), "utf-8")
    libs = lib.BUILD / "libpccl-shim/.libs"
    done = subprocess.run(
        [compiler, "-std=gnu11", "-Wall", "-I", TOP / "libpccl-shim/include", "-o",
         lab.folder / name, source, libs / "libpccl-shim.so", f"-Wl,-rpath,{libs}",
         *(["-fsanitize=address,undefined"] if lib.sanitized() else [])],
        capture_output=True, text=True, check=False)
    if done.returncode:
        raise lib.Failed(f"{name} of the documents does not compile: {done.stderr}")
    return lab.folder / name


def start(lab, program, number, host):
    address, port = lab.master.address.rsplit(":", 1)
    process, log = lab.spawn(f"trainer-{number}", host, [program, address, port],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={"PCCL_AGENT_SOCKET": str(lab.agents[host].socket)})
    trainer = lib.Peer(process, number, host, log)
    lab.peers.append(trainer)
    return trainer


def met(trainers, world):
    """Waits until all trainers have taken many steps in a row in a run of this size."""
    for trainer in trainers:
        while trainer.read()["world"] != world:
            pass


def documented(name, connect, loop):
    with lib.Lab(2) as lab:
        lab.start()
        program = build(lab, name, connect, loop)
        trainers = [start(lab, program, 0, 0)]
        met(trainers, 1)
        for n in range(1, 4):
            trainers.append(start(lab, program, n, n % 2))
            met(trainers, n + 1)
        check(True, f"{name}: three newcomers join one after the other")
        lab.drop_peer(trainers.pop(1))
        met(trainers, 3)
        check(True, f"{name}: the trainers go on after a death")
        trainers.append(start(lab, program, 9, 1))
        trainers.append(start(lab, program, 10, 0))
        met(trainers, 5)
        check(True, f"{name}: two newcomers join at once after a death")
        lab.check_alive()


def header():
    documented("header", "", header_loop())


def manual():
    documented("manual", CONNECT, manual_loop())


# --------------------------------------------------------------------- one call of each


def answers(calls):
    """Makes all calls at once and returns their answers. calls: pairs (peer, command)."""
    for peer, line in calls:
        peer.send(line)
    return [peer.read() for peer, _ in calls]


def go_on(peers, what):
    wrong = judge(lib.together(peers, f"reduce {OP} tag=77 ids={ids_of(peers)} verify=1"))
    check(not wrong, f"{what}: all peers go on afterwards", wrong)


def refused(got, what, *words):
    check(all(a["code"] == INVALID_USAGE for a in got), f"{what}: all peers get the refusal", got)
    check(all(w in a["text"] for a in got for w in words), f"{what}: the refusal names the waiting calls",
          [a["text"] for a in got])


PLACES = ((0, 0, 1), (0, 0, 0), (0, 1, 1))


def mixed():
    for places in PLACES:
        with lib.Lab(2) as lab:
            lab.start()
            p, q, r = peers = lab.start_peers(places)
            where = f"hosts {places}"
            got = answers([(p, f"reduce {OP} tag=1"), (q, f"reduce {OP} tag=2"),
                           (r, f"reduce {OP} tag=2")])
            refused(got, f"{where}: a call with two different tags", "tag 1", "tag 2", "pid ")
            check(all(a["check"] == "ok" for a in got),
                  f"{where}: buffers are unchanged by the refused call", got)
            go_on(peers, where)

            q.send(f"reduce {OP} tag=1 ids={ids_of(peers)} verify=1")
            r.send(f"reduce {OP} tag=1 ids={ids_of(peers)} verify=1")
            got = p.call("update")
            check(got["code"] == SUCCESS and got["world"] == 3,
                  f"{where}: an update leaves the topology unchanged", got)
            got = p.call("pending")
            check(got["code"] == SUCCESS and got["pending"] == 0,
                  f"{where}: no peer is pending", got)
            p.send(f"reduce {OP} tag=1 ids={ids_of(peers)} verify=1")
            wrong = judge([peer.read() for peer in peers])
            check(not wrong, f"{where}: a call after a vote meets the others' calls", wrong)

            got = answers([(p, f"submit slot=0 {OP} tag=5"), (q, f"submit slot=0 {OP} tag=6")])
            check(all(a["code"] == SUCCESS for a in got),
                  f"{where}: two operations with different tags are in flight", got)
            got = answers([(p, "await slot=0"), (q, "await slot=0"), (r, f"reduce {OP} tag=6")])
            refused(got, f"{where}: awaiting two different tags", "tag 5", "tag 6")
            go_on(peers, where)

            p.expect(f"submit slot=0 {OP} tag=5 ids={ids_of(peers)} verify=1")
            q.send(f"reduce {OP} tag=6 ids={ids_of(peers)} verify=1")
            r.send(f"reduce {OP} tag=6 ids={ids_of(peers)} verify=1")
            p.send(f"reduce {OP} tag=6 ids={ids_of(peers)} verify=1")
            wrong = judge([peer.read() for peer in peers])
            check(not wrong,
                  f"{where}: a peer may call another operation before it awaits the first one", wrong)
            q.send(f"reduce {OP} tag=5 ids={ids_of(peers)} verify=1")
            r.send(f"reduce {OP} tag=5 ids={ids_of(peers)} verify=1")
            p.send("await slot=0")
            wrong = judge([peer.read() for peer in peers])
            check(not wrong, f"{where}: the first operation succeeds when it is awaited later", wrong)
            lab.check_alive()


def batches():
    """Tests pcclAllReduceMultipleWithRetry with tags that do not overlap."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        got = answers([(peers[k], f"many n=4 {OP} tag={10 * k}") for k in range(2)])
        rest = [peers[k].read() for k in range(2) for _ in range(3)]
        refused(got + rest, "operations in flight")
        go_on(peers, "operations in flight")


def shared_state():
    with lib.Lab(2) as lab:
        lab.start()
        p, q, r = peers = lab.start_peers((0, 1, 1))
        lib.together(peers, "state revision=0")
        lib.together(peers, "tensors n=2 count=1000 seed=1")
        got = answers([(p, "sync"), (q, f"reduce {OP} tag=1"), (r, f"reduce {OP} tag=1")])
        refused(got, "a synchronization and an all-reduce", "synchronization of group 0", "tag 1")
        q.send("sync")
        r.send("sync")
        got = p.call("update")
        check(got["code"] == SUCCESS and got["world"] == 3, "an update succeeds while others synchronize", got)
        got = [p.call("sync"), q.read(), r.read()]
        check(all(a["code"] == SUCCESS for a in got),
              "a synchronization after the update meets the others' calls", got)
        p.send("sync")
        r.send(f"reduce {OP} tag=1")
        got = q.call("update")
        check(got["code"] == SUCCESS, "three peers in three calls: the update succeeds", got)
        q.send(f"reduce {OP} tag=2")
        refused([p.read(), q.read(), r.read()], "three peers in three calls, after the update",
                "tag 1")
        go_on(peers, "three peers in three calls")
        lab.check_alive()


def loop_while_pending():
    """A loop that updates the topology as long as peers are pending comes to an end, whatever calls
    the other peers wait in."""
    with lib.Lab(2) as lab:
        lab.start()
        p, q = lab.start_peers((0, 1))
        lib.together((p, q), "state revision=0")
        lib.together((p, q), "tensors n=2 count=1000 seed=1")
        r = lab.start_peer(7, 1)
        r.send("create", "connect")
        lib.until(lambda: all(a["pending"] for a in lib.together((p, q), "pending")),
                  "the newcomer is not pending")
        for what in ("sync", f"reduce {OP} tag=1 ids={ids_of((p, q))} verify=1"):
            p.send(what)
            got = q.call("pending")
            check(got["code"] == SUCCESS and got["pending"] == 0,
                  f"no peer is pending while another peer waits in {what.split()[0]}", got)
            q.send(what)
            wrong = judge([p.read(), q.read()])
            check(not wrong, "the peer that asked then meets the call of the other peer", wrong)
        p.send("update")
        got = q.call("pending")
        check(got["code"] == SUCCESS and got["pending"] == 1,
              "the newcomer is pending while another peer updates", got)
        got = [q.call("update"), p.read()]
        check(all(a["code"] == SUCCESS and a["world"] == 3 for a in got), "the pending newcomer joins", got)
        lab.check_alive()


def voting(lab):
    rows = lib.ask("--master", lab.master, "peers")
    return sum(row["state"] == "VOTE_ACCEPT_NEW_PEERS" for row in rows)


def groups():
    """Groups vote on the topology together, and therefore wait for each other."""
    with lib.Lab(2) as lab:
        lab.start()
        p, q = lab.start_peers((0, 1), form=lambda *_: None)
        s, t = lab.start_peers((0, 1), group=1, first=5, form=lambda *_: None)
        every = [p, q, s, t]
        lib.form_run(every)
        s.send(f"reduce {OP} tag=1 ids={ids_of((s, t))} verify=1")
        for x in (p, q):
            x.send("update")
        lib.until(lambda: voting(lab) == 2, "the master does not get two votes")
        t.send("update")
        got = [x.read() for x in (p, q, t)]
        check(all(a["code"] == SUCCESS and a["world"] == 4 for a in got),
              "an all-reduce of another group does not delay a vote", got)
        t.send(f"reduce {OP} tag=1 ids={ids_of((s, t))} verify=1")
        wrong = judge([s.read(), t.read()])
        check(not wrong, "an all-reduce succeeds after a vote of other peers", wrong)
        got = answers([(x, "update") for x in every])
        check(all(a["code"] == SUCCESS for a in got), "all groups vote together again", got)
        lab.check_alive()


def one_thread():
    """One thread connects two communicators in one run. The second communicator is refused. A
    communicator that another thread connects can join, whichever thread created it."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        for made, what in (("main", ""), ("thread", ", made by a thread that has ended,")):
            got = peers[0].call(f"second made={made}")
            check(got["code"] == INVALID_USAGE and "thread" in got["text"],
                  f"a second communicator of one thread{what} is refused", got)
            go_on(peers, "one thread")
            peers[1].send(f"until world={len(peers) + 1}")
            got = peers[0].call(f"second made={made} connected=thread")
            check(got["code"] == SUCCESS, f"a communicator of another thread{what} joins", got)
            if got["code"] != SUCCESS:
                return
            check(peers[1].read()["code"] == SUCCESS, "the others admit a second communicator of one process")
            lib.together(peers, f"until world={len(peers)}")
            go_on(peers, "two threads")
        lab.check_alive()


MANY = 100  # operations in flight, more than there are slots


def backlog():
    """A peer also counts as waiting if its next operation cannot start before an earlier operation
    ends."""
    for places in ((0, 1), (0, 0), (0, 0, 1)):
        with lib.Lab(2) as lab:
            lab.start()
            p, *others = peers = lab.start_peers(places)
            where = f"hosts {places}, with {MANY} in flight"
            for block in ("await slot=0", f"reduce {OP} tag=1", f"reduce {OP} tag=500"):
                for k in range(MANY):
                    p.expect(f"submit slot={k} {OP} tag={100 + k}")
                p.send(block)
                got = answers([(x, "update") for x in others])
                check(all(a["code"] == SUCCESS and a["world"] == len(peers) for a in got),
                      f"{where}, {block}: an update leaves the topology unchanged", got)
                # The first call ends the operations that have slots, the second call ends the
                # others.
                p.send(*(f"await slot={k}" for k in range(block.startswith("await"), MANY)))
                got = answers([(x, f"reduce {OP} tag=1") for x in others])
                got += answers([(x, f"reduce {OP} tag=2") for x in others])
                got += [p.read() for _ in range(MANY + (not block.startswith("await")))]
                refused(got, f"{where}, {block}: a tag that only the others use")
                check(all(a["check"] == "ok" for a in got),
                      f"{where}: buffers are unchanged by the refused calls", got)
                go_on(peers, where)
            lab.check_alive()


NOTHING = "type=f32 op=sum count=0"


def nothing(peer, what, line=f"reduce {NOTHING} tag=5", n=1):
    """The peer calls with count 0 and gets its answers at once. The other peers do not notice this
    call."""
    peer.send(line)
    got = [peer.read(SOON) for _ in range(n)]
    check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in got),
          f"{what}: the call with count 0 ends at once", got)


def counts_of_nothing():
    """A call with count 0 does not take part in the operation that others call with its tag. The
    others wait for the real call of this peer, but no longer than they would wait for a call of any
    other peer."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        got = lib.together(peers, f"reduce {NOTHING} tag=5", SOON)
        check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in got),
              "an operation succeeds in which all peers give count 0", got)
        for odd in (peers[2], peers[1]):
            others = [p for p in peers if p is not odd]
            where = f"peer {odd.number} gives count 0"
            for p in others:
                p.send(f"reduce {OP} tag=5 ids={ids_of(peers)} verify=1")
            nothing(odd, where)
            got = odd.call("update")
            check(got["code"] == SUCCESS and got["world"] == 3,
                  f"{where}, then updates: the topology is unchanged", got)
            odd.send(f"reduce {OP} tag=6")
            got = [p.read() for p in peers]
            refused(got, f"{where}, then calls another tag", "tag 5", "tag 6")
            check(all(a["check"] == "ok" for a in got),
                  f"{where}: buffers are unchanged by the refused call", got)

            for p in others:
                p.send(f"reduce {OP} tag=5 ids={ids_of(peers)} verify=1")
            odd.expect(f"submit slot=0 {NOTHING} tag=5")
            nothing(odd, f"{where}, without waiting", "await slot=0")
            odd.send(f"reduce {OP} tag=5 ids={ids_of(peers)} verify=1")
            wrong = judge([p.read() for p in peers])
            check(not wrong, f"{where}: its next call with this tag meets the others'", wrong)

            for p in others:
                p.send(f"several n=3 window=2 {OP} tag=5")
            nothing(odd, f"{where} three times", f"several n=3 window=2 {NOTHING} tag=5", 3)
            odd.send(f"reduce {OP} tag=9")
            refused([odd.read(), *(p.read() for p in others for _ in range(3))],
                    f"{where} three times, then calls another tag", "tag 9")
            go_on(peers, where)

        for p in peers[1:]:
            p.send(f"reduce {OP} tag=5")
        nothing(peers[0], "peer 0 gives count 0 and leaves")
        peers[0].expect("destroy")
        got = [p.read() for p in peers[1:]]
        check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok" for a in got),
              "peer 0 gives count 0 and leaves: the others get the error that it has left", got)
        go_on(peers[1:], "peer 0 gives count 0 and leaves")
        lab.check_alive()


def test():
    header()
    manual()
    mixed()
    batches()
    shared_state()
    loop_while_pending()
    groups()
    one_thread()
    backlog()
    counts_of_nothing()


lib.run(test, 240)
