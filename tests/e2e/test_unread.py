#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The standard error of a program is a pipe that nobody reads, as subprocess.PIPE creates it. Its
master and its private agent drop their log lines, and operations go on."""

import os
import re
import socket
import time

import lib
from lib import check, free_port, ids_of, judge, together
from private import PrivateAgents, skip_beside_system_agent

OPERATION = "type=f32 op=sum count=10007 tag=1 verify=1"
STRANGERS = 8  # connections for each of which the master logs a line


def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def read_all(reader):
    os.set_blocking(reader, False)
    data = b""
    try:
        while chunk := os.read(reader, 65536):
            data += chunk
    except BlockingIOError:
        pass
    return data.decode("utf-8", "replace")


def annoy(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=lib.WAIT) as s:
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while s.recv(4096):
            pass


def unread(lab, private):
    address = f"127.0.0.1:{free_port()}"
    reader, writer = full_pipe()
    owner = lab.start_peer(0, master=address, env=private.env, stderr=writer)
    owner.expect(f"master addr={address}")
    check(True, "a master starts although standard error of its program is a full pipe")
    peers = [owner, *(lab.start_peer(k, master=address, env=private.env) for k in (1, 2))]
    lib.form_run(peers)
    check(len(private.running()) == 1,
          "a private agent starts although standard error of its program is a full pipe", private.running())
    began = time.monotonic()
    for _ in range(STRANGERS):
        annoy(address)
    wrong = judge(together(peers, f"reduce {OPERATION} ids={ids_of(peers)}"))
    check(not wrong, "operations go on while the master logs to a full pipe",
          f"{time.monotonic() - began:.1f} s, {wrong}")
    check(os.get_blocking(writer), "the pipe still blocks its other writers")
    read_all(reader)
    text = ""

    def told():
        nonlocal text
        annoy(address)
        text += read_all(reader)
        return re.search(r"masterd\[.*\b(\d+) lines were dropped because standard error was not read", text)

    lib.until(told, "the log does not mention dropped lines")
    check(int(told()[1]) >= STRANGERS, "the log says how many lines were dropped", text)
    for peer in peers[1:]:
        lab.drop_peer(peer)
    owner.expect("master-signal")
    owner.expect("master-await")
    lab.drop_peer(owner)
    os.close(reader)
    os.close(writer)


def test():
    skip_beside_system_agent()
    with lib.Lab() as lab, PrivateAgents(lab) as private:
        unread(lab, private)


lib.run(test, 60)
