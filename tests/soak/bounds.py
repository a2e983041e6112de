# SPDX-License-Identifier: MIT
"""The bounds of a trainer's calls, by the events during the call (BOUNDS)."""

import collections
import time

MS = 1000000
S = 1000 * MS
# A call must return within BOUNDS["nothing"] seconds after its start. An event that begins before
# this limit can extend it: then the limit is the end of the event plus the event's bound. Of
# several events of one kind during the call, only the first two count. If the call itself repeats
# operations, all events count, because each event may affect another operation. While an event lasts
# (up to 2.5 seconds, or 6 for a long cut), no call is late. But no call may ever last for longer
# than CALL_BOUND.
BOUNDS = {
    # Such a call needs milliseconds. The rest of the bound allows for a machine under load.
    "nothing": 3,
    # A trainer was started, was killed or leaves. The ring is formed without it, or members vote on
    # the newcomer and links are opened.
    "trainer": 4,
    # The event ends when the agent runs again. Shims reconnect every 0.5 s, agents connect to each
    # other again, operations are repeated.
    "agent": 5,
    # Like "agent". A trainer that died meanwhile counts as lost if it has not come back for 5 s.
    "agent and trainer": 8,
    # The event lasts up to 1.5 s and ends when the link is back. After a cut, TCP may wait for the
    # duration of the cut before it sends again.
    "short cut": 4,
    # The event lasts up to 6 s and ends when the link is back. Both sides of the cut notice the
    # silence after 2.8 s. Agents reconnect once a second, and trainers connect again.
    "long cut": 6,
    # Like the two cuts above, and then agents find the master again.
    "short cut of the master": 4,
    "long cut of the master": 8,
    # One end of a connection is gone, and the other end learns this only when the event ends.
    # Silence is noticed after 2.8 s, or after 1.2 s on a new link.
    "half open": 6,
    # Like "half open", and then agents find the master again.
    "half open at the master": 8,
    # The event ends when the master runs again. Agents reconnect every 0.6 s; the master waits 3 s
    # for missing agents.
    "master": 8,
    # The event lasts at most 2.5 s, about the time that daemons wait for each other. Some daemons
    # stop waiting, and connect again.
    "trainer stopped": 4,
    "agent stopped": 6,
    "master stopped": 8,
}
CALL_BOUND = 40
OF_A_KIND = 2
REPEATS = "pcclAllReduceMultipleWithRetry"
RECOVERY_BOUND = 30  # seconds from any event to the next operation that succeeds
PATIENCE = 10  # seconds after an event; then new events wait until an operation has succeeded
NAMES = {"trainer": "a trainer came or went", "agent": "an agent was down",
         "agent and trainer": "an agent was down while one of its trainers died",
         "short cut": "a link was cut for a moment", "long cut": "a link was cut for long",
         "short cut of the master": "the link of the master's host was cut for a moment",
         "long cut of the master": "the link of the master's host was cut for long",
         "half open": "connections were half open",
         "half open at the master": "connections with the master were half open",
         "master": "the master was down", "trainer stopped": "a trainer stood still",
         "agent stopped": "an agent stood still", "master stopped": "the master stood still"}


def now():
    return time.monotonic_ns()


class Event:
    def __init__(self, kind, instant):
        self.kind, self.began, self.over = kind, now(), None
        if instant:
            self.over = self.began

    def ends(self):
        self.over = now()


class Events:
    """The latest events, in order."""

    KEPT = (CALL_BOUND + 10) * S

    def __init__(self):
        self.all = collections.deque()

    def begins(self, kind):
        event = Event(kind, kind == "trainer")
        self.all.append(event)
        while self.all[0].began < event.began - self.KEPT:
            self.all.popleft()
        return event

    def limit(self, call, began):
        """Returns the time by which a call must have ended, and the events that justify this limit,
        the decisive event last."""
        limit, most = began + BOUNDS["nothing"] * S, began + CALL_BOUND * S
        causes, seen = [], collections.Counter()
        for event in self.all:
            if event.began > limit:
                break
            if event.began > began and call != REPEATS:
                seen[event.kind] += 1
                if seen[event.kind] > OF_A_KIND:
                    continue
            if event.over is None:
                return most, causes + [event]
            until = event.over + BOUNDS[event.kind] * S
            if until > limit:
                causes.append(event)
                limit = until
        return min(limit, most), causes

    def any(self, kind, since, until):
        """Has an event of this kind begun in this period?"""
        return any(e.kind == kind and since <= e.began <= until for e in self.all)

    def write(self, file):
        """Writes when each event happened, in the time of Calls.file, and how long it lasted."""
        for event in self.all:
            lasted = f"{(event.over - event.began) / S:.2f} s" if event.over else "is not over"
            file.write(f"{event.began / S:.2f} {event.kind}: {lasted}\n")


class Calls:
    """The slow calls: those that trainers report because they have lasted for a second. Each call
    adds a line to `file`, for people to read."""

    def __init__(self, events, file):
        self.events, self.file = events, file
        self.lasting = {}  # trainer -> (call, began)
        self.longest = {}  # last event -> (seconds after it, its bound, the call)

    def take(self, trainer, answer):
        """Processes a trainer's "slow" line. Returns the fault, or None."""
        if "end" not in answer:
            self.lasting[trainer] = (answer["text"], answer["began"])
            return None
        self.lasting.pop(trainer, None)
        return self.judge(trainer, answer["text"], answer["began"], answer["end"])

    def forget(self, trainer):
        self.lasting.pop(trainer, None)

    def late(self):
        """Returns the faults of calls that have not returned."""
        wrongs = (self.judge(trainer, call, began, None)
                  for trainer, (call, began) in self.lasting.items())
        return [text for text in wrongs if text]

    def judge(self, trainer, call, began, end):
        limit, causes = self.events.limit(call, began)
        at = end or now()
        sentence = (f"{call} of trainer {trainer.number} on host {trainer.host} "
                    f"{'took' if end else 'has not returned after'} {(at - began) / S:.1f} s")
        told = self.told(began, causes)
        if end:
            with open(self.file, "a", encoding="utf-8") as file:
                file.write(f"{end / S:.1f} {sentence}: {told}\n")
        if end and not (causes and causes[-1].over is None):
            self.note(call, began, end, causes)
        if at <= limit:
            return None
        return f"{sentence}, {(at - limit) / S:.1f} s longer than allowed: {told}"

    def note(self, call, began, end, causes):
        kind, since = (causes[-1].kind, causes[-1].over) if causes else ("nothing", began)
        seconds = (end - since) / S
        if seconds > self.longest.get(kind, (0,))[0]:
            self.longest[kind] = (seconds, BOUNDS[kind], call)

    @staticmethod
    def told(began, causes):
        if not causes:
            return "nothing happened meanwhile"
        return "; ".join(NAMES[e.kind] + (f", over {(e.over - began) / S:.1f} s after the call began"
                                          if e.over else ", not over") for e in causes[-4:])


class Recovery:
    """Measures the time from an event to the first success of an operation that began after the
    event."""

    def __init__(self):
        self.open = []  # (kind, at)
        self.took = collections.defaultdict(list)

    def event(self, kind):
        self.open.append((kind, now()))

    def forget(self):
        """Forgets events from which nobody could recover, because there were fewer than two
        trainers."""
        self.open.clear()

    def operation(self, began, end):
        for kind, at in [e for e in self.open if began > e[1]]:
            self.took[kind].append(end - at)
            self.open.remove((kind, at))

    def older(self, seconds):
        """Returns the kinds of events that are older than `seconds` and since which no operation
        has begun and succeeded."""
        limit = now() - seconds * S
        return [kind for kind, at in self.open if at < limit]
