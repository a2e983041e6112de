# SPDX-License-Identifier: MIT
"""What the trainers say of the operations: all who were in one must say the same."""

import collections

from bounds import S

KEPT = 20000
# A master's death explains that only some were told of a success which it had just decided on. They
# may hear of it late: nobody stands still for longer.
BEFORE, AFTER = 3 * S, 1 * S


class Result:
    """Of an operation, for one trainer; and whether an operation that it has begun afterwards, as the
    same member of the run, has succeeded as well."""

    def __init__(self, trainer, end):
        self.trainer, self.joins, self.end = trainer, trainer.joins, end
        self.went_on = False

    def look(self):
        self.went_on |= self.trainer.joins == self.joins and self.trainer.last_began > self.end
        return self.went_on


class Operations:
    def __init__(self, events):
        self.events = events
        self.seen = collections.OrderedDict()  # (step, tag) -> {mask: [Result]}
        self.completed = self.retried = 0
        self.last = {}  # slot -> (instant, mask) of its last operation
        self.split = {}  # those of seen that have several results
        self.wrong = []

    def take(self, trainer, words):
        key = (words["step"], words["tag"])
        mask, began, end = int(words["mask"], 16), int(words["began"]), int(words["end"])
        results = self.seen.get(key)
        if results is None:
            results = self.seen[key] = {}
            self.completed += 1
            if len(self.seen) > KEPT:
                self.seen.popitem(last=False)
        results.setdefault(mask, []).append(Result(trainer, end))
        trainer.last_began = max(trainer.last_began, began)
        self.last[trainer.slot] = (end, mask)
        self.retried += int(words["lost"])
        if len(results) > 1 and key not in self.split:
            self.split[key] = results
            first = min(r.end for of in results.values() for r in of)
            if not self.events.any("master", first - BEFORE, first + AFTER):
                self.blame(key, results)
        for split in self.split:
            self.compare(split, self.split[split])

    def compare(self, key, results):
        """When the master dies while it tells of a success, and those who were told of it cannot be
        asked by the next one, the others repeat the operation without them: that is no fault, but
        only these may go on."""
        if len(results) > 2 or sum(any([r.look() for r in of]) for of in results.values()) > 1:
            self.blame(key, results)

    def blame(self, key, results):
        self.wrong.append(f"step {key[0]} tag {key[1]} has several results: " + ", ".join(
            f"{mask:x} for trainers {[r.trainer.number for r in of]}, of whom "
            f"{[r.trainer.number for r in of if r.went_on]} went on"
            for mask, of in results.items()))
