# SPDX-License-Identifier: MIT
"""Which answers are true of an injected failure: the code says what happened, the text has the system's
words for it and names the process or host; and of one operation all peers hear the same, unless one left
the run, with its reason."""

import errno
import os
import re

import lib

# Of these a process or its system has none left: pcclOutOfMemory.
SHORTAGES = {"EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EFBIG", "EAGAIN", "ENOBUFS", "ETOOMANYREFS"}
REFUSALS = {"EPERM", "ENOSYS"}  # of a system call: pcclInternalError, and no repetition helps
# Other codes that are true of an error of one call in one kind of process: what could not be reached.
NO_AGENT = {"connect": {"EAGAIN", "ECONNREFUSED", "EADDRNOTAVAIL"}, "flock": {"ENOLCK"},
            "mkdir": {"ENOSPC", "EMFILE", "EROFS"}, "bind": {"EADDRINUSE"}, "listen": {"EADDRINUSE"}}
# Own shortage of a port, though the error is not one of those above.
NO_PORT = "EADDRNOTAVAIL"
STREAM = {"sendmsg", "recvmsg", "writev", "readv", "send", "recv"}
NAMED = re.compile(r"\(pid \d+\) on host \S|\bhost host-\d"
                   r"|of (pcclagentd|ccoip-masterd) is \d|the log of (pcclagentd|ccoip-masterd) names")
LEFT = ("no longer part of the run", "call pcclConnect", "connect again")
DAEMONS = {"agent": "agent", "private": "agent", "master": "master"}
# What is said of a daemon that has ended or hung up, and with which code.
GONE = {
    "agent": ((lib.AGENT_UNAVAILABLE, ("no agent listens at", "before it served",
                                       "the agent closed the connection", "has gone and")),),
    "master": ((lib.MASTER_CONNECTION_FAILED, ("cannot reach the master at ", "lost the master at ",
                                               "cannot be answered: out of memory")),),
}


class Row:
    """Of the table, and what is known of it. ended: kinds of daemons that did meanwhile."""

    def __init__(self, kind, call, error):
        self.kind, self.call, self.error = kind, call, error.rstrip("+")
        self.words = os.strerror(getattr(errno, self.error))
        self.ended = set()

    def is_short(self):
        return self.error in SHORTAGES or (self.call == "connect" and self.error == NO_PORT)

    def says_it(self, text):
        """pthread_create has its own word when it lacks memory."""
        return self.words in text or (self.call == "alloc" and "pthread_create" in text)

    def is_own(self, code, text):
        """Is it the failure itself?"""
        if self.error in REFUSALS:
            return code == lib.INTERNAL_ERROR and self.says_it(text) and "refuses it to" in text
        if self.call == "proc":
            return code in (lib.INTERNAL_ERROR, lib.OUT_OF_MEMORY) and self.says_it(text)
        if self.kind in ("trainer", "spawner") and self.error in NO_AGENT.get(self.call, ()):
            return code == lib.AGENT_UNAVAILABLE and (
                self.says_it(text) or any(words in text for words in (
                    "no agent listens at", "was started does not listen at", "too many others",
                    "something else is in its place")))
        if self.call == "connect" and self.error == "ECONNREFUSED":
            return code in (lib.RANK_CONNECTION_FAILED, lib.MASTER_CONNECTION_FAILED) and \
                self.says_it(text)
        if self.error == "ECONNRESET":
            return self.says_it(text)
        return self.is_short() and code == lib.OUT_OF_MEMORY and self.says_it(text) and \
            bool(NAMED.search(text))

    def is_of_daemon(self, code, text):
        """Is it that a daemon has ended, or hung up?"""
        daemon = DAEMONS.get(self.kind)
        if not daemon or not (daemon in self.ended or self.kind == "private"
                              or self.call in STREAM | {"epoll_ctl", "alloc", "accept4"}):
            return False
        if self.is_short() and "before it served" in text:
            return False  # it has said what it lacks
        if code == lib.RANK_CONNECTION_LOST or (
                code == lib.RANK_CONNECTION_FAILED and self.call in STREAM and daemon == "agent"):
            return True
        return any(code == c and any(w in text for w in words) for c, words in GONE[daemon])

    def may_lose(self):
        """May calls be lost that succeed when repeated? Only with a daemon or a connection, which a
        shortage of its own buffers costs as well: not where an operation lacks memory."""
        return bool(self.ended) or self.kind == "private" or self.call in STREAM or (
            self.kind in DAEMONS and self.call in ("alloc", "epoll_ctl"))

    def wrong(self, code, text, losses, left):
        """What is wrong with an answer, or None. left: another peer has left before, or does."""
        if losses and not left and not self.may_lose():
            return f"{losses} calls were lost though nobody was"
        if code == lib.SUCCESS or self.is_own(code, text) or self.is_of_daemon(code, text):
            return None
        if left and (code in (lib.TOO_FEW_PEERS, lib.RANK_CONNECTION_LOST) or (
                code == lib.INVALID_USAGE and "no peer can be elected" in text)):
            return None
        # Who was told of the loss already hears why it is not in the run.
        if code in (lib.INVALID_USAGE, lib.UPDATE_TOPOLOGY_FAILED) and any(w in text for w in LEFT) and (
                self.says_it(text) or self.error == "ECONNRESET"):
            return None
        return "this is not what happened"


def leaves(answer):
    """None: the peer has ended."""
    return answer is None or (answer["code"] != lib.SUCCESS
                              and any(words in answer["text"] for words in LEFT))


def divided(answers):
    """What is wrong with the answers of all peers to one operation, or None."""
    codes = {a["code"] for a in answers if a and not leaves(a)}
    return "peers who stay hear different codes" if len(codes) > 1 else None
