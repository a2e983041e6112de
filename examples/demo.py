#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four trainers on two hosts train a network together. One of them is killed during the training.
Later a newcomer joins and gets the model from the others.

The hosts are network namespaces joined by a bridge (as root), or two agents on loopback. All
processes are started from a build folder and end with this program, however it ends. Exit status 0:
the test accuracy is reached, the weights of all remaining trainers are bit-identical, the newcomer
got the state of the run, and the loss of a trainer cost each survivor at most one repeated call.
"""

import argparse
import ctypes
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import netns

PROGRAM = "examples/fashion-mnist"
TRAINERS_PER_HOST = 2
WANTED_ACCURACY = 0.85
MASTER_PORT = 48148
PREFIX = "pccldemo"  # in the names of network namespaces: PREFIX-PID-HOST


class Failed(Exception):
    """The demonstration failed; the text gives the reason."""


class Stopped(Exception):
    """A signal asked this program to end."""


def die_with_parent():
    """Runs in a child: asks the kernel to kill the child when this program is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Loopback:
    """Both hosts are this machine; each daemon takes free ports."""

    title = "two agents on loopback"
    agent_options = ["--p2p-port", "0", "--shared-state-port", "0", "--benchmark-port", "0"]

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.master = f"127.0.0.1:{probe.getsockname()[1]}"

    def command(self, _host, args):
        return args

    def close(self):
        pass


class Namespaces(netns.Namespaces):
    """Each host is a network namespace. The master has another one, which also contains the bridge."""

    title = "two hosts in network namespaces"
    agent_options = []

    def __init__(self):
        super().__init__(
            PREFIX, {"master": "10.83.0.1", "a": "10.83.0.2", "b": "10.83.0.3"}, "master")
        self.master = f"{self.address('master')}:{MASTER_PORT}"


def make_hosts(want_namespaces):
    if want_namespaces and netns.possible():
        try:
            return Namespaces()
        except OSError as error:
            print(f"no network namespaces here ({error})")
    return Loopback()


class Trainer:
    """One training process and what it has reported so far."""

    def __init__(self, number, host):
        self.number, self.host = number, host
        self.process = None
        self.pipe = -1
        self.pending = b""
        self.step, self.loss, self.world, self.rate, self.retries = 0, 0.0, 0, 0.0, 0
        self.result = None  # the fields of the last line
        self.welcomed = False  # the state that this newcomer got was reported
        self.syncs = []  # (step, bytes sent, bytes received, MB/s) if something was transferred
        self.state = "starting"

    def take(self, data):
        """Takes bytes of the report: handles the complete lines and keeps the rest for later."""
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            words = line.decode().split()
            if words[0] == "result":
                self.result = dict(word.split("=", 1) for word in words[1:])
                self.retries = int(self.result["retries"])
                self.state = "done"
            elif words[0] == "sync":
                self.syncs.append((*map(int, words[1:4]), float(words[4])))
            else:
                self.step, self.loss, self.world = int(words[0]), float(words[1]), int(words[2])
                self.rate, self.retries = float(words[3]), int(words[4])
                self.state = "training"

    def row(self):
        return (f"  {self.number:>7}  {self.host:<4}  {self.process.pid:>7}  {self.step:>6}"
                f"  {self.loss:>8.4f}  {self.world:>5}  {self.rate:>8.1f}  {self.retries:>7}"
                f"  {self.state}")


class Display:
    """A table that is redrawn in place on a terminal. Elsewhere a line is printed from time to
    time."""

    HEAD = "  trainer  host      pid    step      loss  world      MB/s  retries  state"

    def __init__(self, trainers, steps):
        self.trainers, self.steps = trainers, steps
        self.live = sys.stdout.isatty()
        self.drawn = 0  # lines on the terminal to draw over
        self.next_time = 0.0
        self.next_step = 1

    def say(self, text):
        """Prints a line that stays on the terminal."""
        self.wipe()
        print(text, flush=True)

    def wipe(self):
        if self.drawn:
            print(f"\x1b[{self.drawn}A\x1b[J", end="")
            self.drawn = 0

    def update(self, last=False):
        step = max(t.step for t in self.trainers)
        if self.live and (last or time.monotonic() >= self.next_time):
            width = 50
            done = width * step // self.steps
            lines = [self.HEAD, *(t.row() for t in self.trainers),
                     f"  [{'#' * done}{'-' * (width - done)}] step {step} of {self.steps}"]
            self.wipe()
            print("\n".join(lines), flush=True)
            self.drawn = 0 if last else len(lines)
            self.next_time = time.monotonic() + 0.1
        elif not self.live and (last or step >= self.next_step):
            self.next_step = step - step % (self.steps // 15 or 1) + (self.steps // 15 or 1)
            if last:
                print("\n".join([self.HEAD, *(t.row() for t in self.trainers)]), flush=True)
            else:
                first = max((t for t in self.trainers), key=lambda t: t.step)
                print(f"  step {step:>5}  loss {first.loss:.4f}  world {first.world}"
                      f"  {first.rate:8.1f} MB/s  retries {first.retries}", flush=True)


class Demo:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX + "-"))
        self.hosts = None
        self.daemons = {}  # name -> process
        self.trainers = []
        self.logs = []
        self.display = None
        self.selector = selectors.DefaultSelector()

    # ------------------------------------------------------------------ starting

    def spawn(self, name, host, args, keep=(), **environment):
        log = self.folder / f"{name}.log"
        self.logs.append(log)
        with open(log, "wb") as out:
            return subprocess.Popen(
                self.hosts.command(host, [str(a) for a in args]), stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, pass_fds=keep, preexec_fn=die_with_parent,
                env={**os.environ, **environment, "XDG_RUNTIME_DIR": str(self.folder)})

    def await_text(self, name, process, path, found):
        """Waits until a file of /proc shows that a daemon listens. No connection is made to it."""
        while process.poll() is None:
            for file in path:
                try:
                    if found(pathlib.Path(f"/proc/{process.pid}/net/{file}").read_text("ascii")):
                        return
                except OSError:
                    pass  # the process has just ended
            time.sleep(0.02)
        raise Failed(f"{name} ended at once, with status {process.returncode}")

    def start_daemons(self):
        port = int(self.hosts.master.rsplit(":", 1)[1])
        listening = re.compile(rf":{port:04X} [0-9A-F]+:0000 0A ")
        master = self.spawn("master", "master", [
            self.build / "ccoip-masterd/ccoip-masterd", "--listen", self.hosts.master,
            "--admin-socket", self.folder / "master.admin"])
        self.daemons["ccoip-masterd"] = master
        self.await_text("ccoip-masterd", master, ("tcp", "tcp6"), listening.search)
        for host in ("a", "b"):
            path = self.agent_socket(host)
            agent = self.spawn(f"agent-{host}", host, [
                self.build / "pcclagentd/pcclagentd", "--socket", path,
                *self.hosts.agent_options])
            self.daemons[f"pcclagentd of host {host}"] = agent
            bound = re.compile(rf" 00010000 .* {re.escape(str(path))}$", re.M)
            self.await_text("pcclagentd", agent, ("unix",), bound.search)

    def agent_socket(self, host):
        return self.folder / f"agent-{host}.sock"

    def start_trainers(self):
        program = self.build / PROGRAM
        # shows whether the program can run, and makes libtool's wrapper relink only once
        check = subprocess.run([program, "--help"], capture_output=True, timeout=60, check=False)
        if check.returncode != 0:
            raise Failed(f"{program} does not run: {check.stderr.decode().strip()}")
        for number in range(2 * TRAINERS_PER_HOST):
            self.start_trainer("ab"[number // TRAINERS_PER_HOST])

    def start_trainer(self, host):
        trainer = Trainer(len(self.trainers), host)
        trainer.pipe, write_end = os.pipe()
        trainer.process = self.spawn(f"trainer-{trainer.number}", host, [
            self.build / PROGRAM, "--master", self.hosts.master, "--id", trainer.number,
            "--wait-for", 2 * TRAINERS_PER_HOST, "--report", f"/dev/fd/{write_end}",
            "--steps", self.options.steps, "--batch", self.options.batch,
            "--seed", self.options.seed, "--quantize", self.options.quantize,
            *(["--error-feedback"] if self.options.error_feedback else []),
            *(["--data", self.options.data] if self.options.data else []),
            *(["--gradient", self.options.gradient]
              if self.options.gradient and trainer.number == 0 else [])],
            keep=(write_end,), PCCL_AGENT_SOCKET=str(self.agent_socket(host)))
        os.close(write_end)
        self.trainers.append(trainer)
        self.selector.register(trainer.pipe, selectors.EVENT_READ, trainer)
        return trainer

    # ------------------------------------------------------------------ watching

    def read_reports(self, timeout):
        for key, _ in self.selector.select(timeout):
            trainer = key.data
            data = os.read(trainer.pipe, 65536)
            trainer.take(data)
            if not data:
                self.selector.unregister(trainer.pipe)
                os.close(trainer.pipe)
                trainer.pipe = -1

    def check_running(self, victim):
        for name, process in self.daemons.items():
            if process.poll() is not None:
                raise Failed(f"{name} has ended, with status {process.returncode}")
        for trainer in self.trainers:
            if trainer is not victim and trainer.process.poll() not in (None, 0):
                raise Failed(f"trainer {trainer.number} has ended, with status "
                             f"{trainer.process.returncode}")

    def welcome(self, newcomer):
        """Reports the state that the newcomer got. Fails if the training ends before that."""
        if newcomer.syncs and not newcomer.welcomed:
            step, _, received, rate = newcomer.syncs[0]
            newcomer.welcomed = True
            self.display.say(f"  trainer {newcomer.number} gets the state of step {step}: "
                             f"{received / 1e6:.1f} MB, {rate:.0f} MB/s")
        if not newcomer.welcomed and any(t.state == "done" for t in self.trainers):
            raise Failed("the training was over before the newcomer had joined: use more --steps")

    def train(self):
        """Runs until all pipes are closed. The last trainer is stopped for a moment, so that the
        others are certainly in the middle of an all-reduce with it. Then it is killed. When the
        others have continued, another trainer is started instead of it."""
        victim, newcomer = self.trainers[-1], None
        # just after the trainers have checked for newcomers (every 50 steps), not during the check
        kill_step = self.options.steps * 2 // 5 // 50 * 50 + 2
        kill_time = None
        self.display = Display(self.trainers, self.options.steps)
        while self.selector.get_map():
            self.read_reports(0.05)
            self.check_running(victim)
            if kill_time is None and victim.step >= kill_step:
                victim.process.send_signal(signal.SIGSTOP)
                kill_time = time.monotonic() + 0.3
            elif kill_time and victim.state != "killed" and time.monotonic() >= kill_time:
                victim.process.kill()
                victim.state = "killed"
                self.display.say(f"  trainer {victim.number} (pid {victim.process.pid}) gets "
                                 f"SIGKILL in step {victim.step + 1}")
            elif victim.state == "killed" and not newcomer and self.trainers[0].retries > 0:
                newcomer = self.start_trainer(victim.host)
                self.display.say(f"  trainer {newcomer.number} (pid {newcomer.process.pid}) is "
                                 f"started in step {self.trainers[0].step + 1}")
            if newcomer:
                self.welcome(newcomer)
            self.display.update()
        self.display.update(last=True)
        for trainer in self.trainers:
            trainer.process.wait()
        self.check_running(victim)
        return victim, newcomer

    # ------------------------------------------------------------------ the end

    @staticmethod
    def verdicts(survivors, victim, newcomer):
        """Returns the goals: for each, whether it was reached, and a sentence about it."""
        accuracy = min(float(t.result["accuracy"]) for t in survivors)
        hashes = {t.result["hash"] for t in survivors}
        retries = [t.retries for t in survivors if t is not newcomer]
        step, _, received, rate = newcomer.syncs[0]
        sent = [(t.number, t.syncs[0][1]) for t in survivors if t is not newcomer and t.syncs]
        return [
            (accuracy >= WANTED_ACCURACY,
             f"test accuracy {100 * accuracy:.2f} % (wanted: {100 * WANTED_ACCURACY:.0f} %)"),
            (len(hashes) == 1, "weights bit-identical on survivors and newcomer"),
            (victim.process.returncode == -signal.SIGKILL and max(retries) == 1,
             f"one trainer killed; calls repeated by the survivors: "
             f"{', '.join(map(str, retries))} (wanted: at least one, at most one each)"),
            (step > 0 and received > 0 and sum(n for _, n in sent) == received,
             f"trainer {newcomer.number} joined in step {step} and was given {received} bytes, "
             f"{rate:.0f} MB/s, by " + ", ".join(f"trainer {k} ({n})" for k, n in sent)),
        ]

    def judge(self, victim, newcomer):
        """Prints the goals. Returns true if all of them were reached."""
        survivors = [t for t in self.trainers if t is not victim]
        for trainer in survivors:
            if trainer.result is None:
                raise Failed(f"trainer {trainer.number} ended without a result")
        verdicts = self.verdicts(survivors, victim, newcomer)
        print()
        for trainer in survivors:
            print(f"  trainer {trainer.number}: weights have hash {trainer.result['hash']}")
        for good, text in verdicts:
            print(f"  {'ok    ' if good else 'FAILED'}  {text}")
        return all(good for good, _ in verdicts)

    def print_logs(self):
        for log in self.logs:
            lines = log.read_text("utf-8", "replace").splitlines()
            if lines:
                print(f"--- the end of {log.name}", *lines[-15:], sep="\n")

    def close(self):
        """Ends and removes everything that was started. Must not be interrupted."""
        for trainer in self.trainers:
            trainer.process.kill()
            trainer.process.wait()
        for process in self.daemons.values():
            process.terminate()
        for process in self.daemons.values():
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.hosts:
            self.hosts.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self):
        began = time.monotonic()
        self.hosts = make_hosts(not self.options.loopback)
        print(f"{self.hosts.title}, {TRAINERS_PER_HOST} trainers on each; "
              f"{self.options.steps} steps, quantization: {self.options.quantize}"
              + ", error feedback" * self.options.error_feedback, flush=True)
        self.start_daemons()
        self.start_trainers()
        good = self.judge(*self.train())
        print(f"  {time.monotonic() - began:.1f} s")
        return good


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="folder with the built daemons and examples")
    parser.add_argument("--steps", type=int, default=2000, help="default %(default)s")
    parser.add_argument("--batch", type=int, default=128,
                        help="images per step and trainer, default %(default)s")
    parser.add_argument("--seed", type=int, default=1,
                        help="seed of weights and minibatches, default %(default)s")
    parser.add_argument("--quantize", default="none", metavar="MODE",
                        help="how gradients are quantized between the hosts, such as int8 or int4 "
                        "(docs/quantization.md), default %(default)s")
    parser.add_argument("--error-feedback", action="store_true",
                        help="add what quantization has lost to the next gradients")
    parser.add_argument("--gradient", metavar="FILE", type=os.path.abspath,
                        help="write gradients of this training to FILE, for pccl-bench quant")
    parser.add_argument("--data", help="folder of the images")
    parser.add_argument("--loopback", action="store_true",
                        help="no network namespaces, even if they are possible")
    parser.add_argument("--limit", type=int, default=120,
                        help="seconds after which the demonstration fails, default %(default)s")
    options = parser.parse_args()
    if options.steps < 500:
        parser.error("--steps: at least 500, so that a trainer can be killed in the middle, and "
                     "another one has time to join")
    return options


def on_signal(number, _frame):
    if number == signal.SIGALRM:
        raise Failed("not done within the time limit")
    raise Stopped(signal.Signals(number).name)


def main():
    options = parse_options()
    signals = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    demo = Demo(options)
    try:
        for number in signals:
            signal.signal(number, on_signal)
        signal.alarm(options.limit)
        return 0 if demo.run() else 1
    except Failed as error:
        if demo.display:
            demo.display.update(last=True)
        print(f"FAILED: {error}")
        demo.print_logs()
        return 1
    except Stopped as error:
        print(f"ended by {error}")
        return 130
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        demo.close()


if __name__ == "__main__":
    sys.exit(main())
