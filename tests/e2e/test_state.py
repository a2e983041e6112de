#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pcclSynchronizeSharedState: who gets what, who is refused, what is moved, and what is left when
somebody dies in the middle of it.

In the middle means: all receivers have stopped themselves when the middle of a tensor was written,
so that nobody has everything."""

import signal
import time

import lib
from lib import (INVALID_USAGE, PENDING_ASYNC_OPS, RANK_CONNECTION_LOST, SUCCESS, Failed,
                 await_stop, check, ids_of, restart_agent, together, wake)

LEAF = 65536
POPULAR, RECEIVE, SEND = "popular", "receive", "send"

# name, words, bytes
TENSORS = (
    ("big", "type=f32 count=1000000", 4000000),
    ("shared", "type=bf16 count=500001 mem=shared", 1000002),
    ("odd", "type=u8 count=65537 shift=3", 65537),
    ("leaf", "type=f64 count=8192 mem=shared shift=24", 65536),
    ("one", "type=i16 count=1", 2),
    ("none", "type=f32 count=0", 0),
)
ALL = sum(size for _, _, size in TENSORS)


def give_state(peer, revision=0, like=0, tensors=TENSORS):
    """Fresh contents, the same for all who are alike; each has a tensor of its own besides."""
    peer.expect(f"state revision={revision}")
    for k, (name, words, _) in enumerate(tensors):
        peer.expect(f"tensors name={name} {words} seed={k} like={like}")
    peer.expect(f"tensors name=own type=u8 count=1000 like={peer.number + 1} differ=1")


def own_hashes(peers):
    return [a["hash"] for a in together(peers, "digest name=own")]


def sync_all(peers, lines):
    """Each peer its own words."""
    for peer, line in zip(peers, lines):
        peer.send(f"sync {line}")
    return [peer.read() for peer in peers]


def wrong_with(answers, revision=None, moved=None):
    """What is wrong with a synchronization that should have succeeded, or None. moved: (tx, rx) of
    each."""
    for k, a in enumerate(answers):
        if a["code"] != SUCCESS or a["check"] != "ok":
            return f"{k}: code {a['code']}, {a['check']}: {a['text']}"
    if len({a["hash"] for a in answers}) != 1:
        return f"contents differ: {[a['hash'] for a in answers]}"
    if revision is not None and {a["revision"] for a in answers} != {revision}:
        return f"revisions {[a['revision'] for a in answers]}, not {revision}"
    seen = [(a["tx"], a["rx"]) for a in answers]
    if moved is not None and seen != moved:
        return f"(tx, rx) {seen}, not {moved}"
    # what several peers of a host lack is sent to it once
    sent, received = sum(tx for tx, _ in seen), [rx for _, rx in seen]
    if not max(received) <= sent <= sum(received):
        return f"what was sent is not what was received: {seen}"
    return None


def good(answers, what, revision=None, moved=None):
    wrong = wrong_with(answers, revision, moved)
    check(not wrong, what, wrong)
    return not wrong


def must(answers, revision=None, moved=None):
    wrong = wrong_with(answers, revision, moved)
    if wrong:
        raise Failed(wrong)
    return answers


def kicked(answer, *words):
    return answer["code"] == INVALID_USAGE and all(w in answer["text"] for w in words)


class Fresh:
    """A run of its own on the hosts of a lab, whose ring goes by the order of peers."""

    def __init__(self, lab, places, env=None, options=()):
        self.lab = lab
        self.master = lab.start_master(options=options)
        self.peers = [lab.start_peer(k, host, env=(env or {}).get(k), ready=False)
                      for k, host in enumerate(places)]
        for peer in self.peers:
            peer.read()
        lib.form_ring(self.peers)

    def __enter__(self):
        return self.peers

    def __exit__(self, *_):
        for peer in self.peers:
            if peer in self.lab.peers:
                self.lab.drop_peer(peer)
        self.lab.end(self.master)


# ------------------------------------------------------------------------- who gets what


def what_is_moved(lab, places):
    """Three alike, one of which drifts."""
    where = f"on hosts {places}"
    with Fresh(lab, places) as peers:
        for peer in peers:
            give_state(peer, 1)
        own = own_hashes(peers)
        n = len(peers)
        good(together(peers, "sync"), f"nothing is moved when all are equal, {where}", 1,
             [(0, 0)] * n)
        for revision, (words, size) in enumerate((
                ("name=big at=2000001", LEAF), ("name=big at=3999999", 4000000 % LEAF),
                (f"name=shared at={LEAF - 1} n=2", 2 * LEAF), ("name=odd at=65536", 1),
                ("name=leaf n=65536", LEAF), ("name=one", 2), ("name=big n=9999999", 4000000),
        ), start=2):
            peers[1].expect(f"spoil {words}")
            answers = together(peers, f"sync revision={revision}")
            wrong = wrong_with(answers, revision)
            moved = [(a["rx"], a["tx"]) for a in answers]
            if not wrong and (moved[1] != (size, 0) or any(rx for rx, _ in moved[:1] + moved[2:])):
                wrong = f"(rx, tx) {moved}"
            check(not wrong, f"what has drifted is repaired, {where}: {size} bytes ({words})",
                  wrong)
        check(own_hashes(peers) == own, f"what may differ is left alone, {where}")


def newcomer(lab, places):
    """A run is under way when somebody joins it, who knows nothing."""
    with Fresh(lab, places[:-1]) as peers:
        n = len(peers)
        for peer in peers:
            give_state(peer, 41)
        must(together(peers, "sync"), 41)
        late = lab.start_peer(9, places[-1])
        give_state(late, 0, like=7)
        late.send("create", "connect")
        together(peers, f"until world={n + 1}")
        late.read(), late.read()
        everybody = [*peers, late]
        answers = sync_all(everybody, ["revision=42"] * n + ["revision=0"])
        where = f"on host {places[-1]} of {places}"
        if good(answers, f"a newcomer gets everything, {where}", 42):
            check(answers[-1]["rx"] == ALL and answers[-1]["tx"] == 0,
                  f"as many bytes as there are, {where}", answers[-1])
        ops = together(everybody, f"reduce type=f32 op=sum count=1000 ids={ids_of(everybody)}")
        check(not lib.judge(ops), f"and reduces with the others, {where}", lib.judge(ops))
        good(together(everybody, "sync revision=43"), f"and is one of them, {where}", 43,
             [(0, 0)] * (n + 1))
        lab.drop_peer(late)


def election(lab, places):
    """Whose contents count. Four peers, whose ring goes by their order."""
    def play(what, likes, lines, winners, kicks=(), revision=0):
        with Fresh(lab, places) as peers:
            for peer, like in zip(peers, likes):
                give_state(peer, 0, like=like)
            want = peers[winners[0]].expect("digest")["hash"]
            answers = sync_all(peers, lines)
            left = [a for k, a in enumerate(answers) if k not in kicks]
            bad = [(k, a) for k, a in enumerate(answers) if k in kicks and not kicked(a)]
            wrong = wrong_with(left, revision) or (f"not kicked: {bad}" if bad else None)
            if not wrong and left[0]["hash"] != want:
                wrong = "other contents were elected"
            for k, (line, a) in enumerate(zip(lines, answers)):
                if RECEIVE in line and a["tx"] or SEND in line and a["rx"]:
                    wrong = wrong or f"{k} {line}: {a}"
            check(not wrong, f"{what}, on hosts {places}", wrong)

    popular = f"strategy={POPULAR}"
    receive, send = f"strategy={RECEIVE}", f"strategy={SEND}"
    play("most have it", (0, 1, 1, 1), [popular] * 4, [1])
    play("the first of two halves", (0, 1, 0, 1), [popular] * 4, [0])
    play("who sends only is right", (1, 1, 0, 1), [receive, receive, send, receive], [2])
    play("and so are two", (0, 1, 0, 1), [send, receive, send, receive], [0])
    play("one is ahead of the others", (1, 0, 1, 1),
         [f"{popular} revision={r}" for r in (4, 5, 4, 4)], [1], revision=5)
    play("who receives only has no vote", (1, 1, 1, 0), [receive, receive, receive, send], [3])
    play("enforcing what is popular is for all", (0, 1, 1, 0), [popular, receive, send, popular],
         [0], kicks=(1, 2))


# ---------------------------------------------------------------------- who is refused


def revisions(lab, places):
    with Fresh(lab, places) as peers:
        for peer in peers:
            give_state(peer)
        good(together(peers, "sync revision=13"), "a first revision may be any", 13)
        good(together(peers, "sync revision=14"), "and then goes up by one", 14)
        peers[0].expect("spoil name=odd at=5")
        good(sync_all(peers, ["revision=14", "revision=15", "revision=15"]),
             "one that is reused is outdated, whatever most have", 15)
        answers = sync_all(peers, ["revision=16", "revision=16", "revision=17"])
        check(kicked(answers[2], "REVISION_INCREMENT_VIOLATION", "17", "16"),
              "one that skips a number is kicked", answers[2])
        good(answers[:2], "and the others go on", 16)
        again = peers[2].call("sync revision=17")
        check(kicked(again, "REVISION_INCREMENT_VIOLATION"), "who is kicked is told again", again)
        peers[2].send("connect")
        together(peers[:2], "until world=3")
        peers[2].read()
        good(sync_all(peers, ["revision=17", "revision=17", "revision=3"]),
             "and may join again", 17)


def lost_state(lab, places):
    """All who had the state have left."""
    with Fresh(lab, places) as peers:
        for peer in peers:
            give_state(peer)
        must(together(peers, "sync revision=5"), 5)
        answers = together(peers, "sync revision=4")
        check(all(kicked(a) for a in answers), "nobody has the state: all are kicked", answers)
        peers[0].send("connect")
        peers[0].read()
        good([peers[0].call("sync revision=6")], "until somebody has it", 6)


def other_keys(lab, places):
    """One of three has another table than the others."""
    tensors = list(TENSORS)
    name, words, size = tensors[2]
    for what, table in (
            ("name", [*tensors[:2], ("odder", words, size), *tensors[3:]]),
            ("type", [*tensors[:2], (name, words.replace("u8", "i8"), size), *tensors[3:]]),
            ("count", [*tensors[:2], (name, words.replace("65537", "65538"), size), *tensors[3:]]),
            ("flag", [*tensors[:2], (name, words + " differ=1", size), *tensors[3:]]),
            ("number of tensors", tensors[:-1])):
        with Fresh(lab, places) as peers:
            for k, peer in enumerate(peers):
                give_state(peer, 0, tensors=table if k == 2 else tensors)
            answers = together(peers, f"sync strategy={POPULAR}")
            good(answers[:2], f"two go on without the one with another {what}", 0, [(0, 0)] * 2)
            check(kicked(answers[2]), f"who has another {what} is kicked", answers[2])


def strategies_refused(lab, places):
    def play(what, lines, likes, kicks):
        with Fresh(lab, places) as peers:
            for peer, like in zip(peers, likes):
                give_state(peer, 0, like=like)
            answers = sync_all(peers, lines)
            seen = tuple(k for k, a in enumerate(answers) if kicked(a))
            check(seen == kicks and all(a["code"] == SUCCESS for k, a in enumerate(answers)
                                        if k not in kicks),
                  f"{what}: {kicks} are kicked", [(a["code"], a["text"]) for a in answers])

    receive, send = f"strategy={RECEIVE}", f"strategy={SEND}"
    play("nobody sends", [receive] * 3, (0, 0, 0), (0, 1, 2))
    play("senders disagree", [send, send, receive], (0, 1, 0), (0, 1, 2))
    play("a sender is outdated", [f"{send} revision=1", f"{send} revision=0", receive], (0, 1, 0),
         (1,))


def hash_types(lab, places):
    crc = {"PCCL_HASH_TYPE": "crc32c"}
    with Fresh(lab, places, {k: crc for k in range(len(places))}) as peers:
        for k, peer in enumerate(peers):
            give_state(peer, 0, like=int(k == 0))
        answers = together(peers, "sync")
        if answers[0]["code"] == INVALID_USAGE and "ISA-L" in answers[0]["text"]:
            print(f"# without crc32c: {answers[0]['text']}")
            return
        good(answers, "crc32c does as well", 0)
        check(answers[0]["rx"] == ALL, "and tells what differs", answers[0])
        peers[1].expect("spoil name=big at=2000001")
        answers = together(peers, "sync revision=1")
        good(answers, "also leaf by leaf", 1)
        check(answers[1]["rx"] == LEAF, "so that one leaf moves", answers[1])
    with Fresh(lab, places, {1: crc}) as peers:
        for peer in peers:
            give_state(peer)
        answers = together(peers, "sync")
        check(kicked(answers[1], "hash type 2 (crc32c), the group's with 1 (simplehash)"),
              "another hash than that of the others is refused", answers[1])
        good([answers[0], *answers[2:]], "and they go on", 0)


def calls_refused(lab, places):
    """What the library refuses for its arguments ends for all, and may be made good."""
    op = "type=f32 op=sum count=1000 tag=3"
    with Fresh(lab, places) as peers:
        for peer in peers:
            give_state(peer)
        peers[0].expect(f"submit slot=1 {op}")
        for peer in peers[1:]:
            peer.send(f"reduce {op}")
        answer = peers[0].call("sync")
        check(answer["code"] == PENDING_ASYNC_OPS, "operations must be awaited first", answer)
        must_reduce = [peers[0].call("await slot=1"), *(p.read() for p in peers[1:])]
        if lib.judge(must_reduce):
            raise Failed(lib.judge(must_reduce))
        good(together(peers, "sync"), "and then it can be done", 0)
        for wrong, call, what in (("tensors name=odd type=u8 count=1", "sync revision=1", "odd"),
                                  (None, "sync revision=1 strategy=7", "no strategy 7")):
            if wrong:
                peers[0].expect(wrong)
            for peer in peers[1:]:
                peer.send("sync revision=1")
            answers = [peers[0].call(call), *(p.read() for p in peers[1:])]
            check(all(a["code"] == lib.INVALID_ARGUMENT and what in a["text"] for a in answers),
                  f"{what}: all are told", answers)
            check("host-0" in answers[-1]["text"], f"{what}: and of which host", answers)
            give_state(peers[0])
        good(together(peers, "sync revision=1"), "and nobody has lost anything", 1)


# --------------------------------------------------------------------------- many, apart


def many_tensors(lab, places):
    for words, what in (("n=10000 name=t count=100", "10,000 tensors"),
                        ("n=300 name=t count=50 pad=1024", "names of 1,024 bytes"),
                        ("n=10000 name=t count=3 pad=1024 mem=own", "both")):
        size = 4 * int(words.split("count=")[1].split()[0]) * int(words.split()[0][2:])
        with Fresh(lab, places) as peers:
            for k, peer in enumerate(peers):
                peer.expect("state")
                peer.expect(f"tensors {words} like={int(k == 2)}")
            answers = together(peers, "sync")
            if good(answers, f"{what}, of which all differ", 0):
                check(answers[2]["rx"] == size, f"{what}: as many bytes", answers[2])
            peers[1].expect("spoil name=t77" + ("x" * 1021 if "pad" in words else "") + " n=4")
            answers = together(peers, "sync revision=1")
            good(answers, f"{what}, of which one differs", 1)
            check(answers[1]["rx"] == size // int(words.split()[0][2:]), f"{what}: one tensor",
                  answers[1])


def groups_apart(lab, places):
    """Two groups on the same hosts, with other keys and revisions."""
    lab.start_master()
    peers = [lab.start_peer(k, host, group=k % 2) for k, host in enumerate(places)]
    lib.form_ring(peers)
    even, odd = peers[0::2], peers[1::2]
    for peer in even:
        give_state(peer, 10, like=int(peer.number == 2))
    for peer in odd:
        give_state(peer, 70, tensors=TENSORS[:2])
    answers = together(even, "sync")  # the others have not called it
    good(answers, "a group does not wait for another one", 10)
    for peer in even:
        peer.send("sync revision=11")
    good(together(odd, "sync"), "nor knows its keys and revisions", 70)
    good([p.read() for p in even], "also at the same time", 11, [(0, 0)] * len(even))
    answers = together(odd, "sync revision=11")
    check(all(kicked(a) for a in answers), "a revision counts in its group only", answers)
    for peer in peers:
        lab.drop_peer(peer)
    lab.end(lab.master)


# ------------------------------------------------------------------------------ deaths

FROZEN = 64 << 20  # bytes: half of it is twice what may be under way at once (STE_BLOCKS)


class Middle:
    """A synchronization whose receivers, all but the first peers, have stopped in the middle of it,
    so that none of them has everything."""

    revision = 0  # of the receivers

    def __init__(self, lab, places, holders, options=()):
        self.fresh = Fresh(lab, places, options=options)
        self.peers = self.fresh.peers
        self.holders, self.receivers = self.peers[:holders], self.peers[holders:]

    def __enter__(self):
        for k, peer in enumerate(self.peers):
            held = peer in self.holders
            give_state(peer, 5 if held else self.revision, like=0 if held else 1 + k)
            answer = peer.expect(f"tensors name=frozen type=u64 count={FROZEN // 8} "
                                 f"like={0 if held else 1 + k} freeze={int(not held)}")
            peer.frozen_at = int(answer["at"])
            peer.send("sync")
        for peer in self.receivers:
            await_stop(peer)
        return self

    def __exit__(self, *error):
        self.fresh.__exit__(*error)

    def answers(self, dead=()):
        """Of those that live, when it may go on."""
        left = [p for p in self.peers if p not in dead]
        for peer in left:
            if peer in self.receivers:
                wake(peer)
        return [p.read() for p in left]


class Drifted(Middle):
    """The receiver is the first in the ring, and not outdated."""

    revision = 5

    def __init__(self, lab, places):
        super().__init__(lab, places, 1)
        self.receivers, self.holders = self.peers[:1], self.peers[1:]


def without_tx(answers):
    """When a sender took with it what it had sent."""
    return [{**a, "tx": 0, "rx": 0} for a in answers]


def next_one(peers, what, revision=6):
    """The first synchronization after a loss that was survived does not fail for it."""
    answers = together(peers, f"sync revision={revision} retry=1")
    wrong = wrong_with(answers, revision, [(0, 0)] * len(peers))
    if {a["losses"] for a in answers} != {0}:
        wrong = wrong or f"losses {[a['losses'] for a in answers]}"
    check(not wrong, what, wrong)


def source_dies(lab):
    for places, what in (((0, 1, 2), "on hosts of their own"), ((0, 1, 0), "one of them beside it"),
                         ((0, 0, 0), "on one host")):
        for which in (0, 1):
            with Middle(lab, places, 2) as m:
                victim = m.peers[which]
                left = [p for p in m.peers if p is not victim]
                lab.drop_peer(victim)
                good(without_tx(m.answers([victim])),
                     f"source {which} of two dies, {what}: the other one serves", 5)
                next_one(left, "and the next one goes without it")


def last_source_dies(lab):
    for places in ((0, 1, 2), (0, 0, 0), (0, 1, 0)):
        with Middle(lab, places, 1) as m:
            lab.drop_peer(m.holders[0])
            answers = m.answers(m.holders)
            check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok"
                      and "written in part" in a["text"] for a in answers),
                  f"the only source dies: nobody can have it, on hosts {places}", answers)
            check([a["revision"] for a in answers] == [0, 0], "revisions are as before", answers)
            left = m.receivers
            answers = together(left, "sync")
            check(all(kicked(a, "tensors torn", "with a new communicator")
                      for a in answers), "what they have now is nobody's state", answers)
            for peer in left:
                peer.expect("destroy")
                give_state(peer, 3)
            lib.form_ring(left)
            good(together(left, "sync"), "until they have loaded another one", 3, [(0, 0)] * 2)


def overwrite(peer):
    """As another thread of a program that does not keep its hands off its tensors."""
    with open(f"/proc/{peer.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(peer.frozen_at)
        memory.write(bytes(FROZEN))


def source_changes(lab):
    """What the only source gives is not what was elected any more."""
    with Middle(lab, (0, 1), 1) as m:
        overwrite(m.peers[0])
        left, gone = m.answers()
        good(without_tx([left]), "the only source changes its tensor: it is told nothing", 5)
        check(kicked(gone, "no remaining peer has the elected state", "does not match the hash",
                     "written in part"),
              "what cannot be verified is no loss: whoever lacks it is put out", gone)
        again = m.peers[1].call("sync")
        check(kicked(again, "does not match the hash"), "and told again", again)
        m.peers[1].send("connect")
        together(m.peers[:1], "until world=2")
        m.peers[1].read()
        good(sync_all(m.peers, ["revision=6", "revision=0"]), "and may join again", 6)


def one_source_changes(lab):
    """One of two on a host, or the one on the host of whoever lacks it."""
    for which in (0, 1):
        with Middle(lab, (0, 0, 1), 2) as m:
            overwrite(m.peers[which])
            answers = without_tx(m.answers())
            del answers[which]
            good(answers, f"source {which} of two on a host changes its tensor: the other one serves",
                 5)
    with Middle(lab, (0, 0), 1) as m:
        overwrite(m.peers[0])
        gone, left = m.answers()
        check(kicked(gone, '"frozen" changed during the call: it is not what its hashes say'),
              "who changes it beside the one that lacks it is put out", gone)
        check(left["code"] == RANK_CONNECTION_LOST and "written in part" in left["text"],
              "and is a loss to that one", left)


def other_state(lab):
    """A peer that has torn state may connect as often as it likes, and say what it likes. To load
    another revision helps."""
    with Middle(lab, (0, 1), 1) as m:
        lab.drop_peer(m.holders[0])
        peer = m.peers[1]
        m.answers(m.holders)
        for words, reset in (("", False), (f"strategy={SEND}", False), ("revision=9", False),
                             ("revision=0", True)):
            if reset:
                lib.ctl("--master", m.fresh.master, "reset", "--yes")
                peer.expect("destroy")
                peer.expect("create")
                peer.expect("connect")
            answer = peer.call(f"sync {words}")
            check(kicked(answer, "tensors torn"),
                  f"torn state is still torn, {words}{', after a reset' * reset}", answer)
            peer.expect("connect")
        give_state(peer, 9)
        good([peer.call("sync")], "another revision is another state", 9)


def torn_state_at_a_tie(lab):
    """An agent dies, and with it the attempt; then the majority is gone. What the first in the ring
    has would be elected, were it not torn."""
    for places in ((0, 1, 2), (0, 0, 2)):
        with Drifted(lab, places) as m:
            first, whole, last = m.peers
            restart_agent(lab, 0)
            answers = m.answers()
            check(all(a["code"] == RANK_CONNECTION_LOST for a in answers)
                  and "written in part" in answers[0]["text"]
                  and not any("written" in a["text"] for a in answers[1:]),
                  f"the attempt fails in the middle, on hosts {places}", answers)
            lab.drop_peer(last)
            want = whole.expect("digest")["hash"]
            answers = together([first, whole], "sync retry=1")
            if good(answers, "of two peers the one with torn state receives", 5):
                check(answers[0]["hash"] == want and answers[0]["rx"] > 0
                      and answers[1]["rx"] == 0, "what the other one has", answers)
            rows = lib.tables("--master", m.fresh.master, "state")["election"]
            check({r["pid"]: (r["torn"], r["role"]) for r in rows}
                  == {first.pid: (True, "receiver"), whole.pid: (False, "holder")},
                  "as pcclctl says", rows)
            good(together([first, whole], "sync revision=6"), "after which it is one no more", 6,
                 [(0, 0)] * 2)
            rows = lib.tables("--master", m.fresh.master, "state")["election"]
            check(not any(r["torn"] for r in rows), "as it says, too", rows)


def receiver_dies(lab):
    for places in ((0, 1, 2), (0, 0, 0)):
        with Middle(lab, places, 1) as m:
            victim, left = m.peers[-1], m.peers[:-1]
            lab.drop_peer(victim)
            good(without_tx(m.answers([victim])),
                 f"a receiver dies: the others go on, on hosts {places}", 5)
            next_one(left, "and are equal")


def agent_of_a_source_dies(lab):
    """Others have what its peers have: the attempt goes on. Who had it may be away until it is over, or
    be back before."""
    lease = 20  # seconds
    for number, back in ((signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGKILL, True)):
        with Middle(lab, (0, 1, 2), 2, ("--agent-lease-ms", str(lease * 1000))) as m:
            how = (f"the agent of one of two sources gets {number.name}"
                   f"{', and the next one is there at once' * back}")
            old, began = lab.agents[0], time.monotonic()
            if back:
                restart_agent(lab, 0).await_log("is in group 0 of run")
            elif number == signal.SIGKILL:
                lab.drop(old)
            else:
                lab.end(old, number)
            wake(m.peers[2])
            left = [p.read() for p in m.peers[1:]]
            took = time.monotonic() - began
            good(without_tx(left), f"{how}: the others end the same call without it", 5)
            check(left[1]["rx"] == ALL + FROZEN and 0 < left[0]["tx"] <= ALL + FROZEN,
                  "nothing is received twice", left)
            check(took < lease, "nor is it waited for", took)
            if not back:
                lab.start_agent(0, path=old.socket, admin=old.admin)
            late = m.peers[0].read()
            good(without_tx([late, *left]), "its own peers hear of it when they are back", 5)
            answers = together(m.peers, "sync revision=6")
            good(answers, "the next one goes on with all", 6, [(0, 0)] * 3)
            check({a["losses"] for a in answers} == {0}, "and nothing was lost", answers)


def agent_dies(lab):
    """Its peers come back, and all repeat the call; what has been received is not fetched again."""
    for host, holders, whose in ((2, 2, "the receiver"), (0, 1, "the only source")):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with Middle(lab, (0, 1, 2), holders) as m:
                restart_agent(lab, host, number=number)
                answers = m.answers()
                how = f"the agent of {whose} gets {number.name}"
                check(all(a["code"] == RANK_CONNECTION_LOST and a["check"] == "ok"
                          for a in answers), f"{how}: all are told", answers)
                check("written in part" in answers[2]["text"], "the receiver, that too", answers[2])
                answers = together(m.peers, "sync")
                if good(answers, "the call repeated succeeds", 5):
                    check(0 < answers[2]["rx"] < ALL + FROZEN,
                          "with less to be moved than the first time", answers[2])


def master_dies(lab):
    """Another one at its address: nobody notices."""
    with Middle(lab, (0, 1, 2), 1) as m:
        port = m.fresh.master.port
        lab.drop(m.fresh.master)
        m.fresh.master = lab.start_master(port=port)
        good(m.answers(), "the master dies: nobody notices", 5)
        good(together(m.peers, "sync revision=6"), "the next one knows the revision", 6,
             [(0, 0)] * 3)
        answers = sync_all(m.peers, ["revision=7", "revision=7", "revision=8"])
        check(kicked(answers[2], "REVISION_INCREMENT_VIOLATION"), "and the rule", answers[2])
        good(answers[:2], "for all", 7)


def dies_before_the_vote(lab):
    """The others wait for somebody who dies: the election is held among those who are left."""
    with Fresh(lab, (0, 1, 2)) as peers:
        for peer in peers:
            give_state(peer, 3)
        for peer in peers[:2]:
            peer.send("sync")
        lab.drop_peer(peers[2])
        good([p.read() for p in peers[:2]],
             "one dies before it has called: the others are synchronized", 3, [(0, 0)] * 2)


def alone(lab):
    with Fresh(lab, (0,)) as peers:
        give_state(peers[0], 8)
        good([peers[0].call("sync")], "somebody alone is equal to itself", 8, [(0, 0)])


def test():
    with lib.Lab(3) as lab:
        for host in range(3):
            lab.start_agent(host)
        for places in ((0, 1, 2), (0, 0, 0)):
            what_is_moved(lab, places)
            revisions(lab, places)
        for places in ((0, 0, 0), (0, 0, 1), (0, 1, 1, 0)):
            newcomer(lab, places)
        for places in ((0, 1, 2, 0), (0, 0, 0, 0)):
            election(lab, places)
        lost_state(lab, (0, 1))
        other_keys(lab, (0, 1, 2))
        strategies_refused(lab, (0, 1, 0))
        hash_types(lab, (0, 1, 0))
        calls_refused(lab, (0, 1))
        many_tensors(lab, (0, 1, 0))
        groups_apart(lab, (0, 0, 1, 1))
        alone(lab)
        source_dies(lab)
        last_source_dies(lab)
        source_changes(lab)
        one_source_changes(lab)
        other_state(lab)
        torn_state_at_a_tie(lab)
        receiver_dies(lab)
        agent_of_a_source_dies(lab)
        agent_dies(lab)
        master_dies(lab)
        dies_before_the_vote(lab)
        lab.check_alive()


if __name__ == "__main__":
    lib.run(test, 300)
