#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs pccl-bench with the daemons of the build. Checks what pccl-bench prints and returns, also with
a faulty library, and that it leaves nothing behind, no matter how it ends."""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import Failed, check  # pylint: disable=wrong-import-position

BENCH = lib.BUILD / "pccl-bench/pccl-bench"
FAKE = lib.BUILD / "tests/bench/.libs/fake_pccl.so"
SMALL = ("allreduce", "-b", 4, "-e", "1M", "-f", 64, "-n", 3, "-w", 1, "--peers", 2)
USAGE, DATA_ERROR, NO_INPUT, UNAVAILABLE, SOFTWARE, IO_ERROR = 64, 65, 66, 69, 70, 74


def end_of(process):
    """Returns the exit status and the output of the process."""
    try:
        out, err = process.communicate(timeout=2 * lib.WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"{process.args} does not end") from None
    return process.returncode, out, err


class Bench:
    """Runs pccl-bench with its own folder as TMPDIR. Its processes are found by this variable."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("PCCL_")},
                    "TMPDIR": str(folder), "PCCL_AGENTD": str(lib.AGENTD),
                    "PCCL_MASTERD": str(lib.MASTERD)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def start(self, *args, fault="copy", out=subprocess.PIPE):
        return subprocess.Popen(
            [str(a) for a in (BENCH, *args)], env={**self.env, "BENCH_FAKE": fault},
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)

    def run(self, *args, fault="copy"):
        return end_of(self.start(*args, fault=fault))

    def processes(self):
        """Returns the pids of all processes that belong to pccl-bench."""
        mark, found = f"TMPDIR={self.folder}\0".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def peers(self):
        """Returns the pids of the peers: processes of the coordinator's program, without the
        coordinator."""
        same = [pid for pid in self.processes() if "pccl-bench" in
                pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name]
        return [pid for pid in same if pathlib.Path(f"/proc/{pid}/stat").read_text("ascii")
                .rsplit(")", 1)[1].split()[1] in map(str, same)]

    def check_nothing_left(self, when):
        left = self.processes()
        check(not left, f"{when}: no process is left", left)
        left = list(self.folder.iterdir())
        check(not left, f"{when}: no file is left", left)


def check_document(text, hosts, buffers=2 << 20):
    """buffers: the least memory in bytes that each trainer must have used."""
    document = json.loads(text)
    rows = document["rows"]
    check([r["size"] for r in rows] == [4, 256, 16384, 1 << 20], "the document has the sizes", rows)
    check([r["count"] for r in rows] == [1, 64, 4096, 1 << 18], "the document has the counts", rows)
    check(document["errors"] == 0 and all(r["wrong"] == r["failed"] == 0 for r in rows),
          "no errors", document)
    check(all(0 < r["time_min_ns"] <= r["time_median_ns"] <= r["time_p99_ns"] for r in rows),
          "the document has the times in order", rows)
    check(all(r["algbw"] == r["busbw"] > 0 for r in rows), "the rates of two peers are equal", rows)
    check(all(r["cpu_s_per_gb"] > 0 and r["agent_rss"] > 0 and r["trainer_rss"] > 0 for r in rows),
          "the document has the processor time and memory of the processes", rows)
    check(rows[3]["trainer_rss"] > buffers, "the memory of a trainer includes its buffers", rows[3])
    check(document["options"]["hosts"] == hosts, "the document has the number of hosts", document)


def runs(bench):
    for hosts in 1, 2:
        code, out, err = bench.run(*SMALL, "--hosts", hosts, "--check", "--json")
        if check(code == 0, f"a run with {hosts} hosts succeeds", (code, err)):
            check_document(out, hosts)
        check(err == "", f"a run with {hosts} hosts prints nothing on standard error", err)
    code, out, err = bench.run(*SMALL, "--memory", "registered", "--in-place", "--async", 3,
                               "--check")
    rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
    check(code == 0 and [r[0] for r in rows] == ["4", "256", "16384", "1048576"]
          and all(len(r) == 13 for r in rows), "a table", (code, out, err))
    for hosts in 1, 2:
        code, out, err = bench.run(*SMALL, "--hosts", hosts, "--memory", "registered",
                                   "--disposable", "--check", "--json")
        if check(code == 0, f"a run with disposable outputs on {hosts} hosts succeeds", (code, err)):
            check_document(out, hosts, 1 << 20)
            check(json.loads(out)["options"]["disposable"] is True,
                  "the document says that the outputs are disposable", out)
    bench.check_nothing_left("after runs")


def loopback(bench):
    """Runs two hosts without network namespaces, as if the user were not root or `ip` were
    missing."""
    false = bench.folder / "ip"
    false.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    false.chmod(0o755)
    path = bench.env["PATH"]
    bench.env["PATH"] = f"{bench.folder}:{path}"
    code, out, err = bench.run(*SMALL, "--hosts", 2, "--check", "--json")
    bench.env["PATH"] = path
    false.unlink()
    if check(code == 0, "a run with two hosts on loopback succeeds", (code, err)):
        check_document(out, 2)
        kind = json.loads(out)["options"]["hosts_kind"]
        check(kind == "2 hosts on loopback", "the document says that the hosts are on loopback", kind)
    check(("loopback instead" in err) == (os.geteuid() == 0),
          "pccl-bench reports the use of loopback only to root", err)


def joins(bench):
    """Two processes of pccl-bench, with 2 peers and 1 peer, join the run of an existing master."""
    with lib.Lab(1) as lab:
        lab.start()
        bench.env["PCCL_AGENT_SOCKET"] = str(lab.agents[0].socket)
        args = (*SMALL[:-2], "--master", lab.master.address, "--world", 3, "--check", "--json")
        other = bench.start(*args, "--peers", 2)
        code, out, err = bench.run(*args, "--peers", 1, "--first-rank", 2)
        check(code == 0 and json.loads(out)["errors"] == 0, "one peer joins a run of three",
              (code, err))
        code, out, err = end_of(other)
        row = json.loads(out)["rows"][0] if out else {}
        check(code == 0 and row["wrong"] == 0 and row["agent_rss"] is None
              and abs(row["busbw"] / row["algbw"] - 4 / 3) < 1e-6, "two peers join a run of three",
              (code, row, err))
        code, out, err = bench.run(*args, "--peers", 1, "--timeout", 1)
        check(code == UNAVAILABLE and "waiting for all peers to join" in err,
              "pccl-bench does not wait for ever for missing peers", (code, err))
        del bench.env["PCCL_AGENT_SOCKET"]
        lab.check_alive()


def quantized(bench):
    """Runs two hosts with quantization. The errors of the results must be those that the simulation
    predicts."""
    for mode, least, most in (("none", 1e-9, 1e-6), ("int8", 0.008, 0.012), ("int4", 0.1, 0.16)):
        code, out, err = bench.run("allreduce", "-b", "4M", "-e", "4M", "-n", 2, "-w", 1, "--hosts", 2,
                                   "--quantize", mode, "--check", "--json")
        said = json.loads(out) if out else {}
        if not check(code == 0 and said["errors"] == 0, f"an all-reduce with {mode} succeeds", (code, err)):
            continue
        check(said["options"]["quantize"] == mode, f"the document names the mode {mode}", said)
        error = said["rows"][0]["l2"]
        if mode == "none":
            check(error is None and said["rows"][0]["wrong"] == 0, "exact results have no error", said)
        else:
            check(least < error < most, f"{mode}: the error is between {least} and {most}", error)
    bench.check_nothing_left("after quantized runs")


def simulated(bench):
    code, out, err = bench.run("quant", "--quantize", "int8", "--count", 3000, "--json")
    rows = json.loads(out)["rows"] if out else []
    check(code == 0 and [r["hosts"] for r in rows] == 6 * [2, 4, 8, 16] and err == "",
          "quant has rows for four numbers of hosts", (code, rows, err))
    check(all(r["encode"] > 0 and r["reduce"] > 0 for r in rows), "quant measures the speed", rows)
    file = bench.folder / "gradient"
    file.write_bytes(struct.pack("<33f", *range(33)) + b"xyz")
    code, out, err = bench.run("quant", "--quantize", "none", "--hosts", 16, "--count", 5, "--gradient",
                               file, "--json")
    rows = json.loads(out)["rows"] if out else []
    check(code == 0 and rows[-1]["data"] == "gradient" and rows[-1]["count"] == 2 and rows[-1]["l2"] == 0,
          "the file of a gradient is divided among the hosts", (code, rows, err))
    for content, status, words in ((15 * b"\0\0\0\0", DATA_ERROR, "15 numbers of 4 bytes, fewer than the 16"),
                                   (struct.pack("<17f", *16 * [1.0], float("nan")), DATA_ERROR,
                                    "number 17 is infinite or NaN"),
                                   (None, NO_INPUT, "No such file")):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        code, out, err = bench.run("quant", "--count", 5, "--gradient", file)
        check(code == status and out == "" and words in err and str(file) in err,
              f"a gradient is refused: {words}", (code, out, err))
    with open("/dev/full", "w", encoding="ascii") as full:
        code, _, err = end_of(bench.start("quant", "--count", 5, "--quantize", "int8", out=full))
    check(code == IO_ERROR and "standard output" in err,
          "a full device for the output of quant is reported", (code, err))
    bench.check_nothing_left("after simulations")


def refusals(bench):
    for args, words in ((("--peers", 127), ("--peers", "126")), (("--nonsense",), ("--nonsense",)),
                        (("-b", "x"), ("--begin", "1T")),
                        (("--disposable", "--library", FAKE), ("--disposable", "--library")),
                        (("--quantize", "all"), ("--quantize", "quant")),
                        (("--count", 5), ("--count", "allreduce"))):
        code, out, err = bench.run("allreduce", *args)
        check(code == USAGE and out == "" and all(w in err for w in words), f"{args} is refused",
              (code, out, err))
    bench.env["PCCL_MASTERD"] = "/nonexistent"
    code, out, err = bench.run(*SMALL, "--timeout", 20)
    check(code == UNAVAILABLE and "/nonexistent" in err,
          "a master that cannot be started is reported", (code, err))
    bench.env["PCCL_MASTERD"] = str(lib.MASTERD)
    bench.check_nothing_left("after refusals")


def until_running(bench, number):
    """Waits until a long run has started this many processes."""
    lib.until(lambda: len(bench.processes()) >= number, "the processes do not start")


def ends(bench):
    """The ways in which a run ends: nobody reads its output; it is interrupted; it is killed; one
    of its peers is killed."""
    process = bench.start("allreduce", "-b", 4, "-e", "1M", "-f", 2, "-n", 100)
    process.stdout.close()
    process.stdout = None
    code, _, err = end_of(process)
    check(code == IO_ERROR and "standard output" in err,
          "pccl-bench ends if nobody reads the results", (code, err))
    bench.check_nothing_left("without a reader")
    with open("/dev/full", "w", encoding="ascii") as full:
        code, _, err = end_of(bench.start("allreduce", "-b", 4, "-e", 4, "-n", 1, out=full))
    check(code == IO_ERROR and err.count("standard output: No space left") == 1,
          "a full device for the results is reported once", (code, err))
    bench.check_nothing_left("without room")
    long = ("allreduce", "-b", "4M", "-e", "4M", "-n", 100000, "--peers", 2, "--hosts", 2)
    process = bench.start(*long)
    until_running(bench, 6)
    process.send_signal(signal.SIGINT)
    code, out, err = end_of(process)
    check(code == 128 + signal.SIGINT, "an interrupt ends pccl-bench", (code, out, err))
    bench.check_nothing_left("interrupted")
    process = bench.start(*long)
    until_running(bench, 6)
    process.kill()
    end_of(process)
    lib.until(lambda: not bench.processes(), "processes outlive pccl-bench")
    check(True, "all processes die with pccl-bench")
    process = bench.start(*long)
    until_running(bench, 6)
    os.kill(bench.peers()[-1], signal.SIGKILL)
    code, _, err = end_of(process)
    check(code == UNAVAILABLE and re.search(r"peer [01] ended with signal 9", err),
          "the end of a peer ends pccl-bench, with the reason", (code, err))


def faulty_library(bench):
    args = ("allreduce", "-b", 4000, "-e", 4000, "-n", 4, "-w", 2, "-o", "max", "--library", FAKE)
    # for every element exactly one of the two peers has the larger value
    code, out, err = bench.run(*args, "--check", "--json")
    row = json.loads(out)["rows"][0] if out else {}
    check(code == SOFTWARE and row.get("wrong") == 6 * 1000 and row["agent_rss"] is None,
          "every wrong element is counted", (code, row, err))
    code, out, err = bench.run(*args, "--check", "--json", "--async", 3)
    row = json.loads(out)["rows"][0] if out else {}
    check(code == SOFTWARE and row.get("wrong") == 3 * 6 * 1000,
          "every wrong element of all operations in flight is counted",
          (code, row, err))
    code, out, err = bench.run(*args, "--json", fault="lost")
    row = json.loads(out)["rows"][0] if out else {}
    check(code == SOFTWARE and row.get("failed") == 2 * 3 and row["time_min_ns"] > 0
          and "pcclAllReduce returned 8" in err, "failed calls are counted", (code, row, err))
    code, out, err = bench.run(*args, "--timeout", 1, fault="hang")
    check(code == UNAVAILABLE and "peer 0 is reducing" in err and "--timeout" in err,
          "a call that does not return ends pccl-bench", (code, out, err))
    code, out, err = bench.run(*args, fault="die")
    check(code == UNAVAILABLE and "ended with signal 9" in err, "a peer that dies ends pccl-bench",
          (code, out, err))
    code, out, err = bench.run("allreduce", "--library", lib.BUILD / "config.h")
    check(code == UNAVAILABLE and "config.h" in err, "a file that is no library is named", (code, err))
    bench.check_nothing_left("after a faulty library")


def test():
    with tempfile.TemporaryDirectory(prefix="pcclbench-") as folder, \
            Bench(pathlib.Path(folder)) as bench:
        # This call shows whether the program can run. libtool's wrapper relinks the program now,
        # and not again in later calls.
        code, out, err = bench.run("--version")
        check(code == 0 and out.startswith("pccl-bench "), "pccl-bench prints its version", (code, out, err))
        runs(bench)
        quantized(bench)
        simulated(bench)
        loopback(bench)
        joins(bench)
        refusals(bench)
        if lib.sanitized():
            print("# skipped: AddressSanitizer does not allow the way in which --library loads a library")
        else:
            faulty_library(bench)
        ends(bench)


lib.run(test, 240)
