#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers whose memory is that of the host open no file of CUDA, although the driver can be found.
The dynamic linker reports which libraries it searches (LD_DEBUG), and strace reports all files. Without
strace, only the first report is examined.

A build without CUDA (./dev test minimal) refuses memory of CUDA devices, in a sentence that names the option of
configure."""

import os
import re
import shutil
import subprocess

os.environ.pop("E2E_MEMORY", None)
import lib  # pylint: disable=wrong-import-position
from lib import check, ids_of, judge, together  # pylint: disable=wrong-import-position

CUDA = re.compile(r"cuda|nvidia", re.I)
OPERATIONS = ("type=f32 op=sum count=5 place=in", "type=f32 op=sum count=2000003 place=out")


class Traced(lib.Loopback):
    """Peer 1 runs in strace."""

    def __init__(self, folder):
        super().__init__(1)
        self.folder = folder

    def command(self, _host, args):
        if args[0] != str(lib.PEER) or "id=1" not in args or not shutil.which("strace"):
            return args
        # Whole paths: the folder of the build may have a name of CUDA.
        return ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file",
                "-o", f"{self.folder}/strace", *args]


def examine(what, paths, double):
    lines = [line for path in paths for line in path.read_text("utf-8", "replace").splitlines()]
    # The report has other libraries, so it would have those of CUDA.
    check(any("libpccl-shim.so" in line for line in lines), f"{what} reports the files of a peer", paths)
    lines = [line.replace(str(double), "DOUBLE").replace(str(lib.BUILD), "BUILD") for line in lines]
    found = [line for line in lines if CUDA.search(line)]
    check(not found, f"{what}: a peer with memory of the host opens no file of CUDA", found[:5])


def work(peers):
    wrong = [w for w in (judge(together(peers, f"reduce {line} ids={ids_of(peers)} verify=1"))
                         for line in OPERATIONS) if w]
    check(not wrong, "peers with memory of the host reduce", wrong)
    for peer in peers:
        peer.expect("state")
        peer.expect("tensors n=5 name=t count=100003 seed=3")
    answers = together(peers, "sync")
    check(all(a["code"] == lib.SUCCESS and a["check"] == "ok" for a in answers),
          "they synchronize tensors", answers)


def refuse(peers):
    """A build without CUDA. All peers get the sentence about the tensor of peer 1."""
    for k, peer in enumerate(peers):
        peer.expect(f"tensors n=1 name=d count=1000 device={('cpu', 'cuda')[k]}")
    answers = together(peers, "sync revision=1")
    check(all(a["code"] == lib.INTERNAL_ERROR and "configure it with --with-cuda" in a["text"] for a in answers),
          "tensors of CUDA devices are refused, and the sentence names the option of configure", answers)
    done = subprocess.run([lib.BUILD / "pccl-bench/pccl-bench", "allreduce", "-b", "4", "-e", "4", "--peers", "2",
                           "--memory", "cuda"], text=True, capture_output=True, check=False, timeout=lib.WAIT,
                          env={**os.environ, "PCCL_MASTERD": str(lib.MASTERD), "PCCL_AGENTD": str(lib.AGENTD)})
    check(done.returncode != 0 and "configure it with --with-cuda" in done.stderr,
          "pccl-bench --memory cuda names the option of configure", done.stderr)


def test():
    double = lib.BUILD / "tests/cuda/.libs"
    if lib.sanitized():
        lib.forget_leaks()  # not possible in strace
    with lib.Lab(1) as lab:
        lab.hosts = Traced(lab.folder)
        lab.start()
        environment = {"LD_LIBRARY_PATH": str(double)}
        debug = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(lab.folder / "linker")}
        peers = [lab.start_peer(k, env={**environment, **(debug if k == 0 else {})}, ready=False)
                 for k in range(2)]
        for peer in peers:
            peer.read()
        lib.form_run(peers, 1)
        work(peers)
        if "#define HAVE_CUDA 1" not in (lib.BUILD / "config.h").read_text("utf-8"):
            refuse(peers)
        for peer in peers:  # the reports are complete when their processes have ended
            peer.send("quit")
            peer.process.wait(lib.WAIT)
        examine("the linker", sorted(lab.folder.glob("linker.*")), double)
        if shutil.which("strace"):
            examine("strace", [lab.folder / "strace"], double)
        else:
            print("# strace is not installed: files that the library opens itself are not examined")


if __name__ == "__main__":
    lib.run(test, 60)
