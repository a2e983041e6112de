# SPDX-License-Identifier: MIT
"""Decides which answers are true for an injected failure. The code matches the event, and the text
has the system's words for it and names the process or host. All peers get the same code for one
operation, unless one peer has left the run: that peer gets the reason."""

import errno
import os
import re

import lib

# Errors that mean that the process or the system lacks a resource: pcclOutOfMemory.
SHORTAGES = {"EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EFBIG", "EAGAIN", "ENOBUFS", "ETOOMANYREFS"}
# Errors that mean that the system refuses the call: pcclInternalError. A repeated call fails, too.
REFUSALS = {"EPERM", "ENOSYS"}
# Errors of one call in one kind of process that mean that the agent could not be reached.
NO_AGENT = {"connect": {"EAGAIN", "ECONNREFUSED", "EADDRNOTAVAIL"}, "flock": {"ENOLCK"},
            "mkdir": {"ENOSPC", "EMFILE", "EROFS"}, "bind": {"EADDRINUSE"}, "listen": {"EADDRINUSE"}}
# A lack of ports, although the error is not one of SHORTAGES.
NO_PORT = "EADDRNOTAVAIL"
STREAM = {"sendmsg", "recvmsg", "writev", "readv", "send", "recv"}
NAMED = re.compile(r"\(pid \d+\) on host \S|\bhost host-\d"
                   r"|of (pcclagentd|ccoip-masterd) is \d|the log of (pcclagentd|ccoip-masterd) names")
LEFT = ("no longer part of the run", "call pcclConnect", "connect again")
DAEMONS = {"agent": "agent", "private": "agent", "master": "master"}
# Texts about a daemon that has ended or closed the connection, with their codes.
GONE = {
    "agent": ((lib.AGENT_UNAVAILABLE, ("no agent listens at", "before it was ready",
                                       "the agent closed the connection", "has gone and")),),
    "master": ((lib.MASTER_CONNECTION_FAILED, ("cannot reach the master at ", "lost the master at ",
                                               "cannot be answered: out of memory")),),
}


class Row:
    """A row of the table and its observations. ended: the kinds of daemons that
    ended during the row."""

    def __init__(self, kind, call, error):
        self.kind, self.call, self.error = kind, call, error.rstrip("+")
        self.words = os.strerror(getattr(errno, self.error))
        self.ended = set()

    def is_short(self):
        return self.error in SHORTAGES or (self.call == "connect" and self.error == NO_PORT)

    def says_it(self, text):
        """Returns whether the text has the system's words for the error. If memory is lacking, the
        text may instead say that pthread_create failed."""
        return self.words in text or (self.call == "alloc" and "pthread_create" in text)

    def is_own(self, code, text):
        """Does the answer describe the injected failure itself?"""
        if self.error in REFUSALS:
            return code == lib.INTERNAL_ERROR and self.says_it(text) and "refuses it to" in text
        if self.call == "proc":
            return code in (lib.INTERNAL_ERROR, lib.OUT_OF_MEMORY) and self.says_it(text)
        if self.kind in ("trainer", "spawner") and self.error in NO_AGENT.get(self.call, ()):
            return code == lib.AGENT_UNAVAILABLE and (
                self.says_it(text) or any(words in text for words in (
                    "no agent listens at", "was started does not listen at",
                    "too many other processes", "something else is in its place")))
        if self.call == "connect" and self.error == "ECONNREFUSED":
            return code in (lib.RANK_CONNECTION_FAILED, lib.MASTER_CONNECTION_FAILED) and \
                self.says_it(text)
        if self.error == "ECONNRESET":
            return self.says_it(text)
        return self.is_short() and code == lib.OUT_OF_MEMORY and self.says_it(text) and \
            bool(NAMED.search(text))

    def is_of_daemon(self, code, text):
        """Does the answer say that a daemon has ended, or has closed the connection?"""
        daemon = DAEMONS.get(self.kind)
        if not daemon or not (daemon in self.ended or self.kind == "private"
                              or self.call in STREAM | {"epoll_ctl", "alloc", "accept4"}):
            return False
        if self.is_short() and "before it was ready" in text:
            return False  # the daemon has named the resource that it lacks
        if code == lib.RANK_CONNECTION_LOST or (
                code == lib.RANK_CONNECTION_FAILED and self.call in STREAM and daemon == "agent"):
            return True
        return any(code == c and any(w in text for w in words) for c, words in GONE[daemon])

    def may_lose(self):
        """May calls fail with a loss and succeed when they are repeated? Only if a daemon or a
        connection is lost. A daemon that lacks memory for its own buffers can cause this; an
        operation that lacks memory cannot."""
        return bool(self.ended) or self.kind == "private" or self.call in STREAM or (
            self.kind in DAEMONS and self.call in ("alloc", "epoll_ctl"))

    def wrong(self, code, text, losses, left):
        """Returns the fault of an answer, or None. left: another peer has left before, or leaves
        now."""
        if losses and not left and not self.may_lose():
            return f"{losses} calls were lost, although no peer was lost"
        if code == lib.SUCCESS or self.is_own(code, text) or self.is_of_daemon(code, text):
            return None
        if left and (code in (lib.TOO_FEW_PEERS, lib.RANK_CONNECTION_LOST) or (
                code == lib.INVALID_USAGE and "no peer can be elected" in text)):
            return None
        # A peer that was already told of the loss now gets the reason why it is not in the run.
        if code in (lib.INVALID_USAGE, lib.UPDATE_TOPOLOGY_FAILED) and any(w in text for w in LEFT) and (
                self.says_it(text) or self.error == "ECONNRESET"):
            return None
        return "the answer does not match the injected failure"


def leaves(answer):
    """Returns whether the peer has left the run. answer: None if the peer has ended."""
    return answer is None or (answer["code"] != lib.SUCCESS
                              and any(words in answer["text"] for words in LEFT))


def divided(answers):
    """Returns the difference between the peers' answers to one operation, or None."""
    codes = {a["code"] for a in answers if a and not leaves(a)}
    return "peers that stay get different codes" if len(codes) > 1 else None
