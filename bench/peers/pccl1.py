# SPDX-License-Identifier: MIT
"""Gets the published library of PCCL 1.0, and the files that it needs to run.

The library is in a wheel on PyPI, and needs a newer C library than Debian 12 has. So the C library
of the next release of Debian is unpacked next to it, and a copy of pccl-bench uses this C library.
Nothing is installed.
"""

import os
import pathlib
import platform
import shutil
import sys
import zipfile

from . import base

WHEEL = "pypccl==1.0.0"
FOLDER = base.CACHE / "pccl-1.0.0"
LIBRARY = FOLDER / "libpccl.so"
RUNTIME = FOLDER / "runtime"
LIBRARIES = RUNTIME / "usr/lib/x86_64-linux-gnu"
RELEASE = "trixie"
PACKAGES = ("libc6", "libgcc-s1", "libgomp1", "libstdc++6")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def get():
    """Gets the library. Does nothing if it is already there. Raises Failed if the library is not
    available."""
    if platform.machine() != "x86_64":
        raise base.Failed("was published for x86-64 only")
    for program, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("patchelf", "patchelf"),
                             ("cc", "gcc")):
        if not shutil.which(program):
            raise base.Failed(f"no {program} (./dev deps bench: {package})")
    if not LIBRARIES.is_dir():
        _unpack_runtime()
    _compile_libcuda()
    if not LIBRARY.exists():
        _unpack_library()


def copy_of(program):
    """Returns a copy of the program that runs with the other C library."""
    copy = base.work_folder() / f"{program.name}-pccl1"
    # Let the program itself load the libraries that the PCCL library needs. If only the PCCL
    # library asked for them, the loader would look for them in the folders of the system.
    wanted = ["libcuda.so.1", "libgcc_s.so.1", "libgomp.so.1", "libstdc++.so.6"]
    shutil.copy2(program, copy)
    for change in (
            [word for name in wanted for word in ("--add-needed", name)],
            ["--set-interpreter", str(LIBRARIES / "ld-linux-x86-64.so.2")],
            ["--force-rpath", "--set-rpath", f"{LIBRARIES}:{base.BUILD}/libpccl-shim/.libs"]):
        base.run(["patchelf", *change, str(copy)], "patchelf")
    return copy


def with_cubic():
    """Returns the path of a copy of the library that needs cubic.c's library. Preloading is not
    enough here: pccl-bench loads a library with RTLD_DEEPBIND, so the loader looks for each symbol
    in the library's own dependencies first."""
    copy = base.work_folder() / "libpccl-cubic.so"
    shutil.copy2(LIBRARY, copy)
    base.run(["patchelf", "--add-needed", base.cubic_sockets(), str(copy)], "patchelf")
    return copy


def _fresh(name):
    """Returns an empty folder to work in, next to the final folders, which appear only when they
    are complete."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _unpack_library():
    folder = _fresh("wheel")
    base.run([sys.executable, "-m", "venv", str(folder / "venv")], "python -m venv (python3-venv)")
    base.run([str(folder / "venv/bin/pip"), "download", "-q", "--no-deps", "--only-binary=:all:",
              "--python-version", "3.12", "--platform", "manylinux_2_17_x86_64", "-d", str(folder),
              WHEEL], f"pip download {WHEEL}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        part = folder / LIBRARY.name
        part.write_bytes(wheel.read("pccl/libpccl.so"))
    part.rename(LIBRARY)
    shutil.rmtree(folder)


def _mirror():
    """Returns the mirror of this system's packages, which also has the next release of Debian."""
    found = base.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
                     "apt-get indextargets")
    uris = [uri for uri in found.split() if uri.rstrip("/").endswith("/debian")]
    if not uris:
        raise base.Failed("no source of Debian packages is configured for apt")
    return uris[0]


def _unpack_runtime():
    """Unpacks the C library with a separate configuration of apt, which does not touch the system's
    lists and sources."""
    folder = _fresh("apt")
    for name in ("lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    sources, config = folder / "sources.list", folder / "apt.conf"
    sources.write_text(f"deb [signed-by={KEYS}] {_mirror()} {RELEASE} main\n")
    config.write_text(f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
                      f'Dir::State::lists "{folder}/lists";\nDir::Cache "{folder}/cache";\n'
                      'APT::Sandbox::User "";\n')
    env = dict(os.environ, APT_CONFIG=str(config))
    base.run(["apt-get", "update", "-qq"], "apt-get update", env=env)
    base.run(["apt-get", "download", "-qq", *(f"{p}/{RELEASE}" for p in PACKAGES)],
             "apt-get download", env=env, cwd=folder)
    for package in folder.glob("*.deb"):
        base.run(["dpkg-deb", "-x", str(package), str(folder / "root")], "dpkg-deb")
    shutil.rmtree(RUNTIME, ignore_errors=True)
    (folder / "root").rename(RUNTIME)
    shutil.rmtree(folder)


def _compile_libcuda():
    base.compiled(LIBRARIES / "libcuda.so.1", pathlib.Path(__file__).with_name("libcuda.c"),
                  "cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
