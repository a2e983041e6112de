# SPDX-License-Identifier: MIT
"""Compares the trainers' reports about operations. All trainers that took part must report the
same."""

import collections

from bounds import S

KEPT = 20000
# Different results of an operation are no fault if a master died at most BEFORE earlier than the
# first trainer got a result, or at most AFTER later. BEFORE is the longer one, because a process
# may be stopped after the master's death and get its result late.
BEFORE, AFTER = 3 * S, 1 * S


class Result:
    """The result of an operation for one trainer, and whether a later operation of the same
    membership has also succeeded."""

    def __init__(self, trainer, end):
        self.trainer, self.joins, self.end = trainer, trainer.joins, end
        self.went_on = False

    def look(self):
        self.went_on |= self.trainer.joins == self.joins and self.trainer.last_began > self.end
        return self.went_on


class Operations:
    """The results of operations and synchronizations. Synchronizations are distinguished by their
    step."""

    def __init__(self, events):
        self.events = events
        self.seen = collections.OrderedDict()  # name -> {result: [Result]}
        self.completed = self.retried = self.synchronizations = 0
        self.last = {}  # slot -> (instant, mask) of its last operation
        self.last_sync = {}  # slot -> instant of its last synchronization
        self.split = {}  # the entries of `seen` that have several results
        self.wrong = []

    def take(self, trainer, words):
        self.last[trainer.slot] = (int(words["end"]), int(words["mask"], 16))
        value = words["mask"] + (f" with the bits {words['hash']}" if "hash" in words else "")
        self.completed += self.note(trainer, f"step {words['step']} tag {words['tag']}", value, words)

    def take_sync(self, trainer, words):
        """Records a synchronization. All trainers must have the same contents at the same revision."""
        self.last_sync[trainer.slot] = int(words["end"])
        self.synchronizations += self.note(trainer, f"the synchronization of step {words['step']}",
                                           f"{words['state']} at revision {words['revision']}", words)

    def note(self, trainer, key, value, words):
        """Records a result. Returns whether it is the first report about this operation."""
        began, end = int(words["began"]), int(words["end"])
        results = self.seen.get(key)
        first = results is None
        if first:
            results = self.seen[key] = {}
            if len(self.seen) > KEPT:
                self.seen.popitem(last=False)
        results.setdefault(value, []).append(Result(trainer, end))
        trainer.last_began = max(trainer.last_began, began)
        self.retried += int(words["lost"])
        if len(results) > 1 and key not in self.split:
            self.split[key] = results
            earliest = min(r.end for of in results.values() for r in of)
            if not self.events.any("master", earliest - BEFORE, earliest + AFTER):
                self.blame(key, results)
        for split in self.split:
            self.compare(split, self.split[split])
        return first

    def compare(self, key, results):
        """Compares different results. A master may die while it reports a success, and the trainers
        that have got the report may be lost before the next master takes over. Then the other
        trainers repeat the operation. This is no fault if only the other trainers go on."""
        if len(results) > 2 or sum(any([r.look() for r in of]) for of in results.values()) > 1:
            self.blame(key, results)

    def blame(self, key, results):
        self.wrong.append(f"{key} has several results: " + ", ".join(
            f"{value} for trainers {[r.trainer.number for r in of]}, of whom "
            f"{[r.trainer.number for r in of if r.went_on]} went on"
            for value, of in results.items()))
