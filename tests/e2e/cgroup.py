# SPDX-License-Identifier: MIT
"""Creates cgroups, of the version that the host has."""

import os
import pathlib

import lib

ROOT = pathlib.Path("/sys/fs/cgroup")
UNIFIED = (".", "unified")  # folders of version 2: alone, or next to version 1


class Cgroup:
    """A cgroup, created in the first of `places` where a cgroup can be created and a new cgroup has
    the file. Raises OSError if no place is suitable.

    places: pairs (folder of /sys/fs/cgroup, file). self.place: the index of the place that was
    chosen."""

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
                      + " can be created")

    def set(self, value):
        self.file.write_text(str(value), "ascii")

    def processes(self):
        return (self.folder / "cgroup.procs").read_text("ascii").split()

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid), "ascii")

    def let_go(self, pid):
        (self.home / "cgroup.procs").write_text(str(pid), "ascii")

    def inside(self, args):
        """Returns the command as a process of the cgroup."""
        return ["sh", "-c", f'echo $$ >{self.folder}/cgroup.procs && exec "$@"', "sh", *args]

    def close(self):
        """Waits until the processes of the cgroup have ended, then removes it."""
        lib.until(lambda: not self.processes(), "the cgroup is not empty")
        self.folder.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def limited(controller, version_1, version_2, limit=None):
    """Returns a cgroup with a limit. version_1, version_2: the name of the limit's file in each
    version of cgroups."""
    cgroup = Cgroup([(controller, version_1), *((place, version_2) for place in UNIFIED)])
    try:
        if limit is not None:
            cgroup.set(limit)
    except OSError:
        cgroup.close()
        raise
    return cgroup
