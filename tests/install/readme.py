#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the command lines of README.md that need no root and no network, unchanged, in a copy of the
sources and with its own home folder: builds, installs below $HOME/.local and uses the result.
Checks the names in the other command lines. Prints one line per check, "ok" or "FAIL"."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
SUM = "sum over 2 peers: 2 4 6 8"
failed = False


def check(good, what, detail=""):
    global failed
    print(f"{'ok' if good else 'FAIL'} - {what}", flush=True)
    if not good:
        failed = True
        print("".join(f"    {line}\n" for line in str(detail).splitlines()[-20:]), end="")
    return good


def blocks():
    """Returns the indented blocks outside of programs."""
    text = re.sub(r"^```.*?^```", "", (TOP / "README.md").read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"(?:^ {4}.*\n)+", text, re.M)


def copy_sources(to):
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "-co", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).exists():
            shutil.copy(TOP / name, to / name, follow_symlinks=False)


class User:
    """A user who follows the README. The folder and environment of the shell are kept from block to
    block."""

    def __init__(self, work):
        self.clone, self.home = work / "clone", work / "home"
        self.clone.mkdir()
        self.home.mkdir()
        caches = os.environ.get("CCACHE_DIR", f"{os.environ['HOME']}/.cache/ccache")
        keep = {k: v for k, v in os.environ.items() if not k.startswith("PCCL_")}
        self.env = {**keep, "HOME": str(self.home), "CFLAGS": "-O0", "CCACHE_DIR": caches,
                    "CCACHE_BASEDIR": str(self.clone), "CCACHE_NOHASHDIR": "1",
                    "MAKEFLAGS": f"-sj{os.cpu_count()}"}

    def shell(self, script, seconds):
        """Runs the script in a shell in its own process group and returns its exit status and
        output. The group is killed after `seconds`."""
        with subprocess.Popen(["bash", "-ec", script], cwd=self.clone, env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            try:
                said = process.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, process.communicate()[0]
        return process.returncode, said

    def install(self, text, what):
        """Runs a script and keeps the environment that the script has set. A line that is added at
        the end of the script prints this environment."""
        code, said = self.shell(text + "\ncd\necho; env -0", 900)
        if check(code == 0, what, said):
            self.env = dict(e.split("=", 1) for e in said.rpartition("\n\n")[2].split("\0") if e)
        return code == 0

    def two_add_up(self, text, what):
        """Runs the jobs of a block. The first job is the master, the others are the two programs."""
        text = text.replace("/usr/local", "$HOME/.local")
        code, said = self.shell(f"""trap 'kill -KILL $(jobs -p)' EXIT
            {text}
            pids=($(jobs -p))
            wait "${{pids[1]}}"
            wait "${{pids[2]}}"
            kill "${{pids[0]}}"
            wait "${{pids[0]}}"
            trap EXIT""", 60)
        check(code == 0 and said.count(SUM) == 2, what, said)

    def end_private_agents(self):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "exe").readlink().is_relative_to(self.home):
                    os.kill(int(entry.name), signal.SIGTERM)
            except OSError:
                continue


def developer(_user, block):
    said = subprocess.run([TOP / "dev", "help"], check=True, capture_output=True, text=True).stdout
    for command in re.findall(r"\./dev (\w+)", block):
        check(re.search(rf"^ +{command}\b", said, re.M), f"./dev {command} is a command")


def with_root(_user, block):
    """Checks, without running them, that these steps equal the tested steps without root."""
    other = next(b for b in blocks() if "--prefix=" in b)
    steps = re.sub(" --prefix=\\S+", "", other).replace("make install", "sudo make install && sudo ldconfig")
    check(block.splitlines() == steps.splitlines()[:3],
          "an installation by root has the same steps as one without root", block)


def without_root(user, block):
    if user.install(block, "a build and an installation without root succeed"):
        programs = re.findall(r"^\| `(\w\S+)` +\| ", (TOP / "README.md").read_text("utf-8"), re.M)
        for name in set(programs) - {"libpccl-shim"}:
            found = shutil.which(name, path=user.env["PATH"])
            check(found and found.startswith(f"{user.home}/.local/"),
                  f"{name} is found after the installation", found)


def one_host(user, block):
    user.two_add_up(block.replace("./first & ./first", "./first & ./first &"),
                    "the first program adds up on one host")


def two_hosts(user, block):
    """Runs both hosts on this machine."""
    address = re.search(r"first (\S+):", block)[1]
    if subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=False,
                      stderr=subprocess.DEVNULL).returncode == 0:
        lines = [re.sub(r"^ *host\d\$ |[ &]*$", "", line) for line in block.splitlines()]
        user.two_add_up("".join(f"{line} &\n" for line in lines), "the first program adds up on two hosts")


def units(user, block):
    there = {path.name for path in user.home.glob(".local/lib/systemd/system/*")}
    for unit in re.findall(r"[\w-]+(?:\.socket|masterd)", block):
        check({unit, f"{unit}.service"} & there, f"{unit} is installed", there)


# The function for each block, by a part of the block's first line, in the order of execution.
HANDLERS = {"./dev demo": developer, "sudo make install": with_root, "--prefix=": without_root,
            "--listen 127.0.0.1": one_host, "host1$": two_hosts, "systemctl": units}


def main():
    found = blocks()
    for block in found:
        check(sum(mark in block for mark in HANDLERS) == 1,
              f"a block of README.md is run or checked: {block.splitlines()[0].strip()}")
    with tempfile.TemporaryDirectory(prefix="pccl-readme.") as work:
        user = User(pathlib.Path(work))
        copy_sources(user.clone)
        try:
            for mark, handler in HANDLERS.items():
                block = [b for b in found if mark in b]
                if check(len(block) == 1, f"README.md has one block with {mark}", block):
                    handler(user, block[0])
        finally:
            user.end_private_agents()
    return failed


if __name__ == "__main__":
    sys.exit(main())
