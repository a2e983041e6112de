#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The path from the master to one agent carries the first bytes of each connection, and nothing
after them. The agent closes the connection and connects again, over and over. The other hosts go on
without its peer, and get the reason."""

import socket
import threading
import time

import lib
from lib import SUCCESS, check

ENOUGH = 300  # bytes; the greeting fits, the messages at the start of an operation do not
TIMEOUT = 1  # timeout of the master in seconds
BOUND = 20
CALLS = 8  # the first calls may begin before the master evicts the peer


class Way(threading.Thread):
    """Forwards connections from its own port to the master."""

    def __init__(self, master):
        super().__init__(daemon=True)
        self.master, self.narrow = master, False
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"

    def run(self):
        while True:
            here = self.server.accept()[0]
            there = socket.create_connection(("127.0.0.1", self.master.port))
            for ends in ((here, there, False), (there, here, True)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink, back):
        total = 0
        try:
            while data := source.recv(65536):
                total += len(data)
                if not (back and self.narrow and total > ENOUGH):
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test():
    with lib.Lab(3) as lab:
        lab.start(master_options=["--host-timeout", str(TIMEOUT)])
        way = Way(lab.master)
        way.start()
        peers = [lab.start_peer(k, k, master=way.address if k == 1 else None) for k in range(3)]
        lib.form_run(peers)
        line = f"reduce type=f32 op=sum count=64 retry=50 ids={lib.ids_of(peers)}"
        check(not lib.judge(lib.together(peers, line)), "three peers reduce before the connection flaps")
        way.narrow = True
        begin = time.monotonic()
        for peer in peers:
            peer.send(*CALLS * [line])
        answers = [peers[k].read(seconds=2 * BOUND) for k in (0, 2) for _ in range(CALLS)]
        took = time.monotonic() - begin
        print(f"# {took:.1f} s")
        check(took < BOUND, f"the other hosts wait for a flapping agent for less than {BOUND} s", took)
        check(all(a["code"] == SUCCESS for a in answers) and
              answers[CALLS - 1]["world"] == answers[-1]["world"] == 2,
              "the other hosts reduce without the flapping agent's peer", answers)
        check(any("its connection to the master broke" in x and "no call of its peers" in x
                  for x in lab.master.log_lines()),
                  "the master's log says why it evicted the flapping agent's peer")
        lab.check_alive()


lib.run(test, 90)
