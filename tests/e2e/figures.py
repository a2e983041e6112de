#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures all-reduces in settings that ./dev bench does not cover: on links with a limited rate or
a high round trip, and with many operations at once. Also measures their memory, and the cost of
idle sessions.

usage: ./dev figures [links] [--rows ROW,...] [--size MIB] [--repeat N]

quick    for orientation: 256 MiB and 4 bytes, on two hosts and on one
shaped   links of 100 Mbit/s, 1 and 10 Gbit/s: MIB / 4
far      links of 1 Gbit/s, round trips of 20 and 100 ms, without and with a loss of 0.1 %: MIB
         in one call
quantized
         sums with int8 and int4 on the network, compared with fp32: links of 1 Gbit/s between two
         and between six hosts, and a link without a limit: MIB / 4
messages packets and wake-ups of an operation of 4 bytes over the tree, by the number of hosts. The
         number for each host and each hop of the tree should not grow
many     16 operations of MIB / 16 in flight, compared with one operation of MIB
memory   of agents and peers, with four times MIB; measured on the whole machine, so nothing else
         should run
idle     processor time and memory of an agent with 100 peers that do nothing

Hosts are network namespaces (root) with one peer each, unless the row says otherwise. The operation
is an fp32 sum, in place (disposable outputs: out of place), on communicators with default options.
Rates are given as shares of the rate at which tbf lets full TCP packets pass.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time

import lib
import high_rtt
from lib import Failed
from measure import MIB, PAYLOAD, main, median, note, shape, since_all_called

BENCH = lib.BUILD / "pccl-bench/pccl-bench"
LIMIT = 300  # seconds, for the calls of one setting
IDLE_SECONDS = 30
LOOK_SECONDS = 0.005  # between two reads of the memory in use
IDLE_PEERS = 100
# name, words for the peers, and the largest time as a share of the time of fp32: on links of
# 1 Gbit/s, and on a link without a limit
MODES = (("fp32", "", ("", "")), ("int8", "quant=64 qtype=1", ("0.28", "1")),
         ("int4", "quant=64 qtype=64", ("0.155", "")))


def bench(peers, size, n, words="mem=shared"):
    """Runs n calls and returns the answers of the peers with their times."""
    answers = lib.together(
        peers, f"bench type=f32 op=sum count={size // 4} tag=1 n={n} place=in {words}", LIMIT)
    if any(a["code"] != lib.SUCCESS for a in answers):
        raise Failed(f"{size} bytes: {answers}")
    return answers


# ------------------------------------------------------------------------------ quick


def quick(_size, repeat):
    for where, places in (("two hosts", (0, 1)), ("one host", (0, 0))):
        hosts = lib.make_namespaces(len(set(places)))
        with lib.Lab(hosts=hosts) as lab:
            lab.start()
            peers = [lab.start_peer(k, host) for k, host in enumerate(places)]
            for size, n in ((256 * MIB, 5), (4, 2000)):
                for memory in ("shared", "own"):
                    times = []
                    for _ in range(repeat):
                        lib.form_run(peers, 4)
                        times.append(max(a["median"] for a in bench(peers, size, n, f"mem={memory}")))
                        lib.together(peers, "destroy")
                    note("quick", f"{where}, {size} bytes, {memory} memory", [t / 1e6 for t in times],
                         3, "ms", f"{size / median(times):.2f} GB/s")


# -------------------------------------------------------------------- links with a rate


def of_link(row, hosts, setting, rate, size, repeat, target):
    """Measures all-reduces between two hosts. The rate of the link is in Mbit/s."""
    with lib.Lab(hosts=hosts) as lab:
        shape(hosts, [rate] * 2)
        lab.start()
        peers = lab.start_peers([0, 1])
        for memory in ("shared", "own"):
            bench(peers, size, 1, f"mem={memory}")  # brings the streams up to speed
            times = [since_all_called(bench(peers, size, 1, f"mem={memory}")) for _ in range(repeat)]
            whole = [100 * size / (t / 1e9) / (rate * 1e6 / 8 * PAYLOAD) for t in times]
            note(row, f"{setting}, {size // MIB} MiB, {memory} memory", whole, 1, "%",
                 f"{median(times) / 1e6:.0f} ms", target)
        lab.check_alive()


def shaped(size, repeat):
    for rate, target in ((100, ""), (1000, "98 %"), (10000, "")):
        of_link("shaped", lib.make_namespaces(2), f"{rate} Mbit/s", rate, size // 4, repeat, target)


def far(size, repeat):
    for trip in (20, 100):
        for loss in (0, 0.001):
            hosts = lib.make_namespaces(2, high_rtt.Hosts,
                                        ways={1: {"delay": trip / 2, "loss": loss}})
            of_link("far", hosts, f"1 Gbit/s, {trip} ms, {loss:.1%} lost", 1000, size, repeat,
                    "90 %" if trip == 100 and not loss else "")


def quantized(size, repeat):
    for n_hosts, rate in ((2, 1000), (6, 1000), (2, None)):
        hosts = lib.make_namespaces(n_hosts)
        where = f"{n_hosts} hosts, {f'{rate} Mbit/s' if rate else 'no limit'}, {size // 4 // MIB} MiB"
        with lib.Lab(hosts=hosts) as lab:
            if rate:
                shape(hosts, [rate] * n_hosts)
            lab.start()
            peers = lab.start_peers(range(n_hosts))
            times = {name: [] for name, _, _ in MODES}
            for _ in range(repeat + 1):  # the first turn brings the streams up to speed
                for name, words, _ in MODES:
                    times[name].append(since_all_called(bench(peers, size // 4, 1,
                                                              f"mem=shared {words}")))
            for name, _, targets in MODES:
                ratios = [t / base for t, base in zip(times[name][1:], times["fp32"][1:])]
                note("quantized", f"{where}, {name}", ratios, 3, "of fp32",
                     f"{median(times[name][1:]) / 1e6:.0f} ms", targets[not rate])
            lab.check_alive()


# ---------------------------------------------------------------------------- messages


def packets_of(agent):
    """Returns how many TCP packets with data the host of the agent has sent. The kernel counts
    packets without data only at their receiver. So the value for one host is wrong, but the sum over
    all hosts is right."""
    fields = {}
    for file in ("snmp", "netstat"):
        lines = pathlib.Path(f"/proc/{agent.pid}/net/{file}").read_text("ascii").splitlines()
        for names, numbers in zip(lines[::2], lines[1::2]):
            fields.update(zip(names.split(), numbers.split()))
    return int(fields["OutSegs"]) - int(fields["TCPPureAcks"])


def sleeps_of(pid):
    """Returns how often the threads of a process have slept."""
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", p.read_text("ascii"), re.M)[1])
               for p in pathlib.Path(f"/proc/{pid}/task").glob("*/status"))


def messages(_size, repeat):
    calls = 500
    for n_hosts in (2, 3, 4, 6, 8, 12, 16):
        with lib.Lab(hosts=lib.make_namespaces(n_hosts)) as lab:
            lab.start(master_options=("--algorithm", "tree"))
            peers = lab.start_peers(range(n_hosts))
            agents = list(lab.agents.values())
            pids = [p.pid for p in (lab.master, *agents, *peers)]
            bench(peers, 4, calls)  # meanwhile the agents open the links of the mesh
            packets, sleeps = [], []
            for _ in range(repeat):
                before = sum(map(packets_of, agents)), sum(map(sleeps_of, pids))
                bench(peers, 4, calls)
                packets.append((sum(map(packets_of, agents)) - before[0]) / calls)
                sleeps.append((sum(map(sleeps_of, pids)) - before[1]) / calls)
            unit = n_hosts * math.ceil(math.log2(n_hosts))
            for what, counted in (("packets", packets), ("wake-ups", sleeps)):
                note("messages", f"{n_hosts} hosts, {what}", counted, 1, "",
                     f"{median(counted) / unit:.2f} for each host and hop")


# -------------------------------------------------------------------------- pccl-bench


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("PCCL_")}
    return dict(env, PCCL_AGENTD=str(lib.AGENTD), PCCL_MASTERD=str(lib.MASTERD))


def start_bench(size, *words):
    where = () if "--disposable" in words else ("--in-place",)
    return subprocess.Popen(
        [BENCH, "allreduce", "-b", str(size), "-e", str(size), "--json", *where, *words],
        env=environment(), stdout=subprocess.PIPE, text=True)


def end_bench(process):
    said = process.communicate(timeout=LIMIT)[0]
    if process.returncode != 0:
        raise Failed(f"pccl-bench ended with status {process.returncode}")
    return json.loads(said)["rows"][0]


def many(size, repeat):
    for memory in ("staged", "registered"):
        one, several = [], []
        for _ in range(repeat):
            words = ("--hosts", "2", "--peers", "2", "--streams", "4", "--memory", memory, "-n", "10")
            one.append(end_bench(start_bench(size, *words))["algbw"] / 1e9)
            several.append(end_bench(start_bench(size // 16, "--async", "16", *words))["algbw"] / 1e9)
        note("many", f"16 of {size // 16 // MIB} MiB in flight, two hosts, {memory}", several, 2, "GB/s",
             f"{median(several) / median(one):.2f} of one of {size // MIB} MiB "
             f"({median(one):.2f} GB/s)", "0.95")


def memory_in_use():
    """Returns the bytes in use on the whole machine, without files. A sum over processes would
    count a page twice if another process maps it during the count."""
    fields = dict(line.split(":") for line in
                  pathlib.Path("/proc/meminfo").read_text("ascii").splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("AnonPages", "Shmem"))


def memory(size, repeat):
    size *= 4
    for hosts in (1, 2):
        for kind, target in (("staged", "1.1"), ("registered", "0.1"),
                             ("registered --disposable", "0.1")):
            buffers = 4 if "--disposable" in kind else 2  # bytes of both peers
            most = []
            for _ in range(repeat):
                before = peak = memory_in_use()
                process = start_bench(size, "--hosts", str(hosts), "--peers", "2", "--memory",
                                      *kind.split(), "-n", "3", "-w", "1")
                while process.poll() is None:
                    peak = max(peak, memory_in_use())
                    time.sleep(LOOK_SECONDS)
                end_bench(process)
                most.append((peak - before - buffers * size) / 2 / size)
            note("memory", f"{size // MIB} MiB, {hosts} host{'s' if hosts > 1 else ''} with 2 peers in all, "
                 f"{kind}: peak memory of all processes without the buffers, per peer", most, 3,
                 "of the size", "", target)


# -------------------------------------------------------------------------------- idle


def cpu_ns(pid):
    return sum(int(p.read_text("ascii").split()[0])
               for p in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def idle(_size, repeat):
    with lib.Lab(1) as lab:
        lab.start()
        lib.form_run([lab.start_peer(k, group=k % 2) for k in range(IDLE_PEERS)])
        agent = lab.agents[0]
        shares, sizes = [], []
        for _ in range(repeat):
            before, start = cpu_ns(agent.pid), time.monotonic_ns()
            time.sleep(IDLE_SECONDS)
            shares.append(100 * (cpu_ns(agent.pid) - before) / (time.monotonic_ns() - start))
            sizes.append(agent.status("VmRSS") / 1024)
        note("idle", f"{IDLE_PEERS} peers, processor time", shares, 3, "%", "", "0.1 %")
        note("idle", f"{IDLE_PEERS} peers, resident memory", sizes, 1, "MiB", "", "32 MiB")


ROWS = {"quick": quick, "shaped": shaped, "far": far, "quantized": quantized, "messages": messages,
        "many": many, "memory": memory, "idle": idle}


if __name__ == "__main__":
    sys.exit(main(__doc__, ROWS, 256))
