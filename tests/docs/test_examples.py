#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles and runs every example in pccl.h, README.md and the manual: loops with a newcomer and a
killed peer, programs, command lines, configuration files.

Everything runs in a network namespace that has the addresses of the examples, with its own /run, so
that examples run unchanged."""

import os
import pathlib
import re
import subprocess
import sys
import time

EX_UNAVAILABLE = 69
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import Failed, Skipped, check  # pylint: disable=wrong-import-position

FRAMES = TOP / "tests/docs/frames"
INSIDE = "DOCS_INSIDE"
RUNDIR = pathlib.Path("/run/pccl")
ADDRESSES = ("192.168.0.7/32", "192.0.2.1/32", "192.0.2.2/32", "192.0.2.17/32", "2001:db8::1/128",
             "2001:db8::2/128")
MASTER = "192.168.0.7:48148"  # the address in the example of pcclCreateCommunicator(3)
# These are no addresses of a master, although a careless parser finds a number in each of them.
WRONG = ("", "192.168.0.7", "192.168.0.7:", "192.168.0:48148", "448.424.256.263:48148",
         "192.168.0.7:113684", "192.168.0.7:0", "192.168.0.7:-17388", "192.168.0.7:48148x",
         "192.168.0.7:48148:1", "192.168.0.7 :48148", "localhost:48148", "[::1]:48148")
# Command lines that tests/install runs.
ELSEWHERE = ("cc program.c $(pkg-config --cflags --libs libpccl-shim)",)
# Command lines that would need a gigabyte and a minute.
SMALLER = {"pccl-bench allreduce -e 1G --peers 4 --hosts 2 --check":
           "pccl-bench allreduce -e 64K --peers 4 --hosts 2 --check"}


# ------------------------------------------------------------------------- extraction


def unescape(line):
    """Returns the printed form of mdoc text."""
    return re.sub(r"\\&|\\\(?$", "", line).replace("\\-", "-").replace("\\e", "\\")


class Page:
    """The examples of a manual page: displays, and command lines."""

    def __init__(self, path):
        self.name = path.name.removesuffix(".in")
        self.blocks, self.lines, shown = [], [], False
        text = path.read_text("utf-8").replace("@rundir@", str(RUNDIR))
        section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
        for line in (section[1] if section else "").splitlines():
            if line.startswith(".Bd"):
                self.blocks.append([])
                shown = True
            elif line.startswith(".Ed"):
                shown = False
            elif line.startswith(".Dl "):
                self.lines.append(unescape(line[4:]))
            elif shown:
                self.blocks[-1].append(unescape(line))
        self.blocks = ["\n".join(b) + "\n" for b in self.blocks]


def header_example():
    """Returns the first indented block of the comment at the top of pccl.h."""
    lines = (TOP / "libpccl-shim/include/pccl.h").read_text("utf-8").splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(" *\t"))
    block = []
    for line in lines[first:]:
        if line != " *" and not line.startswith(" *\t"):
            break
        block.append(line[3:])
    return "\n".join(block) + "\n"


def readme_programs():
    return re.findall(r"^```c\n(.*?)^```", (TOP / "README.md").read_text("utf-8"), re.M | re.S)


def pages():
    return [Page(p) for p in sorted((TOP / "man").glob("man*/*.[1-8]*")) if p.suffix != ".md"]


# ------------------------------------------------------------------------ compilation


def compiled(folder, source, program):
    """Compiles a program. Returns whether there was no error and no warning."""
    library = lib.BUILD / "libpccl-shim/.libs"
    done = subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-g", "-I", folder, "-I", FRAMES, "-I",
         TOP / "libpccl-shim/include", "-o", program, source, "-L", library,
         f"-Wl,-rpath,{library}", "-lpccl-shim"],
        capture_output=True, text=True, check=False)
    return check(done.returncode == 0, f"{source.name} compiles without a warning", done.stderr)


def framed(lab, name, blocks):
    """Builds the program from a frame and the examples of a document. Returns None if this fails."""
    folder = lab.folder / name
    frame = FRAMES / f"{name}.c"
    folder.mkdir()
    for number, block in enumerate(blocks, start=1):
        (folder / f"example-{number}.inc").write_text(block, "utf-8")
    if not check(frame.exists(), f"the examples of {name} have a frame"):
        return None
    used = set(re.findall(r'#include "example-(\d+)\.inc"', frame.read_text("utf-8")))
    check(used == {str(k) for k in range(1, len(blocks) + 1)}, f"{name}.c uses every example", used)
    program = folder / "program"
    return program if compiled(folder, frame, program) else None


# --------------------------------------------------------------------------- running


class Trainer:
    """A program that prints "step world=N"."""

    def __init__(self, lab, program):
        process, log = lab.spawn(program.parent.name, 0, [program, MASTER],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env={"PCCL_AGENT_SOCKET": str(RUNDIR / "agent.sock")})
        self.peer = lib.Peer(process, program.parent.name, 0, log)
        lab.peers.append(self.peer)

    def until(self, world, steps=3):
        """Waits until the trainer has made this many steps in a row with this world size."""
        seen = 0
        deadline = time.monotonic() + lib.WAIT
        while seen < steps:
            if time.monotonic() > deadline:
                raise Failed(f"no {steps} steps in a row with {world} peers")
            seen = seen + 1 if self.peer.read()["world"] == world else 0


def train(lab, name, program):
    """Runs two trainers, and a newcomer that joins while they train. Then kills the first trainer."""
    first = Trainer(lab, program)
    second = Trainer(lab, program)
    for t in (first, second):
        t.until(2)
    third = Trainer(lab, program)
    for t in (first, second, third):
        t.until(3)
    check(True, f"{name}: two trainers go on when a newcomer joins")
    lab.drop_peer(first.peer)
    for t in (second, third):
        t.until(2, steps=5)
    check(True, f"{name}: two trainers go on after the third was killed")


def trained(lab, name, program):
    """Runs train(). An error in it is only reported, so the next examples run, too."""
    try:
        train(lab, name, program)
    except Failed as error:
        check(False, f"{name}: {error}")
    for peer in list(lab.peers):
        lab.drop_peer(peer)
    nobody(lab)


def nobody(lab):
    """Waits until the run has no peer."""
    lib.until(lambda: not lib.ask("--master", lab.master, "peers"), "a peer stays in the run")


def first_program(lab, program, number):
    """Runs a program that computes a sum. One process is killed while it waits; then two others are
    started."""
    lost, log = lab.spawn("first", 0, [program, MASTER])
    lib.until(lambda: lib.ask("--master", lab.master, "peers"), "the program does not join")
    lost.kill()
    lost.wait()
    nobody(lab)
    both = [lab.spawn("first", 0, [program, MASTER], stdout=subprocess.PIPE)[0] for _ in range(2)]
    said = [p.communicate(timeout=lib.WAIT)[0].decode() for p in both]
    check(all(p.returncode == 0 for p in both) and all("2 4 6 8" in s for s in said),
          f"program {number} of README.md adds up after one process was killed", said or log)


def wrong_addresses(program, number):
    """A program whose argument is not an address prints its usage, and connects to nothing."""
    for text in WRONG:
        try:
            done = subprocess.run([program, text], capture_output=True, text=True, check=False, timeout=2)
            said = (done.returncode, done.stderr)
        except subprocess.TimeoutExpired:
            said = (None, "the program still runs after 2 seconds")
        check(said[0] == 2 and "usage: " in said[1], f"program {number} of README.md refuses \"{text}\"", said)


def daemon(line):
    return line.split()[0] in ("ccoip-masterd", "pcclagentd")


def started(process, log):
    """Returns whether a daemon has logged where it listens, or has ended."""
    return re.search("listening on|ports:", log.read_text("utf-8")) or process.poll() is not None


def matrix_file(lab):
    """Returns the matrix file that pcclctl(1) shows. It is written once, because commands that run
    already may read it."""
    path = lab.folder / "rates.txt"
    if path.exists():
        return path
    text = (TOP / "man/man1/pcclctl.1.in").read_text("utf-8")
    text = re.search(r"^\.Sh MATRIX FILES\n.*?^\.Bd [^\n]*\n(.*?)^\.Ed", text, re.M | re.S)[1]
    path.write_text("\n".join(unescape(line) for line in text.splitlines()), "utf-8")
    return path


def command_line(lab, page, line):
    """Runs a line of a manual page unchanged, except that rates.txt is the example of a matrix file,
    and first.txt the table of known results of GPUs. A daemon is ended as soon as it listens."""
    prompt = re.match(r"\S+\$ (.*)", line)
    args = SMALLER.get(line, prompt[1] if prompt else line).split()
    files = {"rates.txt": matrix_file(lab), "first.txt": TOP / "kernels/cuda/known.txt"}
    args = [files.get(arg, arg) for arg in args if not str(arg).startswith(">")]
    known = {"pcclctl": lib.CTL, "ccoip-masterd": lib.MASTERD, "pcclagentd": lib.AGENTD,
             "pccl-bench": lib.BUILD / "pccl-bench/pccl-bench"}
    if not check(args[0] in known, f"{page}: `{line}` is a command of this project"):
        return
    args[0] = known[args[0]]
    if daemon(line):
        process, log = lab.spawn("command", 0, args)
        lib.until(lambda: started(process, log), f"{page}: `{line}` does not listen")
        process.terminate()
        check(process.wait(lib.WAIT) == 0, f"{page}: `{line}`", log.read_text("utf-8"))
        return
    programs = {"PCCL_AGENTD": str(lib.AGENTD), "PCCL_MASTERD": str(lib.MASTERD),
                "CUDA_VISIBLE_DEVICES": ""}
    lab.spawned.append((page, line, lab.spawn("command", 0, args, env=programs)))


def settle(lab):
    """Waits until all command lines have ended. They run in parallel, because some of them wait for
    each other."""
    for page, line, (process, log) in lab.spawned:
        try:
            process.wait(4 * lib.WAIT)  # pccl-bench quant computes for 12 s
        except subprocess.TimeoutExpired:
            process.kill()
        # no GPU is shown to gpu-check, because it would take too long
        expected = EX_UNAVAILABLE if "gpu-check" in line else 0
        check(process.returncode == expected, f"{page}: `{line}`", log.read_text("utf-8"))
    lab.spawned.clear()


def configuration(lab, page, text):
    """Checks that the daemon starts with the example of its configuration file."""
    program, section = {"ccoip-masterd.conf.5": (lib.MASTERD, "master"),
                        "pccl-agent.conf.5": (lib.AGENTD, "agent")}[page]
    file = lab.folder / page
    file.write_text(text, "utf-8")
    process, log = lab.spawn("configured", 0, [program, "--config", file])
    lib.until(lambda: started(process, log), f"{page}: the daemon logs nothing")
    process.terminate()
    check(process.wait(lib.WAIT) == 0, f"{page}: the daemon starts with the example of [{section}]",
          log.read_text("utf-8"))


# ------------------------------------------------------------------------------ test


class Hosts(lib.Loopback):
    """This host, with the standard ports, because nothing else runs in this namespace."""

    agent_options = []

    def address(self, _host):
        return MASTER.partition(":")[0]


def configurations(lab):
    """Runs the examples of the manual pages of configuration files."""
    for page in pages():
        if page.name.endswith(".conf.5"):
            for block in page.blocks:
                configuration(lab, page.name, block)


def library(lab):
    """Runs the examples of the header, and of the manual pages of the library."""
    examples = [("pccl.h", [header_example()])]
    examples += [(page.name, page.blocks) for page in pages()
                 if page.blocks and page.name.endswith(".3")]
    for name, blocks in examples:
        program = framed(lab, name, blocks)
        if program:
            trained(lab, name, program)


def readme(lab):
    """Runs the programs that README.md shows."""
    source = (TOP / "examples/first.c").read_text("utf-8").splitlines()
    source = source[next(k for k, line in enumerate(source) if line.startswith("#include")):]
    check(readme_programs() == ["\n".join(source) + "\n"], "README.md shows examples/first.c")
    for number, text in enumerate(readme_programs(), start=1):
        source = lab.folder / f"readme-{number}.c"
        source.write_text(text, "utf-8")
        if compiled(lab.folder, source, source.with_suffix("")):
            first_program(lab, source.with_suffix(""), number)
            wrong_addresses(source.with_suffix(""), number)


def test():
    with lib.Lab(1, hosts=Hosts(1)) as lab:
        lab.spawned = []
        RUNDIR.mkdir(parents=True)
        configurations(lab)
        lines = [(page.name, line) for page in pages() for line in page.lines
                 if line not in ELSEWHERE]
        for page, line in lines:
            if daemon(line):
                command_line(lab, page, line)
        lab.start_master(listen="0.0.0.0", port=48148, admin=RUNDIR / "master-admin.sock")
        lab.start_agent(path=RUNDIR / "agent.sock", admin=RUNDIR / "agent-admin.sock")
        library(lab)
        readme(lab)
        # A run with members cannot be reset, so reset comes last.
        for last in (False, True):
            for page, line in lines:
                if not daemon(line) and line.endswith(" reset") == last:
                    command_line(lab, page, line)
            settle(lab)
        lab.check_alive()


def inside():
    """Sets up the namespaces that only this process has."""
    for args in (("link", "set", "lo", "up"), *(("addr", "add", a, "dev", "lo") for a in ADDRESSES)):
        lib.netns.ip(*args)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)


def main():
    if INSIDE in os.environ:
        inside()
        test()
        return
    if not lib.netns.possible():
        raise Skipped("network namespaces need root")
    if lib.sanitized():
        raise Skipped("the examples are linked without sanitizers")
    done = subprocess.run(["unshare", "--net", "--mount", "--propagation", "private",
                           sys.executable, __file__], env={**os.environ, INSIDE: "1"}, check=False)
    sys.exit(done.returncode)


if INSIDE in os.environ:
    lib.run(main, 240)
else:
    try:
        main()
    except Skipped as reason:
        print(f"# skipped: {reason}")
        sys.exit(77)
