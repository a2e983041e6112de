# SPDX-License-Identifier: MIT
"""Open MPI: mpirun starts ranks that read commands from named pipes (mpi_allreduce.c)."""

import os
import shutil
import statistics
import tempfile

from . import base

SHELL = str(base.BENCH / "peers/netns-shell")


def compiled():
    return base.compiled(base.work_folder() / "mpi_allreduce", base.BENCH / "mpi_allreduce.c",
                         "mpicc", "-O2", "-std=gnu11", "-Wall", "-Wextra")


class OpenMpi(base.Contender):
    def __init__(self):
        self.ranks, self.pipes, self.folder = None, [], None

    def available(self, setting):
        missing = [program for program in ("mpirun", "mpicc") if not shutil.which(program)]
        if missing:
            return f"no {missing[0]} (./dev deps bench: openmpi-bin, libopenmpi-dev)"
        return None

    def transports(self, setting):
        raise NotImplementedError

    def start(self, setting, network):
        self.folder = tempfile.mkdtemp(prefix="ranks-", dir=base.work_folder())
        for rank in range(setting.peers):
            path = os.path.join(self.folder, f"rank-{rank}")
            os.mkfifo(path)
            self.pipes.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        cpus = " ".join(network.cpus) if setting.hosts > 1 else ""
        self.ranks = base.Answering(self.name, self._command(setting, network),
                                    base.work_folder() / "openmpi.log",
                                    env=base.environment(setting, HOST_CPUS=cpus))
        self.ranks.read()

    def measure(self, size, warm_ups, n):
        for pipe in self.pipes:
            os.write(pipe, f"{size} {warm_ups} {n}\n".encode())
        return statistics.median(self.ranks.times())

    def stop(self):
        for pipe in self.pipes:
            os.close(pipe)
        self.pipes = []
        if self.ranks:
            self.ranks.stop()
            self.ranks = None
        if self.folder:
            shutil.rmtree(self.folder)
            self.folder = None

    def _command(self, setting, network):
        each = setting.peers // setting.hosts
        options = {"btl": self.transports(setting), "pml": "ob1",
                   "btl_tcp_if_include": network.device, "oob_tcp_if_include": network.device}
        if setting.peers > len(os.sched_getaffinity(0)):
            # mpirun counts the ranks of each host separately. So it does not see that there are
            # more ranks than processors, and waiting ranks would not yield.
            options["mpi_yield_when_idle"] = "1"
        args = ["mpirun", "--bind-to", "none", "--oversubscribe", "-np", str(setting.peers)]
        if os.geteuid() == 0:
            args += ["--allow-run-as-root"]
        if setting.hosts > 1:
            names = [network.name(host) for host in range(setting.hosts)]
            args = [SHELL, names[0], *args, "-H", ",".join(f"{name}:{each}" for name in names)]
            options["plm_rsh_agent"] = SHELL
        for key, value in options.items():
            args += ["--mca", key, value]
        return [*args, compiled(), self.folder]


class OpenMpiTcp(OpenMpi):
    name = "Open MPI, TCP"

    def transports(self, setting):
        return "tcp,self"


class OpenMpiShared(OpenMpi):
    """Between hosts this contender also uses TCP."""

    name = "Open MPI, shared memory"
    tcp = False

    def available(self, setting):
        if setting.hosts == setting.peers:
            return "no two peers on one host"
        return super().available(setting)

    def transports(self, setting):
        return "vader,self" if setting.hosts == 1 else "vader,tcp,self"
