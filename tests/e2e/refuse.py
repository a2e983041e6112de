#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: refuse.py CALL ERROR PROGRAM [ARGUMENT..]

Runs a program under a seccomp filter that makes one system call fail, as containers do."""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": {"memfd_create": 319, "clone3": 435}, "aarch64": {"memfd_create": 279, "clone3": 435}}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER_AT = 0  # offset in struct seccomp_data


class Program(ctypes.Structure):  # struct sock_fprog
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def refuse(number, error):
    steps = ((LOAD_WORD, 0, 0, NUMBER_AT), (JUMP_EQUAL, 0, 1, number),
             (RETURN, 0, 0, ERRNO | error), (RETURN, 0, 0, ALLOW))
    program = Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) < 0):
        raise OSError(ctypes.get_errno(), "seccomp")


refuse(NUMBERS[platform.machine()][sys.argv[1]], getattr(errno, sys.argv[2]))
os.execv(sys.argv[3], sys.argv[3:])
