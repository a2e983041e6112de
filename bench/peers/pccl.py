# SPDX-License-Identifier: MIT
"""This library, and the released PCCL 1.0 with the same functions, both driven by pccl-bench."""

import functools
import json

from . import base, pccl1

PROGRAM = base.BUILD / "pccl-bench/pccl-bench"
STREAMS = 4  # p2p_connection_pool_size; each library derives its number of streams from it
PATIENCE = 10  # seconds without a step of any peer
# The first access to a GiB takes longer. A run touches up to ten GiB, and a virtual machine may
# first have to get this memory from its host.
PATIENCE_LARGE = 60
LARGE = 1 << 30


def environment(setting):
    """Returns the environment for the daemons of this build with their default settings."""
    env = {key: value for key, value in base.environment(setting).items()
           if not key.startswith("PCCL_")}
    return dict(env, PCCL_AGENTD=str(base.BUILD / "pcclagentd/pcclagentd"),
                PCCL_MASTERD=str(base.BUILD / "ccoip-masterd/ccoip-masterd"))


class Bench(base.Contender):
    """A run of pccl-bench for each size."""

    # Two peers of PCCL 1.0 that join at the same time sometimes wait for ever, about once in thirty
    # runs.
    attempts = 3
    memory = "staged"
    library = None

    def __init__(self):
        self.setting = None

    def start(self, setting, network):
        self.setting = setting

    def program(self):
        return PROGRAM

    def available(self, setting):
        return None if PROGRAM.exists() else f"{PROGRAM} is not built"

    def measure(self, size, warm_ups, n):
        args = [self.program(), "allreduce", "-b", size, "-e", size, "-n", n, "-w", warm_ups,
                "--peers", self.setting.peers, "--hosts", self.setting.hosts, "--in-place",
                "--memory", self.memory, "--streams", STREAMS, "--timeout",
                PATIENCE_LARGE if size >= LARGE else PATIENCE, "--json"]
        if self.library:
            args += ["--library", self.library]
        said = json.loads(base.run([str(arg) for arg in args], "a run",
                                   env=environment(self.setting)))
        row = said["rows"][0]
        if row["errors"] or row["time_median_ns"] is None:
            raise base.Failed(f"{row['errors']} errors at {size} bytes")
        return row["time_median_ns"] / 1e9


class Staged(Bench):
    name = "ours"


class Registered(Staged):
    name = "ours, pcclMemAlloc"
    memory = "registered"


@functools.cache
def _pccl1():
    """Returns (the copy of pccl-bench for PCCL 1.0, None), or (None, why there is no copy)."""
    try:
        pccl1.get()
        # libtool has replaced the program with a script
        built = PROGRAM.with_name(".libs") / PROGRAM.name
        return pccl1.copy_of(built if built.exists() else PROGRAM), None
    except base.Failed as error:
        return None, str(error)


class Released(Bench):
    name = "PCCL 1.0"
    library = pccl1.LIBRARY

    def start(self, setting, network):
        super().start(setting, network)
        if setting.cubic:
            self.library = pccl1.with_cubic()

    def available(self, setting):
        return super().available(setting) or _pccl1()[1]

    def program(self):
        return _pccl1()[0]
