#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the soak's comparison of results with cases that a soak may never produce."""

import sys
import unittest

sys.dont_write_bytecode = True

import bounds  # pylint: disable=wrong-import-position
import results  # pylint: disable=wrong-import-position
from bounds import S  # pylint: disable=wrong-import-position


class Trainer:
    def __init__(self, number):
        self.number = self.slot = number
        self.joins, self.last_began = 1, 0

    def joins_anew(self):
        self.joins += 1
        self.last_began = 0


class Judge(unittest.TestCase):
    """Trainer 1 has learned of the success of step 5 at once, with a mask that no other trainer
    has."""

    def setUp(self):
        self.events, self.begin = bounds.Events(), bounds.now()
        self.operations = results.Operations(self.events)
        self.one, self.other, self.third = Trainer(1), Trainer(2), Trainer(3)

    def says(self, trainer, step, mask, began, end, **words):
        """Reports an operation. Times are in seconds."""
        self.operations.take(trainer, {
            "step": str(step), "tag": "1", "mask": f"{mask:x}", "lost": "0",
            "began": str(self.begin + began * S), "end": str(self.begin + end * S), **words})

    def says_sync(self, trainer, revision, state):
        """Reports the synchronization at the end of step 5."""
        self.operations.take_sync(trainer, {
            "step": "5", "revision": str(revision), "state": state, "lost": "0",
            "began": str(self.begin), "end": str(self.begin + S)})

    def differ(self, master_dies=True):
        if master_dies:
            self.events.begins("master")
        self.says(self.one, 5, 0x7, 0, 0)
        self.says(self.other, 5, 0x6, 0, 4)

    def test_one_result_is_right(self):
        for trainer in self.one, self.other, self.third:
            self.says(trainer, 5, 0x7, 0, 1)
        self.assertEqual(self.operations.wrong, [])
        self.assertEqual(self.operations.completed, 1)

    def test_other_bits_of_a_quantized_result_are_wrong(self):
        self.says(self.one, 5, 0x7, 0, 1, hash="ab")
        self.says(self.other, 5, 0x7, 0, 1, hash="ab")
        self.assertEqual(self.operations.wrong, [])
        self.says(self.third, 5, 0x7, 0, 1, hash="cd")
        self.assertEqual(len(self.operations.wrong), 1)

    def test_one_state_is_right(self):
        self.says_sync(self.one, 7, "ab")
        self.says_sync(self.other, 7, "ab")
        self.assertEqual(self.operations.wrong, [])
        self.assertEqual(self.operations.synchronizations, 1)

    def test_two_states_are_wrong(self):
        self.says_sync(self.one, 7, "ab")
        self.says_sync(self.other, 7, "cd")
        self.assertIn("the synchronization of step 5", self.operations.wrong[0])

    def test_two_revisions_are_wrong(self):
        self.says_sync(self.one, 7, "ab")
        self.says_sync(self.other, 8, "ab")
        self.assertIn("ab at revision 8", self.operations.wrong[0])

    def test_two_results_are_wrong(self):
        self.differ(master_dies=False)
        self.assertIn("step 5 tag 1", self.operations.wrong[0])

    def test_two_results_are_right_if_master_died_and_one_trainer_joined_anew(self):
        self.differ()
        self.says(self.other, 6, 0x6, 5, 6)
        self.one.joins_anew()
        self.says(self.one, 7, 0x7, 7, 8)
        self.assertEqual(self.operations.wrong, [])
        self.assertEqual(len(self.operations.split), 1)

    def test_two_results_are_wrong_if_both_trainers_go_on(self):
        self.differ()
        self.says(self.other, 6, 0x6, 5, 6)
        self.assertEqual(self.operations.wrong, [])
        self.says(self.one, 7, 0x7, 7, 8)
        self.assertIn("[1] went on", self.operations.wrong[0])

    def test_two_results_are_wrong_if_one_trainer_went_on_before_other_result(self):
        self.says(self.one, 5, 0x7, 0, 0)
        self.says(self.one, 6, 0x7, 1, 2)
        self.events.begins("master")
        self.says(self.other, 5, 0x6, 0, 4)
        self.one.joins_anew()
        self.assertEqual(self.operations.wrong, [])
        self.says(self.other, 8, 0x6, 5, 6)
        self.assertIn("[1] went on", self.operations.wrong[0])

    def test_operation_that_began_earlier_does_not_count_as_going_on(self):
        self.differ()
        self.says(self.one, 4, 0x7, -1, 1)
        self.says(self.other, 6, 0x6, 5, 6)
        self.assertEqual(self.operations.wrong, [])

    def test_three_results_are_wrong_in_any_case(self):
        self.differ()
        self.says(self.third, 5, 0x4, 0, 4)
        self.assertEqual(len(self.operations.wrong), 1)


if __name__ == "__main__":
    done = unittest.main(exit=False, verbosity=2).result
    bad = len(done.failures) + len(done.errors)
    print(f"{done.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad or not done.testsRun else 0)
