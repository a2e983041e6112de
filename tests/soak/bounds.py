# SPDX-License-Identifier: MIT
"""How long a call of a trainer may take, by what happened meanwhile (BOUNDS)."""

import collections
import time

MS = 1000000
S = 1000 * MS
# A call has returned so many seconds ("nothing") after it began or, if that is later, so many after
# the end of an event that began before that moment. Of several events of a kind during the call
# only the first two count, unless the call repeats operations itself: what they do to an operation
# is over before the next one. As long as an event lasts (a second, six for a long cut), no call is
# late. But none, whatever happens, may last for longer than CALL_BOUND.
BOUNDS = {
    # Milliseconds; the rest is for a machine under load.
    "nothing": 3,
    # Started, killed or told to leave: the ring without it, or a vote on a newcomer and its
    # connections.
    "trainer": 4,
    # Until it runs again. Shims reconnect every 0.5 s, agents meet anew, operations are repeated.
    "agent": 5,
    # The same; a trainer that died meanwhile is given up when it has not come back for 5 s.
    "agent and trainer": 8,
    # Up to 1.5 s, until the link is back. TCP sends again as late after it as the cut was long.
    "short cut": 4,
    # Up to 6 s, until the link is back. Silence is noticed after 2.8 s on both sides of the cut;
    # agents reconnect once a second, trainers connect again.
    "long cut": 6,
    # The same, and then agents find the master again.
    "short cut of the master": 4,
    "long cut of the master": 8,
    # One end of connections is gone, and the other has not been told until then. Silence is
    # noticed after 2.8 s, a link that is made anew after 1.2 s.
    "half open": 6,
    # The same, and then agents find the master again.
    "half open at the master": 8,
    # Until it runs again. Agents reconnect every 0.6 s; those that are away are awaited for 3 s.
    "master": 8,
    # For 2.5 s at most, about as long as daemons wait for each other: some give up, and meet anew.
    "trainer stopped": 4,
    "agent stopped": 6,
    "master stopped": 8,
}
CALL_BOUND = 40
OF_A_KIND = 2
REPEATS = "pcclAllReduceMultipleWithRetry"
RECOVERY_BOUND = 30  # seconds from any event to the next operation that succeeds
PATIENCE = 10  # seconds of that after which nothing more is done to the system until one has
NAMES = {"trainer": "a trainer came or went", "agent": "an agent was away",
         "agent and trainer": "an agent was away while a trainer of its died",
         "short cut": "a link was cut for a moment", "long cut": "a link was cut for long",
         "short cut of the master": "the link of the master's host was cut for a moment",
         "long cut of the master": "the link of the master's host was cut for long",
         "half open": "connections were half open",
         "half open at the master": "connections with the master were half open",
         "master": "the master was away", "trainer stopped": "a trainer stood still",
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
    """What happened lately, in order."""

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
        """When a call must have returned; also the causes of that: events, the decisive one last."""
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
        """Has an event of this kind begun then?"""
        return any(e.kind == kind and since <= e.began <= until for e in self.all)

    def write(self, file):
        """When what happened, as Calls.file counts the time, and for how long."""
        for event in self.all:
            lasted = f"{(event.over - event.began) / S:.2f} s" if event.over else "is not over"
            file.write(f"{event.began / S:.2f} {event.kind}: {lasted}\n")


class Calls:
    """The slow ones: those that trainers say last for a second by now. file gets a line for each,
    to look at."""

    def __init__(self, events, file):
        self.events, self.file = events, file
        self.lasting = {}  # trainer -> (call, began)
        self.longest = {}  # what happened last -> (seconds after it, of which bound, call)

    def take(self, trainer, answer):
        """Of a trainer's "slow" line. What is wrong with it, or None."""
        if "end" not in answer:
            self.lasting[trainer] = (answer["text"], answer["began"])
            return None
        self.lasting.pop(trainer, None)
        return self.judge(trainer, answer["text"], answer["began"], answer["end"])

    def forget(self, trainer):
        self.lasting.pop(trainer, None)

    def late(self):
        """What is wrong with calls that have not returned."""
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
        return f"{sentence}, {(at - limit) / S:.1f} s more than it may: {told}"

    def note(self, call, began, end, causes):
        kind, since = (causes[-1].kind, causes[-1].over) if causes else ("nothing", began)
        seconds = (end - since) / S
        if seconds > self.longest.get(kind, (0,))[0]:
            self.longest[kind] = (seconds, BOUNDS[kind], call)

    @staticmethod
    def told(began, causes):
        if not causes:
            return "nothing happened meanwhile"
        return "; ".join(NAMES[e.kind] + (f", over {(e.over - began) / S:.1f} s after it began"
                                          if e.over else ", not over") for e in causes[-4:])


class Recovery:
    """How long after an event the first operation succeeds that was begun after it."""

    def __init__(self):
        self.open = []  # (kind, at)
        self.took = collections.defaultdict(list)

    def event(self, kind):
        self.open.append((kind, now()))

    def forget(self):
        """Events that nobody could recover from: there were less than two trainers."""
        self.open.clear()

    def operation(self, began, end):
        for kind, at in [e for e in self.open if began > e[1]]:
            self.took[kind].append(end - at)
            self.open.remove((kind, at))

    def older(self, seconds):
        """What has happened so long ago, and no operation that was begun since has succeeded."""
        limit = now() - seconds * S
        return [kind for kind, at in self.open if at < limit]
