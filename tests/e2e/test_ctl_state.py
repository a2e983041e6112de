#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what pcclctl shows of shared state: revisions and contents, which peer deviated, which
transfers run."""

import signal
import time

import lib
from lib import ask, check, ctl, tables

COUNT = 1 << 20  # f32: 4 MiB
BYTES = 4 * COUNT


def until(option, daemon, verb, good):
    """Returns the tables as soon as good(tables) is true, or after the time limit."""
    deadline = time.monotonic() + lib.WAIT
    while True:
        answer = tables(option, daemon, verb)
        if good(answer) or time.monotonic() > deadline:
            return answer


def load(peer, like=0, revision=0, names=("w", "b")):
    peer.send(f"state revision={revision}",
              f"tensors name={names[0]} count={COUNT} like={like}",
              f"tensors name={names[1]} count=0")
    for _ in range(3):
        peer.read()


def state_of(lab):
    return tables("--master", lab.master, "state")


def nothing_yet(lab):
    groups = state_of(lab)["groups"]
    check(len(groups) == 1 and groups[0]["expected"] == 0 and groups[0]["peers"] == 3
          and groups[0]["last"] == "" and groups[0]["since"] is None and not state_of(lab)["election"],
          "the master shows that there was no synchronization", groups)
    agent = tables("--agent", lab.agents[0], "state")
    check([(g["world_size"], g["local"], g["expected"]) for g in agent["groups"]] == [(3, 2, 0)]
          and not agent["peers"] and not agent["transfers"] and not agent["sources"]
          and not agent["receivers"], "the agent shows that there was no synchronization", agent)


def master_tells_group(group):
    check([group[k] for k in ("revision", "expected", "last", "tensors", "bytes", "hash_type",
                              "holders", "receivers", "kicked")]
          == [7, 8, "done", 2, BYTES, "simplehash", 2, 1, 0] and group["sequence"] > 0
          and len(group["keys"]) == len(group["content"]) == 32,
          "the master shows the shared state of the group", group)


def master_tells_election(rows, peers, content):
    """Checks the rows of the election. The first row is the third peer, which differs."""
    check(sorted(r["pid"] for r in rows) == sorted(p.pid for p in peers)
          and [r["role"] for r in rows] == ["receiver", "holder", "holder"]
          and {r["strategy"] for r in rows} == {"enforce-popular"}
          and [r["revision"] for r in rows] == [3, 7, 7] and not any(r["torn"] for r in rows)
          and len({r["keys"] for r in rows}) == 1 and rows[1]["content"] == content
          and rows[0]["content"] != content, "the master shows which peers held the elected contents", rows)
    check(rows[0]["deviation"] == "revision 3, but revision 7 was elected; contents "
          f"{rows[0]['content']}, but {content} were elected"
          and not rows[1]["deviation"] and rows[0]["host"] == "host-1",
          "the master shows how one peer deviated", rows[0])


def agents_tell(lab, differing, content):
    """Checks the tables of the agents. content: the earlier contents of the peer that differs."""
    row, = tables("--agent", lab.agents[1], "state")["peers"]
    check([row[k] for k in ("pid", "role", "state", "offered", "revision", "rx", "tx", "content")]
          == [differing.pid, "receiver", "done", 3, 7, BYTES, 0, content]
          and row["since"] is not None, "the agent of the peer that differed shows its transfer", row)
    local = tables("--agent", lab.agents[0], "state")
    check(sum(r["tx"] for r in local["peers"]) == BYTES
          and [g["expected"] for g in local["groups"]] == [8],
          "the agent of the holders shows the bytes that they sent", local)


def one_differs(lab, peers):
    """The third peer has other contents at an older revision."""
    for peer, like, revision in zip(peers, (0, 0, 1), (7, 7, 3)):
        load(peer, like, revision)
    answers = lib.together(peers, "sync strategy=popular")
    check(all(a["code"] == 0 and a["revision"] == 7 for a in answers),
          "all peers are equal after a synchronization with one outdated peer", answers)
    master = state_of(lab)
    group, = master["groups"]
    master_tells_group(group)
    rows = sorted(master["election"], key=lambda r: r["pid"] != peers[2].pid)
    master_tells_election(rows, peers, group["content"])
    agents_tell(lab, peers[2], rows[0]["content"])


def copies(answer):
    """Returns whether both receivers and the transfer show all copied bytes. The copying threads go
    on while the tables are filled, so each count may come late."""
    return (any(t["bytes"] == 2 * BYTES and t["sources"] for t in answer["transfers"])
            and [r["bytes"] for r in answer["receivers"]] == [BYTES, BYTES])


def agent_tells_transfer(answer, receivers):
    """Checks what the agent of the receivers shows of their transfer."""
    here = answer["transfers"]
    check(copies(answer) and len(here) == 1 and here[0]["done"] < 2 * BYTES and here[0]["revision"] == 8
          and [here[0][k] for k in ("holders", "receivers", "failed")] == [0, 2, 0],
          "the receivers' agent shows a transfer that is not complete", here)
    sources = answer["sources"]
    check(len(sources) == 1 and sources[0]["host"] == "host-1" and sources[0]["holds"]
          and sources[0]["sequence"] == here[0]["sequence"],
          "the receivers' agent shows the source of the transfer", sources)
    check(sorted(r["pid"] for r in answer["receivers"]) == sorted(p.pid for p in receivers)
          and all(r["bytes"] == BYTES and r["done"] < BYTES and not r["complete"]
                  for r in answer["receivers"]),
          "the receivers' agent shows the progress of each receiver", answer["receivers"])
    check({r["state"] for r in answer["peers"]} == {"running"}
          and {r["strategy"] for r in answer["peers"]} == {"receive-only"},
          "the receivers' agent shows that the synchronizations are running", answer["peers"])


def transfer_is_listed(lab, receiver):
    """Checks that the master, the list of operations, and the table for people show the transfer."""
    group, = state_of(lab)["groups"]
    check(group["last"] == "running" and group["revision"] == 7 and group["expected"] == 8,
          "the master shows that the synchronization is running", group)
    rows = ask("--agent", lab.agents[0], "ops")
    check([(r["kind"], r["state"], r["bytes"]) for r in rows] == [("sync", "running", BYTES)],
          "the agent lists the synchronization as an operation", rows)
    text = ctl("--agent", lab.agents[0].admin, "state").stdout
    check("transfers" in text and "host-1" in text and str(receiver.pid) in text,
          "the table for people shows the transfer", text)


def under_way(lab, peers):
    """The only holder is stopped before it can send, so the transfer is shown without progress."""
    receivers, holder = peers[:2], peers[2]
    for peer in receivers:
        peer.expect("spoil name=w n=100000000")
    holder.send("sync strategy=send revision=8 hash=0")
    rows = until("--master", lab.master, "ops", lambda a: a["ops"] and a["ops"][0]["votes"] == 1)["ops"]
    check(len(rows) == 1 and rows[0]["kind"] == "sync" and rows[0]["tag"] == 0
          and rows[0]["bytes"] == BYTES, "the master lists the synchronization as an operation", rows)
    holder.process.send_signal(signal.SIGSTOP)
    for peer in receivers:
        peer.send("sync strategy=receive hash=0")
    agent_tells_transfer(until("--agent", lab.agents[0], "state", copies), receivers)
    transfer_is_listed(lab, receivers[0])
    holder.process.send_signal(signal.SIGCONT)
    answers = [p.read() for p in peers]
    check(all(a["code"] == 0 and a["revision"] == 8 for a in answers),
          "the transfer goes on when the holder runs again", answers)
    answer = tables("--agent", lab.agents[0], "state")
    check(not answer["transfers"] and not answer["sources"] and not answer["receivers"]
          and {r["state"] for r in answer["peers"]} == {"done"},
          "a transfer that has ended is not shown as running", answer)


def one_is_kicked(lab, peers):
    """One peer has other keys than the others. It is kicked, and the tables still show it."""
    load(peers[1], names=("w", "c"))
    for peer in peers:
        peer.send("sync strategy=popular revision=9 hash=0")
    answers = [p.read() for p in peers]
    check([a["code"] for a in answers] == [0, lib.INVALID_USAGE, 0],
          "a peer with other keys is kicked", answers)
    master = state_of(lab)
    group, = master["groups"]
    out = [r for r in master["election"] if r["role"] == "kicked"]
    check([group[k] for k in ("revision", "last", "holders", "receivers", "kicked", "peers")]
          == [9, "done", 2, 0, 1, 2] and [r["pid"] for r in out] == [peers[1].pid]
          and "other keys" in out[0]["deviation"], "the master shows why a peer was kicked", master)
    rows = [r for r in tables("--agent", lab.agents[0], "state")["peers"] if r["pid"] == peers[1].pid]
    check([r["state"] for r in rows] == ["failed"] and "other keys" in rows[0]["why"],
          "the agent of a kicked peer shows why it was kicked", rows)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        nothing_yet(lab)
        one_differs(lab, peers)
        under_way(lab, peers)
        one_is_kicked(lab, peers)
        lab.check_alive()


lib.run(test, 120)
