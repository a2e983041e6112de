#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests networks that are built from a matrix: the limits of pairs and hosts, hosts without a link,
round trips, the command, wrong matrices, and that nothing is left behind.

The rates are low, so that a busy machine reaches them. What is checked is that each limit has effect
on its own pair, in its own direction, and on no other packets."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib
import matrix
import rates
from lib import Skipped, check, netns

COMMAND = pathlib.Path(matrix.__file__)
MBIT = 1e6
SECONDS, WARM_UP = 0.4, 0.5
ATTEMPTS = 5  # of a measurement; other programs may keep the machine busy during one of them
PLAIN = "reno"  # a congestion control that every kernel has

PAIRS = """
# Each pair has another rate than its other direction, and than two other pairs of its host.
hosts a b c d
rates Mbit/s
-  10 20 40
20 -  40 10
40 10 -  0     # c and d have no link
20 40 0  -
"""

CAPS = """
hosts a b c d
rates Mbit/s
-  40 40 40
40 -  40 40
40 40 -  40
40 40 40 -
round-trips ms
-  20 40 10
20 -  10 10
40 10 -  10
10 10 10 -
caps Mbit/s
60 0
0  50
0  0
0  0
"""

NO_CAPS = "hosts 2\nrates Mbit/s\n- 50\n50 -\n"

WRONG = (
    ("", "m: there is no section hosts"),
    ("# nothing\nrates Mbit/s\n", "m:2: field 1: the first section must be hosts, not rates"),
    ("hosts a\n", "m:1: there must be 2 to 32 hosts"),
    ("hosts 40\n", "m:1: there must be 2 to 32 hosts"),
    ("hosts a b a\n", "m:1: field 4: two hosts have the name a"),
    ("hosts a b/c\n", "m:1: field 3: a name may contain letters, digits, '.', '_' and '-': b/c"),
    ("hosts a b\n", "m: there is no section rates"),
    ("hosts a b\n\nrate Mbit/s\n", "m:3: field 1: a section must be rates, round-trips or caps, not rate"),
    ("hosts a b\nrates\n", "m:2: field 2: rates needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s"),
    ("hosts a b\nrates ms\n", "m:2: field 2: rates needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s"),
    ("hosts a b\nrates Mbit/s\n- 1\n", "m:2: rates needs 2 rows, not 1"),
    ("hosts a b\nrates Mbit/s\n- 1\ncaps Mbit/s\n1 1\n1 1\n", "m:2: rates needs 2 rows, not 1"),
    ("hosts a b\nrates Mbit/s\n- 1 1\n1 -\n", "m:3: field 3: a row of rates needs 2 fields, not 3"),
    ("hosts a b\nrates Mbit/s\n- 1\n1\n", "m:4: field 2: a row of rates needs 2 fields, not 1"),
    ("hosts a b\nrates Mbit/s\n- x\n1 -\n", "m:3: field 2: not a number: x"),
    ("hosts a b\nrates Mbit/s\n- -1\n1 -\n", "m:3: field 2: not a number: -1"),
    ("hosts a b\nrates Mbit/s\n- nan\n1 -\n", "m:3: field 2: not a number: nan"),
    ("hosts a b\nrates Mbit/s\n0 1\n1 -\n", "m:3: field 1: only the diagonal must be '-', and not 0"),
    ("hosts a b\nrates Mbit/s\n- -\n1 -\n", "m:3: field 2: only the diagonal must be '-', and not -"),
    ("hosts a b\nrates Mbit/s\n- 0\n1 -\n", "m:3: field 2: the rate from a to b is 0, and the rate of the other "
     "direction is not: set both or none to 0"),
    (NO_CAPS + "rates Mbit/s\n", "m:5: field 1: there are two sections rates"),
    (NO_CAPS + "caps Mbit/s\n1\n", "m:6: field 2: a row of caps needs 2 fields, not 1"),
    (NO_CAPS + "round-trips s\n", "m:5: field 2: round-trips needs one of the units us, ms"),
)


def wrong_matrices():
    for text, complaint in WRONG:
        try:
            matrix.Matrix(text, "m")
            said = "no error"
        except matrix.Wrong as error:
            said = str(error)
        check(said == complaint, f"a wrong matrix is refused: {complaint}", said)


def units_and_sections():
    m = matrix.Matrix("hosts 2 # two\ncaps Gbit/s\n1 0\n0 2.5\n\nrates kbit/s\n- 1e3\n 2000 -\n"
                      "round-trips us\n- 100\n200 -\n")
    check((m.names, m.rates, m.caps) == (["host-0", "host-1"], [[0, 1e6], [2e6, 0]], [[1e9, 0], [0, 2.5e9]])
          and abs(m.trips[1][0] - 200e-6) < 1e-9,
          "units, comments and sections in another order are understood", vars(m))


def examples():
    found = sorted((pathlib.Path(__file__).parent / "matrices").iterdir())
    for path in found:
        check(len(matrix.read(path).names) == 6, f"the example {path.name} is a matrix of 6 hosts")
    check(len(found) >= 5, "there are examples", found)


def make(text):
    try:
        return matrix.Hosts(matrix.Matrix(text))
    except OSError as error:
        raise Skipped(f"no network from a matrix: {error}") from None


def within(measured, stated):
    return 0.75 * stated < measured < 1.25 * stated


def is_measured(hosts, pairs, good, text):
    """Checks what arrives when all pairs send at the same time."""
    for _ in range(ATTEMPTS):
        values = [v / MBIT for v in rates.goodputs(hosts, pairs, SECONDS, WARM_UP, PLAIN)]
        if good(values):
            break
    check(good(values), text, " ".join(f"{v:.1f}" for v in values) + " Mbit/s")


def pairs_have_rates(hosts):
    """Measures pairs together that share no host, because acknowledgements wait behind data."""
    for pairs in (((0, 1),), ((1, 0),), ((0, 2), (1, 3)), ((2, 0), (3, 1)), ((0, 3), (1, 2)), ((3, 0), (2, 1))):
        stated = [hosts.matrix.rates[a][b] / MBIT for a, b in pairs]
        is_measured(hosts, pairs, lambda values, stated=stated: all(map(within, values, stated)),
                    " and ".join(f"from {hosts.label(a)} to {hosts.label(b)} {rate:g} Mbit/s"
                                 for (a, b), rate in zip(pairs, stated)))


def no_link(hosts):
    for pair in ((2, 3), (3, 2)):
        try:
            rates.connect(hosts, pair)
            said = "connected"
        except OSError as error:
            said = error.strerror
        check(said == os.strerror(113), f"hosts without a link cannot connect: {pair}", said)


def caps_hold(hosts):
    is_measured(hosts, [(0, 1), (0, 2), (0, 3)], lambda values: within(sum(values), 60) and min(values) > 10,
                "the out cap holds when a host sends to all, and each of them gets a part")
    is_measured(hosts, [(0, 1), (2, 1), (3, 1)], lambda values: within(sum(values), 50),
                "the in cap holds when all send to one host")
    is_measured(hosts, [(0, 1)], lambda values: within(values[0], 40), "a pair below the caps has its own rate")
    is_measured(hosts, [(0, matrix.NET), (matrix.NET, 1)], lambda values: min(values) > 90,
                "no limit applies to the host for masters, in either direction")


def trips_are_long(hosts):
    for a in range(hosts.n_hosts):
        for b in range(a + 1, hosts.n_hosts):
            trip, stated = rates.round_trips(hosts, (a, b), 5)[0], hosts.matrix.trips[a][b]
            check(stated <= trip < stated + 0.009,
                  f"a round trip from {hosts.label(a)} to {hosts.label(b)} takes {stated * 1e3:g} ms", trip)
    trip = rates.round_trips(hosts, (0, matrix.NET), 5)[0]
    check(trip < 0.005, "packets to the host for masters are not delayed", trip)


def runs_a_system():
    """The daemons and peers of the other tests run on these hosts."""
    with lib.Lab(hosts=make(CAPS)) as lab:
        lab.start_master(matrix.NET)
        for host in range(lab.hosts.n_hosts):
            lab.start_agent(host)
        peers = lab.start_peers(range(lab.hosts.n_hosts))
        answers = lib.together(peers, f"reduce type=f32 op=sum count=1000 ids={lib.ids_of(peers)}")
        check(not lib.judge(answers), "agents and peers on the hosts of a matrix reduce", lib.judge(answers))
        lab.check_alive()


# ----------------------------------------------------------------------------- the command


class Run:
    """A run of matrix.py. `inside`: the inodes of the hosts' namespaces, if await_hosts was called."""

    def __init__(self, folder, *words, text=NO_CAPS):
        path = folder / "matrix"
        path.write_text(text, "utf-8")
        self.process = subprocess.Popen(
            [sys.executable, COMMAND, *[w if w != "FILE" else str(path) for w in words]],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lib._die_with_parent)
        self.inside = []

    def result(self):
        out, errors = self.process.communicate(timeout=lib.WAIT)
        return self.process.returncode, sorted(out.splitlines()), errors.strip()

    def await_hosts(self):
        """Reads what SLEEP prints on each host."""
        for _ in range(2):
            line = self.process.stdout.readline()
            found = re.search(r"net:\[(\d+)\]", line)
            if not found:
                raise lib.Failed(f"matrix.py printed {line} and {self.process.stderr.read()}")
            self.inside.append(found[1])

    def children(self):
        """Returns the pids of all processes below matrix.py, the eldest first."""
        found = [self.process.pid]
        for pid in found:
            try:
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    found += [int(word) for word in (task / "children").read_text("ascii").split()]
            except OSError:
                continue
        return found[1:]

    def is_gone(self):
        """Returns whether no process or mount holds a namespace of the hosts."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if any(x in os.readlink(entry / "ns/net") for x in self.inside):
                    return False
                mounts = (entry / "mountinfo").read_text("utf-8", "replace")
                if any(f"net:[{x}]" in mounts for x in self.inside):
                    return False
            except OSError:
                continue
        return True


SLEEP = ["sh", "-c", "readlink /proc/self/ns/net; sleep 1000 & sleep 1000"]


def kill_eldest(run):
    run.process.kill()


def kill_first_inside(run):
    """Kills the first process of the PID namespace, which is the child of unshare."""
    os.kill(run.children()[1], signal.SIGKILL)


def kill_commands(run):
    for pid in run.children():
        if pathlib.Path(f"/proc/{pid}/comm").read_text("ascii") == "sh\n":
            os.kill(pid, signal.SIGKILL)


def terminate(run):
    run.process.terminate()


def is_killed(folder, fault, what):
    before = set(os.listdir(tempfile.gettempdir()))
    run = Run(folder, "FILE", "--", *SLEEP)
    run.await_hosts()
    check(not run.is_gone(), f"{what}: the network is there before")
    fault(run)
    run.process.wait(lib.WAIT)
    lib.until(run.is_gone, f"{what}: namespaces are left behind")
    check(True, f"{what}: the network is gone")
    check(set(os.listdir(tempfile.gettempdir())) <= before, f"{what}: no file is left behind",
          set(os.listdir(tempfile.gettempdir())) - before)
    run.process.communicate()


def command(folder):
    check(Run(folder, "FILE").result() == (0, [
        "host-0: 10.86.0.1, links to 1 hosts, out no cap, in no cap",
        "host-1: 10.86.0.2, links to 1 hosts, out no cap, in no cap"], ""), "matrix.py FILE prints the hosts")
    done = Run(folder, "FILE", "--", "true", text="hosts a b\nrates Mbit/s\n- x\n1 -\n").result()
    check(done == (2, [], f"matrix.py: {folder}/matrix:3: field 2: not a number: x"),
          "matrix.py names the line and the field of a mistake", done)
    done = Run(folder, "FILE", "--", "sh", "-c",
               'echo $LAB_HOST $LAB_INDEX $LAB_ADDRESS $LAB_NET of $LAB_HOSTS; touch $XDG_RUNTIME_DIR/mine; '
               'ls $XDG_RUNTIME_DIR').result()
    check(done == (0, ["host-0: host-0 0 10.86.0.1 10.86.0.254 of host-0 host-1", "host-0: mine",
                       "host-1: host-1 1 10.86.0.2 10.86.0.254 of host-0 host-1", "host-1: mine"], ""),
          "the command runs on each host, with a folder and a description of the host", done)
    done = Run(folder, "FILE", "--", "sh", "-c", "exit $LAB_INDEX").result()
    check(done == (1, [], "matrix.py: the command on host-1 has ended with status 1"),
          "a command that fails on one host fails the run", done)
    done = Run(folder, "--net", "exit 3", "FILE", "--", "true").result()
    check(done == (1, [], "matrix.py: the command of --net has ended with status 3"),
          "the hosts do not begin when the command of --net ends", done)
    serve = ("import socket; s = socket.create_server(('', 4000)); "
             "[s.accept()[0].sendall(b'hello\\n') for _ in range(2)]")
    done = Run(folder, "--net", f"sleep 0.2; {sys.executable} -c \"{serve}\"", "FILE", "--", sys.executable, "-c",
               "import os, socket; "
               "print(socket.create_connection((os.environ['LAB_NET'], 4000)).recv(9))").result()
    check(done == (0, ["host-0: b'hello\\n'", "host-1: b'hello\\n'"], ""),
          "the hosts begin when the command of --net listens", done)


def left_over():
    """Returns the names of namespaces of this process."""
    folder = pathlib.Path("/run/netns")
    return [p.name for p in folder.glob(f"pcclmatrix-{os.getpid()}-*")] if folder.is_dir() else []


def nothing_is_left():
    def refuse(tool, name, lines):
        if tool == "tc" and name.endswith("-3"):
            raise OSError("tc is not possible")
        batch(tool, name, lines)

    batch, matrix._batch = matrix._batch, refuse
    try:
        matrix.Hosts(matrix.Matrix(CAPS))
        said = "no error"
    except OSError as error:
        said = str(error)
    finally:
        matrix._batch = batch
    check(said == "tc is not possible" and not left_over(), "a network that fails leaves nothing behind",
          (said, left_over()))
    with make(CAPS) as hosts:
        process = hosts.spawn(0, ["sleep", "1000"])
        hosts.switch.kill()
        process.kill()
        folder = hosts.folder
    check(not left_over() and not folder.exists(), "a network whose processes were killed leaves nothing behind",
          (left_over(), folder))


def test():
    wrong_matrices()
    units_and_sections()
    examples()
    if not netns.possible():
        raise Skipped("only root can build a network, with ip")
    with make(PAIRS) as hosts:
        pairs_have_rates(hosts)
        no_link(hosts)
    with make(CAPS) as hosts:
        trips_are_long(hosts)
        caps_hold(hosts)
    runs_a_system()
    nothing_is_left()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command(folder)
        is_killed(folder, kill_eldest, "matrix.py is killed")
        is_killed(folder, kill_first_inside, "the first process of the namespaces is killed")
        is_killed(folder, kill_commands, "the commands are killed")
        is_killed(folder, terminate, "matrix.py is terminated")


lib.run(test, 180)
