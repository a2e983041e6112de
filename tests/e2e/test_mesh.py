#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Links between all hosts: they are opened without a call, operations take the route that the
master chooses or that its operator forces, and a link that breaks is opened again."""

import subprocess

import lib
from lib import RANK_CONNECTION_LOST, SUCCESS, check, ids_of, judge

HOSTS = 4
# elements of four bytes: on the eager path; at most 1 MiB; more than 1 MiB
EAGER, MEDIUM, LARGE = 1000, 100000, 3000000


def reduce(peers, count, seed=1):
    answers = lib.together(
        peers, f"reduce type=f32 op=sum count={count} seed={seed} tag=1 ids={ids_of(peers)}")
    return judge(answers), answers[0]["hash"]


def until_hash(peers, count, wanted):
    """Repeats the operation until its result has this hash, because agents may report the last link of
    the mesh a moment later."""
    lib.until(lambda: reduce(peers, count) == (None, wanted),
              f"an operation on {count} elements does not take another route")


def start(lab, algorithm):
    """Starts a run whose ring has the order of the hosts."""
    lab.start(master_options=("--algorithm", algorithm))
    peers = [lab.start_peer(host, host) for host in range(HOSTS)]
    lib.form_ring(peers)
    if algorithm != "ring":
        lib.await_mesh(lab, range(HOSTS))
    return peers


def hashes_of(algorithm):
    """Returns the hashes of results. The order in which a sum of floats is computed depends on the
    route, and so do its last bits. The eager path adds in the order of the ring on all routes."""
    with lib.Lab(HOSTS) as lab:
        peers = start(lab, algorithm)
        found = {}
        for count in (EAGER, MEDIUM, LARGE):
            for _ in range(20):  # the last operations use the mesh, and start speculatively
                wrong, found[count] = reduce(peers, count)
                if wrong:
                    break
            check(not wrong, f"{algorithm}: a sum of {count} elements is right", wrong)
        return found


def test_routes():
    found = {name: hashes_of(name) for name in ("ring", "direct", "tree")}
    for count in (MEDIUM, LARGE):
        check(len({h[count] for h in found.values()}) == 3,
              f"each algorithm has its own route for {count} elements", found)
    check(len({h[EAGER] for h in found.values()}) == 1,
          "an eager operation has the same result with each algorithm", found)
    return found


def close_stream(port):
    """Closes a connection over loopback. Returns False if this system cannot."""
    done = subprocess.run(["ss", "-KHtn", "state", "established", f"sport = :{port}"],
                          capture_output=True, text=True, timeout=30, check=False)
    return done.returncode == 0 and bool(done.stdout.strip())


def test_choice(found):
    """The master chooses by size. After a link beside the ring has broken, it is opened again."""
    with lib.Lab(HOSTS) as lab:
        peers = start(lab, "auto")
        until_hash(peers, MEDIUM, found["direct"][MEDIUM])
        check(reduce(peers, LARGE) == (None, found["ring"][LARGE]), "large operands take the ring")
        for _ in range(3):
            old = lib.links(lab)[(0, 2)]
            if not close_stream(old[0]):
                print("# ss -K is not possible here")
                break
            answers = lib.together(
                peers, f"reduce type=f32 op=sum count={MEDIUM} tag=1 ids={ids_of(peers)}")
            check(len({a["code"] for a in answers}) == 1 and
                  answers[0]["code"] in (SUCCESS, RANK_CONNECTION_LOST),
                  "a link breaks: the next operation ends with the same code for all peers", answers)
            lib.await_mesh(lab, range(HOSTS), old)
            until_hash(peers, MEDIUM, found["direct"][MEDIUM])
        lab.check_alive()


def test_restart(found):
    """An agent is replaced: its links are opened again."""
    with lib.Lab(HOSTS) as lab:
        peers = start(lab, "direct")
        until_hash(peers, MEDIUM, found["direct"][MEDIUM])
        lib.restart_agent(lab, 2)
        lib.until(lambda: reduce(peers, MEDIUM)[0] is None, "no operation after the restart")
        lib.await_mesh(lab, range(HOSTS))
        until_hash(peers, MEDIUM, found["direct"][MEDIUM])
        check(True, "an agent is replaced: the mesh is used again")


def test():
    found = test_routes()
    test_choice(found)
    test_restart(found)


lib.run(test, 120)
