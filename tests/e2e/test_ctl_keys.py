#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what pcclctl and the logs report about keys: which keys exist, which keys differed on
which peer, and whether they were repaired."""

import signal

import lib
from lib import RANK_CONNECTION_LOST, SUCCESS, check, ctl, tables

LEAF = 65536
COUNT = 1 << 20  # f32: 4 MiB, 64 blocks
KEYS_MAX, DIFFS_MAX = 1000, 32  # the numbers of keys and of differences that an agent shows at most


def load(peer, revision=0, like=0):
    """Creates four tensors that must be equal, and one that may differ."""
    peer.expect(f"state revision={revision}")
    peer.expect(f"tensors name=w type=f32 count={COUNT} n=3 like={like}")
    peer.expect(f"tensors name=b type=bf16 count=500 mem=shared like={like}")
    peer.expect(f"tensors name=own type=u8 count=1000 like={peer.number + 1} differ=1")


def sync(peers, revision=None):
    words = "" if revision is None else f" revision={revision}"
    answers = lib.together(peers, f"sync{words}")
    if any(a["code"] != SUCCESS for a in answers):
        raise lib.Failed(f"no synchronization: {answers}")
    return answers


def state_of(lab, host):
    return tables("--agent", lab.agents[host], "state")


def hashes_of(answer):
    return {k["key"]: k["hash"] for k in answer["keys"]}


def differed(lab, host):
    """Returns (pid, key, blocks, of, bytes, cause, outcome, from) of each row."""
    return [tuple(r[k] for k in ("pid", "key", "blocks", "of", "bytes", "cause", "outcome", "from"))
            for r in state_of(lab, host)["differed"]]


def lines_with(lab, host, *words):
    return [x for x in lab.agents[host].log_lines() if all(str(w) in x for w in words)]


def equal(lab, peers):
    """All peers are equal from the beginning."""
    check(not state_of(lab, 0)["keys"] and not state_of(lab, 0)["differed"],
          "no keys are shown before the first synchronization")
    for peer in peers:
        load(peer, 1)
    sync(peers)
    here, there = state_of(lab, 0), state_of(lab, 1)
    rows = [(k["key"], k["dtype"], k["count"], k["may_differ"], k["more"]) for k in here["keys"]]
    check(rows == [("b", "bfloat16", 500, False, 0), ("own", "uint8", 1000, True, 0),
                   *((f"w{i}", "float", COUNT, False, 0) for i in range(3))],
          "the agent shows the keys of the group, sorted", rows)
    check({(k["group"], k["revision"]) for k in here["keys"]} == {(0, 1)},
          "the keys of the group have revision 1")
    hashes = hashes_of(here)
    check(hashes["own"] == "" and len({h for h in hashes.values() if h}) == 4
          and all(len(h) == 16 for h in hashes.values() if h) and hashes == hashes_of(there),
          "each key that must be equal has a hash, the same on both hosts", hashes)
    check(not here["differed"] and not there["differed"], "equal peers have no differences")
    return hashes


def drift(lab, peers, hashes):
    """One peer drifts: first a peer of the other host, then one of this host."""
    for revision, (peer, holder, key, words, row) in enumerate((
            (peers[2], "host-0", "w1", "name=w1 at=65535 n=65538", (3, 64, 3 * LEAF)),
            (peers[1], f"pid {peers[0].pid}", "b", "name=b at=999", (1, 1, 1000)),
    ), start=2):
        peer.expect(f"spoil {words}")
        peer.expect("spoil name=own")
        sync(peers, revision)
        host = peer.host
        rows = differed(lab, host)
        check(rows == [(peer.pid, key, *row, "drift", "repaired", holder)],
              f"only the key {key} is named as drifted, with its repair", rows)
        check(not differed(lab, 1 - host), "the agent without drift names no key", differed(lab, 1 - host))
        check(hashes_of(state_of(lab, host)) == hashes,
              "the elected hashes are the same after the repair of a drift")
        found = lines_with(lab, host, "notice: ", f"pid {peer.pid}", f"drifted at revision {revision}",
                           "repaired", f"from {holder}: ", f" {key} ({row[0]} of {row[1]} blocks, "
                           f"{row[2]} bytes)")
        check(len(found) == 1,
              "the agent's log also names the key that drifted", lab.agents[host].log_lines()[-3:])
    elections = tables("--master", lab.master, "state")["election"]
    check([bool(r["deviation"]) for r in sorted(elections, key=lambda r: r["pid"] != peers[1].pid)]
          == [True, False, False], "the master shows which peer deviated", elections)


def changed(lab, peers, hashes):
    """All peers change a tensor in the same way, so its hash changes."""
    for peer in peers:
        peer.expect("spoil name=w0 n=4")
    sync(peers, 4)
    now = hashes_of(state_of(lab, 0))
    check([k for k in now if now[k] != hashes[k]] == ["w0"] and not differed(lab, 0),
          "only the key that all peers have changed has another hash", (hashes, now))


def not_drift(lab, peers):
    """A newcomer, and a peer that offers an older revision, have not drifted."""
    newcomer = lab.start_peer(3, 1)
    newcomer.send("create", "connect")
    lib.together(peers, "until world=4")
    newcomer.read(), newcomer.read()
    load(newcomer)
    peers.append(newcomer)
    peers[0].expect("spoil name=w2 n=1")
    for peer, revision in zip(peers, (4, 5, 5, 0)):
        peer.send(f"sync revision={revision}")
    answers = [p.read() for p in peers]
    check(all(a["code"] == SUCCESS and a["revision"] == 5 for a in answers),
          "all peers are equal after a synchronization with a newcomer and an outdated peer", answers)
    rows = differed(lab, 0)
    check(rows == [(peers[0].pid, "w2", 1, 64, LEAF, "outdated", "received", f"pid {peers[1].pid}")],
          "the agent shows an outdated peer as outdated", rows)
    rows = differed(lab, 1)
    check([r[:2] + r[5:] for r in rows]
          == [(newcomer.pid, "w0", "newcomer", "received", f"pid {peers[2].pid}")],
          "the agent shows a newcomer as a newcomer", rows)
    check(len(lines_with(lab, 0, "info: ", f"pid {peers[0].pid}", "outdated by revision 4",
                         "revision 5", "1 tensors", f"{LEAF} bytes")) == 1
          and len(lines_with(lab, 1, "info: ", f"pid {newcomer.pid}", "a newcomer", "revision 5")) == 1
          and sum(len(lines_with(lab, h, "drifted")) for h in (0, 1)) == 2,
          "the logs distinguish drift, outdated peers and newcomers",
          [lab.agents[h].log_lines()[-3:] for h in (0, 1)])


def restarted(lab, peers):
    """An agent that has just been restarted still distinguishes newcomers from peers whose state
    was equal before the restart."""
    newcomer = lab.start_peer(4, 1)
    newcomer.send("create", "connect")
    lib.together(peers, "until world=5")
    newcomer.read(), newcomer.read()
    load(newcomer)
    lib.restart_agent(lab, 1)
    peers[2].expect("spoil name=w1 n=1")
    newcomer.send("sync retry=5")
    lib.together(peers, "sync revision=6 retry=5")
    newcomer.read()
    rows = sorted((r[0], r[1], r[5], r[6]) for r in differed(lab, 1))
    check(rows == sorted([(peers[2].pid, "w1", "drift", "repaired"),
                          (newcomer.pid, "w0", "newcomer", "received")]),
          "a restarted agent knows which peer is a newcomer", rows)
    lab.drop_peer(newcomer)
    lib.together(peers, "until world=4")


def failed(lab, peers):
    """The only peer with the contents dies before it has sent them."""
    holder, receivers = peers[2], peers[:2]
    lab.drop_peer(peers.pop())
    lib.together(peers, "until world=3")
    for peer in receivers:
        peer.expect("spoil name=w1 n=1")
    holder.send("sync strategy=send revision=7 hash=0")
    lib.until(lambda: [o["votes"] for o in lib.ask("--master", lab.master, "ops")] == [1],
              "the holder has not voted")
    holder.process.send_signal(signal.SIGSTOP)
    for peer in receivers:
        peer.send("sync strategy=receive hash=0 revision=7")
    lib.until(lambda: [t["bytes"] for t in state_of(lab, 0)["transfers"]] == [2 * LEAF],
              "the agent does not show the missing bytes")
    check(sorted((r["pid"], r["key"], r["done"], r["outcome"]) for r in state_of(lab, 0)["differed"])
          == sorted((p.pid, "w1", 0, "under way") for p in receivers),
          "the agent shows which keys differ while the transfer runs",
          state_of(lab, 0)["differed"])
    lab.drop_peer(holder)
    answers = [p.read() for p in receivers]
    check({a["code"] for a in answers} == {RANK_CONNECTION_LOST},
          "the synchronization fails when its only holder dies", answers)
    rows = sorted(state_of(lab, 0)["differed"], key=lambda r: r["pid"] != receivers[0].pid)
    check([(r["pid"], r["key"], r["blocks"], r["outcome"]) for r in rows]
          == [(p.pid, "w1", 1, "failed") for p in receivers] and all(r["why"] for r in rows),
          "the agent shows which keys differed and why the repair failed", rows)


def counts_keys(keys, n, error):
    """Checks that the last row of the keys counts the keys that do not fit."""
    named, rest = keys[:-1], keys[-1]
    check(0 < len(named) <= KEYS_MAX and rest["key"] == "" and rest["more"] == n - len(named)
          and all(len(k["key"]) == 255 and k["key"].endswith("x...") for k in named)
          and all(k["more"] == 0 and len(k["hash"]) == 16 for k in named),
          "the last row counts the keys that do not fit", (len(named), rest, error))
    return rest["more"]


def counts_differences(rows, n):
    """Checks that the last row of the differences counts the differences that do not fit."""
    check(len(rows) == DIFFS_MAX + 1 and rows[-1]["key"] == "" and rows[-1]["more"] == n - DIFFS_MAX
          and rows[-1]["blocks"] == n - DIFFS_MAX and rows[-1]["bytes"] == 10 * (n - DIFFS_MAX)
          and {r["cause"] for r in rows} == {"newcomer"},
          "the last row counts the differences that do not fit", rows[-1:])


def many(lab, n=1200):
    """There are more keys than an agent shows, with long names."""
    first, other = lab.master, lab.start_master()
    lab.master = first
    with_many = lab.start_peers((0, 0), group=7, first=10, master=other.address)
    for peer in with_many:
        peer.expect("state revision=0")
        peer.expect(f"tensors name=t type=u8 count=10 n={n} pad=1000 like={peer.number}")
    sync(with_many)
    done = ctl("--json", "--agent", lab.agents[0].admin, "state")
    answer = state_of(lab, 0)
    more = counts_keys([k for k in answer["keys"] if k["group"] == 7], n, done.stderr)
    counts_differences([r for r in answer["differed"] if r["group"] == 7], n)
    text = ctl("--agent", lab.agents[0].admin, "state").stdout
    check(f"{n - DIFFS_MAX}" in text and f"{more}" in text,
          "the table for people counts the keys that do not fit")
    for peer in with_many:
        lab.drop_peer(peer)


def forgotten(lab, peers):
    """The agents keep nothing of peers that have left."""
    for peer in list(peers):
        lab.drop_peer(peer)
    for host in (0, 1):
        lib.until(lambda h=host: lib.ask("--agent", lab.agents[h], "status")[0]["memory"] == 0,
                  "memory is still charged to processes that are gone")
        answer = state_of(lab, host)
        check(not answer["keys"] and not answer["differed"],
              "an agent keeps no keys and differences of peers that have left", answer)


def test():
    with lib.Lab(2) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        hashes = equal(lab, peers)
        drift(lab, peers, hashes)
        changed(lab, peers, hashes)
        not_drift(lab, peers)
        restarted(lab, peers)
        many(lab)
        failed(lab, peers)
        forgotten(lab, peers[:2])
        lab.check_alive()


lib.run(test, 120)
