#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trainer is stopped in a way that /proc does not show to its agent: its cgroup is frozen, or the
agent has its own PID namespace, or sees no process of other users. The trainer is counted as lost
like a stopped trainer, and goes on if it runs again in time."""

import contextlib
import signal
import subprocess

import cgroup
import lib
from lib import Failed, check, ids_of, judge

COUNT = 5003
NOBODY = "65534"
# The program and its arguments are appended to these commands. The last word here is $0 of the
# shell, and the appended words are "$@".
PID_NAMESPACE = ("unshare", "--pid", "--mount", "sh", "-c", """
trap 'kill -TERM $!' TERM
setpriv --pdeathsig KILL sh -c 'mount -t proc proc /proc && exec "$@"' sh "$@" &
wait
wait $!""", "sh")
HIDEPID = ("unshare", "--mount", "sh", "-c", f"""
mount -t proc -o hidepid=2 proc /proc &&
exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --pdeathsig KILL "$@" """, "sh")


class Hosts(lib.Loopback):
    """Hosts of which the first one starts its agent through a command."""

    def __init__(self, way):
        super().__init__(2)
        self.way = way

    def command(self, host, args):
        return [*self.way, *args] if host == 0 and args[0] == str(lib.AGENTD) else args


# ------------------------------------------------------------------------- standing still


@contextlib.contextmanager
def stopped(peer):
    peer.process.send_signal(signal.SIGSTOP)
    lib.await_stop(peer)
    try:
        yield
    finally:
        lib.wake(peer)


class Freezer(cgroup.Cgroup):
    """A cgroup that can be frozen."""

    def __init__(self):
        super().__init__((("freezer", "freezer.state"),
                          *((place, "cgroup.freeze") for place in cgroup.UNIFIED)))
        self.frozen, self.thawed, self.events, self.done = (
            ("FROZEN", "THAWED", "freezer.state", "FROZEN") if self.place == 0 else
            ("1", "0", "cgroup.events", "frozen 1"))

    @contextlib.contextmanager
    def freeze(self, peer):
        self.take(peer.pid)
        self.set(self.frozen)
        lib.until(lambda: self.done in (self.folder / self.events).read_text("ascii"),
                  "the cgroup does not freeze")
        try:
            yield
        finally:
            self.set(self.thawed)
            self.let_go(peer.pid)


# --------------------------------------------------------------------------------- scenes


def words(peers, tag):
    return f"type=f32 op=sum count={COUNT} tag={tag} seed={tag} ids={ids_of(peers)} verify=1"


def reduce(peers, tag):
    answers = lib.together(peers, f"reduce {words(peers, tag)}")
    if judge(answers):
        raise Failed(judge(answers))


def start(lab, options):
    lab.folder.chmod(0o777)
    lab.start(agent_options=options)
    peers = lab.start_peers((0, 0, 1))
    reduce(peers, 1)
    return peers


def for_long(way, still, name):
    with lib.Lab(hosts=Hosts(way)) as lab:
        peers = start(lab, ("--stopped-timeout-ms", "600", "--beat-timeout-ms", "900"))
        left = [peers[0], peers[2]]
        with still(peers[1]):
            answers = lib.together(left, f"reduce {words(peers, 2)}")
            codes = [a["code"] for a in answers]
            check(codes == [lib.RANK_CONNECTION_LOST] * 2,
                  f"{name}: the trainer that stands still is counted as lost", codes)
            reduce(left, 3)
            check(any("stopped" in line and "counted as lost" in line
                      for line in lab.agents[0].log_lines()),
                      f"{name}: the agent logs that the trainer is stopped and lost")
        answer = peers[1].call(f"reduce {words(peers, 2)}")
        check(answer["code"] != lib.SUCCESS and "stopped" in answer["text"],
              f"{name}: the lost trainer gets the reason when it runs again", answer)
        lab.check_alive()


def for_a_moment(way, still, name):
    with lib.Lab(hosts=Hosts(way)) as lab:
        peers = start(lab, ("--stopped-timeout-ms", "60000", "--beat-timeout-ms", "600"))
        with still(peers[1]):
            for peer in (peers[0], peers[2]):
                peer.send(f"reduce {words(peers, 2)}")
            lab.agents[0].await_log(") is stopped")
        peers[1].send(f"reduce {words(peers, 2)}")
        answers = [p.read() for p in peers]
        check(not judge(answers),
              f"{name}: the operation goes on when the trainer runs again soon", judge(answers))
        lab.agents[0].await_log(") runs again")
        lab.check_alive()


def possible(way):
    done = subprocess.run([*way, "true"], capture_output=True, check=False, timeout=lib.WAIT)
    return done.returncode == 0


def scenes(way, still, name):
    for_long(way, still, name)
    for_a_moment(way, still, name)


def test():
    try:
        freezer = Freezer()
    except OSError as error:
        print(f"# no frozen cgroup: {error}")
    else:
        with contextlib.closing(freezer):
            scenes((), freezer.freeze, "frozen cgroup")
    for way, name in ((PID_NAMESPACE, "agent in another PID namespace"), (HIDEPID, "hidepid=2")):
        if possible(way):
            scenes(way, stopped, name)
        else:
            print(f"# {name}: not possible here")
    if not lib.results.passed + lib.results.failed:
        raise lib.Skipped("neither cgroups nor namespaces can be made")


lib.run(test, 150)
