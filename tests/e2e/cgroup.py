# SPDX-License-Identifier: MIT
"""Cgroups of our own, of whichever version the host has."""

import os
import pathlib

import lib

ROOT = pathlib.Path("/sys/fs/cgroup")
UNIFIED = (".", "unified")  # where version 2 is: alone, or beside version 1


class Cgroup:
    """In the first place where one can be made that has the file. OSError where there is none.

    places: (folder of /sys/fs/cgroup, file). place: the number of the one that was taken."""

    def __init__(self, places):
        for self.place, (home, name) in enumerate(places):
            self.home = ROOT / home
            self.folder = self.home / f"{lib.PREFIX}-{os.getpid()}"
            self.file = self.folder / name
            try:
                self.folder.mkdir()
            except OSError:
                continue
            if self.file.exists():
                return
            self.folder.rmdir()
        raise OSError("no cgroup with " + " or ".join(sorted({name for _, name in places}))
                      + " is ours to make")

    def set(self, value):
        self.file.write_text(str(value), "ascii")

    def processes(self):
        return (self.folder / "cgroup.procs").read_text("ascii").split()

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid), "ascii")

    def let_go(self, pid):
        (self.home / "cgroup.procs").write_text(str(pid), "ascii")

    def inside(self, args):
        """The command, as a process of the cgroup."""
        return ["sh", "-c", f'echo $$ >{self.folder}/cgroup.procs && exec "$@"', "sh", *args]

    def close(self):
        """Once its processes have ended."""
        lib.until(lambda: not self.processes(), "the cgroup is not empty")
        self.folder.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def limited(controller, version_1, version_2, limit=None):
    """One with a limit, by the names of its file."""
    cgroup = Cgroup([(controller, version_1), *((place, version_2) for place in UNIFIED)])
    try:
        if limit is not None:
            cgroup.set(limit)
    except OSError:
        cgroup.close()
        raise
    return cgroup
