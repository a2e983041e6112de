#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how fast shared state reaches a newcomer, compared with what network and memory can do
in the same run.

usage: ./dev figures state [--rows ROW,...] [--size MIB] [--repeat N]

two-hosts   from a holder to a newcomer on another host, compared with iperf3 -P4
shaped      three holders and a newcomer, each with a link of 1 Gbit/s in both directions, compared
            with iperf3 -P4
uneven      the same, but the link of the first holder has 100 Mbit/s: do the others
            compensate for it?
same-host   to a newcomer on the holder's host, compared with memcpy
equal       equal states, compared with the time of their hash and one vote; 100 tensors compared
            with one

Hosts are network namespaces (root). The state is one tensor of MIB (in `equal` also a hundred
tensors) unless the row says otherwise. A newcomer is a peer at revision 0, with new memory, in
which no byte is right. After each transfer, tensors are compared. No test depends on the times:
bench/RESULTS.md keeps the table.
"""

import json
import subprocess
import sys

import lib
from lib import Failed
from measure import MIB, main, median, note, shape, since_all_called

NS = 1e9
IPERF_PORT = 5201
IPERF_SECONDS = 3
LINK = 1e9 / 8  # bytes per second of a shaped link
HSH_TIME = lib.BUILD / "bench/hsh_time"
LIMIT = 180  # limit of one synchronization, in seconds

# ------------------------------------------------------------------- peers with state


class Group:
    """Holders and newcomers of one run, which synchronize again and again."""

    def __init__(self, holders, newcomers):
        self.holders, self.newcomers = holders, newcomers
        self.revision = 0
        self.tensors = ""

    @property
    def peers(self):
        return [*self.holders, *self.newcomers]

    def load(self, size, tensors=1, memory="own"):
        self.tensors = (f"tensors n={tensors} type=f32 count={size // tensors // 4} "
                        f"mem={memory}")
        lib.together(self.peers, "state revision=0", LIMIT)
        lib.together(self.peers, self.tensors, LIMIT)

    def spoil(self, size):
        """Gives the newcomers new memory, in which no byte is right."""
        lib.together(self.newcomers, "state revision=0", LIMIT)
        lib.together(self.newcomers, self.tensors, LIMIT)
        lib.together(self.newcomers, f"spoil n={size}", LIMIT)

    def sync(self):
        """Synchronizes all peers. The newcomers have revision 0. Returns the answers, and the time
        in ns from the last call to the last return."""
        self.revision += 1
        for peer in self.holders:
            peer.send(f"sync revision={self.revision} hash=0")
        for peer in self.newcomers:
            peer.send("sync revision=0 hash=0")
        answers = [p.read(LIMIT) for p in self.peers]
        wrong = [a for a in answers if a["code"] != lib.SUCCESS or a["check"] != "ok"
                 or a["revision"] != self.revision]
        if wrong:
            raise Failed(f"a synchronization failed: {wrong}")
        return answers, since_all_called(answers)

    def compare(self):
        if len({a["hash"] for a in lib.together(self.peers, "digest", LIMIT)}) != 1:
            raise Failed("contents differ after a synchronization")

    def transfer(self, size):
        """Runs a synchronization that transfers all bytes to each newcomer."""
        self.spoil(size)
        answers, took = self.sync()
        for a in answers[len(self.holders):]:
            if a["rx"] != size:
                raise Failed(f"a newcomer received {a['rx']} of {size} bytes")
        self.compare()
        return answers, took

    def unloaded(self):
        lib.together(self.peers, "state revision=0", LIMIT)


def with_equal(group, size, repeat):
    """Makes transfers. Synchronizes the equal states again after each one. Returns for each transfer
    the time of the transfer, the time of the second synchronization, and the answers to the transfer."""
    found = []
    for _ in range(repeat):
        answers, took = group.transfer(size)
        found.append((took, group.sync()[1], answers))
    return found


# ------------------------------------------------------------------ values to compare


def iperf(hosts, source, sink):
    """Returns the bytes per second that four streams of iperf3 move from one host to the other."""
    server = subprocess.Popen(
        hosts.command(sink, ["iperf3", "-s", "-1", "--forceflush", "-p", str(IPERF_PORT)]),
        stdout=subprocess.PIPE, text=True)
    try:
        while "listening" not in (line := server.stdout.readline()):
            if not line:
                raise Failed(f"iperf3 does not listen, status {server.wait()}")
        done = subprocess.run(
            hosts.command(source, [
                "iperf3", "-c", hosts.address(sink), "-p", str(IPERF_PORT), "-P", "4", "-J", "-t",
                str(IPERF_SECONDS)]),
            capture_output=True, text=True, check=False, timeout=60)
        answer = json.loads(done.stdout or "{}")
        if "sum_received" not in answer.get("end", {}):
            raise Failed(f"iperf3: {answer.get('error', done.stderr)}")
        return answer["end"]["sum_received"]["bits_per_second"] / 8
    finally:
        server.kill()
        server.wait()


def interface_bytes(hosts, host):
    """Returns the bytes sent and received on the host's interfaces, the loopback interface
    included."""
    files = [f"/sys/class/net/{name}/statistics/{way}_bytes" for name in ("eth0", "lo")
             for way in ("tx", "rx")]
    done = subprocess.run(hosts.command(host, ["cat", *files]), capture_output=True, text=True,
                          check=True, timeout=20)
    return sum(int(x) for x in done.stdout.split())


class Hasher:
    """Processes that hash as much as the peers do, at the same time."""

    def __init__(self, size, tensors, n):
        self.processes = [
            subprocess.Popen([HSH_TIME, str(size), str(tensors)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) for _ in range(n)]
        self.time()

    def time(self):
        for process in self.processes:
            process.stdin.write("\n")
            process.stdin.flush()
        return max(int(p.stdout.readline()) for p in self.processes)

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(LIMIT)


def share(values, beside):
    return 100 * median(values) / median(beside)


# ------------------------------------------------------------------------------- rows


def start(lab, holders, newcomers, streams=4):
    peers = lab.start_peers([*holders, *newcomers], streams=streams)
    return Group(peers[:len(holders)], peers[len(holders):])


def note_transfer(row, setting, size, found, beside, what, target):
    """Prints both figures of a transfer: the whole call, and the call without the cost of an equal
    state."""
    whole = [size / took for took, _, _ in found]
    moving = [size / max(1, took - equal) for took, equal, _ in found]
    note(row, f"{setting}, whole call", whole, 2, "GB/s", f"{share(whole, beside):.1f} % of {what} "
         f"({median(beside):.2f} GB/s)", target)
    note(row, f"{setting}, without hash and vote", moving, 2, "GB/s",
         f"{share(moving, beside):.1f} %", target)


def two_hosts(size, repeat):
    for memory in ("own", "shared"):
        hosts = lib.make_namespaces(2)
        with lib.Lab(hosts=hosts) as lab:
            lab.start()
            group = start(lab, [0], [1])
            group.load(size, memory=memory)
            plain, found = [], []
            group.sync()
            for _ in range(repeat):
                plain.append(iperf(hosts, 0, 1) / NS)
                found += with_equal(group, size, 1)
            plain.append(iperf(hosts, 0, 1) / NS)
            note_transfer("two-hosts", f"{size // MIB} MiB, {memory} memory", size, found, plain,
                          "iperf3 -P4", "80 %")
            lab.check_alive()


def three_holders(row, rates, size, repeat):
    """Measures transfers to the last of four hosts whose links have these rates."""
    hosts = lib.make_namespaces(4)
    with lib.Lab(hosts=hosts) as lab:
        shape(hosts, rates)
        lab.start()
        group = start(lab, [0, 1, 2], [3])
        group.load(size)
        plain, found = [], []
        group.sync()
        for _ in range(repeat):
            plain.append(iperf(hosts, 2, 3))
            found += with_equal(group, size, 1)
        whole = [size / took * NS / LINK * 100 for took, _, _ in found]
        moving = [size / (took - equal) * NS / LINK * 100 for took, equal, _ in found]
        beside = f"iperf3 -P4 from one holder: {100 * median(plain) / LINK:.1f} %"
        setting = f"{size // MIB} MiB, three holders"
        note(row, f"{setting}, whole call, of the newcomer's link", whole, 1, "%", beside, "90 %")
        note(row, f"{setting}, without hash and vote", moving, 1, "%", beside, "90 %")
        equals = [k for k, rate in enumerate(rates[:3]) if rate == max(rates)]
        far = []
        for _, _, answers in found:
            sent = [answers[k]["tx"] for k in equals]
            mean = sum(sent) / len(sent)
            far.append(max(abs(n - mean) for n in sent) / mean * 100)
        shares = " / ".join(f"{a['tx'] * 100 / size:.1f} %" for a in found[-1][2][:3])
        note(row, f"{setting}, largest deviation from the mean of the holders with equal links",
             far, 1, "%", f"the last time all sent {shares}", "25 %")
        lab.check_alive()


def shaped(size, repeat):
    three_holders("shaped", [1000] * 4, size, repeat)


def uneven(size, repeat):
    three_holders("uneven", [100, 1000, 1000, 1000], size, repeat)


def same_host(size, repeat):
    # The master is on another host, so only its messages pass through the interface.
    for memory in ("own", "shared"):
        hosts = lib.make_namespaces(2)
        with lib.Lab(hosts=hosts) as lab:
            lab.start()
            group = start(lab, [1], [1])
            group.load(size, memory=memory)
            group.sync()
            plain, found, network = [], [], []
            for _ in range(repeat):
                plain.append(size / group.newcomers[0].call(f"memcpy bytes={size}", LIMIT)["median"])
                group.spoil(size)
                before = interface_bytes(hosts, 1)
                answers, took = group.sync()
                network.append(interface_bytes(hosts, 1) - before)
                group.compare()
                found.append((took, group.sync()[1], answers))
            setting = f"{size // MIB} MiB, {memory} memory"
            note_transfer("same-host", setting, size, found, plain, "memcpy", "3 GB/s or 50 %")
            note("same-host", f"{setting}, bytes on the network, control included",
                 [n / 1024 for n in network], 1, "KiB", "", "0 of the state")
            lab.check_alive()


def equal(size, repeat):
    hosts = lib.make_namespaces(2)
    hasher = Hasher(size, 1, 2)
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        groups = {}
        for number, (name, nbytes, tensors) in enumerate(
                (("one", size, 1), ("hundred", size, 100), ("vote", 4, 1))):
            peers = [lab.start_peer(10 * number + k, k, group=number) for k in range(2)]
            groups[name] = (Group(peers, []), nbytes, tensors)
        lib.form_run([p for group, _, _ in groups.values() for p in group.peers])
        for group, nbytes, tensors in groups.values():
            group.load(nbytes // tensors * tensors, tensors)
            group.sync()
        times = {name: [] for name in (*groups, "hash")}
        for _ in range(repeat):
            times["hash"].append(hasher.time())
            for name, (group, _, _) in groups.items():
                answers, took = group.sync()
                times[name].append(took)
                if any(a["rx"] or a["tx"] for a in answers):
                    raise Failed(f"equal states, but bytes were moved: {answers}")
        lab.check_alive()
    hasher.close()
    ms = {name: [t / 1e6 for t in values] for name, values in times.items()}
    setting = f"{size // MIB} MiB on two hosts"
    expected = median(ms["hash"]) + median(ms["vote"])
    note("equal", f"{setting}, one tensor", ms["one"], 2, "ms",
         f"hash {median(ms['hash']):.2f} + vote {median(ms['vote']):.2f} = {expected:.2f} ms", "")
    note("equal", f"{setting}, a hundred tensors", ms["hundred"], 2, "ms",
         f"{median(ms['hundred']) - median(ms['one']):+.2f} ms; pairwise "
         f"{median([h - o for h, o in zip(ms['hundred'], ms['one'])]):+.2f} ms", "2 ms more")


ROWS = {"two-hosts": two_hosts, "shaped": shaped, "uneven": uneven, "same-host": same_host,
        "equal": equal}


if __name__ == "__main__":
    sys.exit(main(__doc__, ROWS, 1024))
