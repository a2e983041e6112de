#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests bench/compare with contenders that measure nothing."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOP = pathlib.Path(os.environ.get("abs_top_srcdir") or pathlib.Path(__file__).parents[2])


def load():
    loader = importlib.machinery.SourceFileLoader("compare", str(TOP / "bench/compare"))
    spec = importlib.util.spec_from_loader("compare", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


compare = load()
base, progress, report = compare.base, compare.progress, compare.report
TWO = base.Setting(1, 2)
TWO_CUBIC = base.Setting(1, 2, cubic=True)


class Fake(base.Contender):
    """A contender whose measurements take `took` seconds and fail at a chosen size. `asked` records
    each request for a measurement."""

    asked = []
    failing_size = None
    failures = 0  # failures before it succeeds
    missing = None
    took = 1.0

    def __init__(self):
        self.stopped = 0

    def available(self, setting):
        return self.missing

    def measure(self, size, warm_ups, n):
        Fake.asked.append((size, self.name))
        if size == self.failing_size:
            raise base.Failed("tired")
        if self.failures > 0:
            self.failures -= 1
            raise base.Failed("not yet")
        return self.took

    def stop(self):
        self.stopped += 1


def run(*kinds, rounds=2, setting=TWO):
    """Runs a quick comparison of one setting with these contenders."""
    Fake.asked = []
    options = compare.parse(["--quick", "--rounds", str(rounds), "--settings", setting.key])
    with mock.patch.object(compare, "CONTENDERS", kinds), \
            contextlib.redirect_stdout(io.StringIO()):
        comparison = compare.Comparison(options)
        comparison.measure_all()
    return comparison


def kind(name, **members):
    return type(name, (Fake,), dict(members, name=name))


class Turns(unittest.TestCase):
    def test_contenders_take_turns_in_changing_order(self):
        run(kind("a"), kind("b"), kind("c"), rounds=3)
        for size in compare.QUICK_SIZES:
            names = [name for asked, name in Fake.asked if asked == size]
            self.assertEqual("".join(names), "abcbcacab")
        self.assertEqual([size for size, _ in Fake.asked],
                         3 * [size for size in compare.QUICK_SIZES for _ in range(3)])

    def test_results_have_a_time_for_each_round(self):
        found = run(kind("a", took=2.0), kind("b")).results[TWO]
        self.assertEqual(found["a"], {size: [2.0, 2.0] for size in compare.QUICK_SIZES})

    def test_missing_contender_is_left_out_and_others_go_on(self):
        found = run(kind("a", missing="not here"), kind("b"))
        self.assertEqual(found.notes, [(TWO, "left out: a: not here")])  # only once for all rounds
        self.assertEqual(list(found.results[TWO]), ["b"])

    def test_failed_contender_is_stopped_and_keeps_its_times(self):
        instances = []
        failing = kind("a", failing_size=compare.QUICK_SIZES[2])

        def make():
            instances.append(failing())
            return instances[-1]

        found = run(make, kind("b"))
        self.assertEqual(found.results[TWO]["a"],
                         {size: [1.0, 1.0] for size in compare.QUICK_SIZES[:2]})
        self.assertEqual(len(found.results[TWO]["b"]), 4)
        self.assertEqual([instance.stopped for instance in instances], [1, 1])
        self.assertIn("256 KiB on: tired", found.notes[0][1])
        self.assertEqual(len(found.notes), 1)
        self.assertEqual(Fake.asked.count((compare.QUICK_SIZES[2], "a")), 1)  # in one round

    def test_failed_measurement_is_repeated_and_noted(self):
        failing = kind("a", failures=2, attempts=3)
        found = run(failing, kind("b"), rounds=1)
        self.assertEqual(found.results[TWO]["a"][compare.QUICK_SIZES[0]], [1.0])
        self.assertEqual(found.notes, [(TWO, "repeated: a: not yet")] * 2)

    def test_size_without_figure_has_no_time(self):
        self.assertEqual(run(kind("a", took=None)).results[TWO], {"a": {}})

    def test_iterations_are_within_their_limits(self):
        for quick in (False, True):
            for size in compare.sizes(TWO, quick):
                warm_ups, n = compare.iterations(size, quick)
                self.assertTrue(1 <= warm_ups <= 5 and 2 <= n <= 25, (size, warm_ups, n))
        self.assertEqual(compare.sizes(TWO, False)[0], 4)
        self.assertEqual(compare.sizes(TWO, False)[-1], 1 << 30)


class Where(unittest.TestCase):
    def refused(self, path):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            compare.parse(["--results", str(path)])
        self.assertEqual(ended.exception.code, 2)
        return said.getvalue()

    def test_path_that_cannot_be_written_is_refused_at_start(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertIn(f"no folder {folder}/none", self.refused(folder / "none/r.md"))
            self.assertIn("--results", self.refused(folder))
            half = folder / "half.md"
            half.write_text(report.BEGIN + "\n", "utf-8")
            self.assertIn("there is no line", self.refused(half))
            self.assertEqual(compare.parse(["--results", f"{folder}/r.md"]).results,
                             folder / "r.md")
            self.assertEqual(list(folder.iterdir()), [half])


class Cubic(unittest.TestCase):
    def run_with(self, refusal, *kinds):
        with mock.patch.object(base, "cubic_refusal", lambda: refusal):
            return run(*kinds, setting=TWO_CUBIC)

    def test_only_tcp_contenders_take_part_with_fewer_sizes(self):
        found = self.run_with(None, kind("a"), kind("b", tcp=False))
        self.assertEqual(found.results[TWO_CUBIC],
                         {"a": {size: [1.0, 1.0] for size in compare.QUICK_CUBIC_SIZES}})
        self.assertEqual(found.notes, [])

    def test_setting_with_useless_cubic_is_left_out(self):
        found = self.run_with("cubic is the default here", kind("a"))
        self.assertEqual(found.results, {})
        self.assertEqual(found.notes,
                         [(TWO_CUBIC, "left out: everything: cubic is the default here")])
        self.assertEqual(found.progress.done, found.progress.n_steps)

    def test_reasons_why_cubic_is_useless(self):
        for default, error, refusal in (
                (b"bbr\0\0", None, None), (b"cubic\0", None, "cubic is the default here"),
                (b"bbr\0\0", OSError(1, "no"), "cubic is not available: no")):
            with mock.patch.object(base.socket, "socket") as made:
                probe = made.return_value.__enter__.return_value
                probe.getsockopt.return_value = default
                probe.setsockopt.side_effect = error
                self.assertEqual(base.cubic_refusal(), refusal)

    def test_cubic_is_preloaded_only_in_its_settings(self):
        with mock.patch.object(base, "cubic_sockets", lambda: "/cubic.so"):
            self.assertEqual(base.environment(TWO_CUBIC, A="b")["LD_PRELOAD"], "/cubic.so")
            self.assertEqual(base.environment(TWO_CUBIC, A="b")["A"], "b")
            self.assertEqual(base.environment(TWO), dict(os.environ))

    def test_every_cubic_setting_has_a_twin_without_cubic(self):
        for setting in compare.SETTINGS:
            self.assertIn(setting._replace(cubic=False), compare.SETTINGS)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def test_all_steps_are_taken(self):
        found = run(kind("a"), kind("b"))
        self.assertEqual(found.progress.n_steps, 2 * len(compare.QUICK_SIZES))
        self.assertEqual(found.progress.done, found.progress.n_steps)

    def test_all_steps_are_taken_without_memory(self):
        with mock.patch.object(compare.machine, "available_memory", lambda: 0):
            found = run(kind("a"))
        self.assertEqual(found.progress.done, found.progress.n_steps)

    def test_large_size_takes_fewer_rounds(self):
        with mock.patch.object(compare, "LARGE", compare.QUICK_SIZES[-1]), \
                mock.patch.object(compare.machine, "available_memory", lambda: 1 << 40):
            found = run(kind("a"), rounds=5)
        self.assertEqual([len(times) for times in found.results[TWO]["a"].values()], [5, 5, 5, 3])
        self.assertEqual(found.progress.done, found.progress.n_steps)

    def test_bar_is_drawn_below_text_on_terminal(self):
        bar = progress.Progress(4, Terminal())
        bar.step()
        bar.say("text")
        last = bar.out.getvalue().rsplit("text\n", 1)[1]
        self.assertTrue(last.startswith("\r\033[K[##########   "), last)
        self.assertIn("]  25% after 0 s", last)
        bar.end()
        self.assertTrue(bar.out.getvalue().endswith("\r\033[K"))

    def test_no_bar_is_drawn_without_terminal(self):
        bar = progress.Progress(4, io.StringIO())
        bar.step()
        bar.say("text")
        bar.end()
        self.assertEqual(bar.out.getvalue(), "text\n")

    def test_durations_are_formatted(self):
        self.assertEqual([progress.duration_text(s) for s in (9.6, 119, 120, 2700)],
                         ["10 s", "119 s", "2 min", "45 min"])


class Settings(unittest.TestCase):
    def test_peers_of_a_host_are_consecutive(self):
        self.assertEqual([base.Setting(2, 4).host_of(k) for k in range(4)], [0, 0, 1, 1])
        self.assertEqual(base.Setting(2, 4).key, "2x2")

    def test_ideal_ring_sends_expected_bytes(self):
        self.assertEqual(base.Setting(1, 4).sent(100), 150)
        self.assertEqual(base.Setting(2, 4).sent(100), 100)  # between two hosts

    def test_settings_have_readable_names(self):
        self.assertEqual(str(base.Setting(2, 2)), "two hosts, 1 peer each")
        self.assertEqual(str(base.Setting(2, 4)), "two hosts, 2 peers each")
        self.assertEqual(str(TWO_CUBIC), "one host, 2 peers, all with cubic")
        self.assertEqual(str(base.Setting(8, 8)), "eight hosts, 1 peer each")
        self.assertEqual(base.Setting(2, 2, cubic=True).key, "2x1-cubic")


class Figures(unittest.TestCase):
    def test_ratios_compare_times_of_same_round(self):
        self.assertEqual(report.ratios([1, 2, 4], [2, 2, 40]), (2, 1, 10))
        self.assertEqual(report.ratios([1, 2], [3]), (3, 3, 3))
        self.assertIsNone(report.ratios([1], []))

    def test_numbers_have_three_digits_and_a_limit(self):
        for value, text in ((1234.5, "1234"), (99.96, "100"), (12.34, "12.3"), (1.234, "1.23"),
                            (0.1234, "0.123"), (0.01234, "0.0123"), (0.000021, "0.00002")):
            self.assertEqual(report.number(value, 5), text)
        self.assertEqual(report.number(0.1234, 2), "0.12")

    def test_sizes_are_formatted(self):
        self.assertEqual([report.size_text(s) for s in (4, 1024, 1 << 20, 1 << 30, 1025)],
                         ["4 B", "1 KiB", "1 MiB", "1 GiB", "1025 B"])

    def test_bus_bandwidth_is_that_of_ideal_ring(self):
        self.assertEqual(report.bus_bandwidth(4, 1000, [1, 2, 30]), 750)


class Summary(unittest.TestCase):
    # at 4 B `a` is the best other contender, at 1 KiB and 16 MiB `b` is; 16 KiB belongs to no class
    results = {"ours": {4: [1.0], 1024: [1.0], 16 << 10: [1.0], 16 << 20: [2.0, 4.0]},
               "a": {4: [2.0], 1024: [9.0], 16 << 10: [0.1]},
               "b": {4: [3.0], 1024: [5.0], 16 << 20: [3.0, 10.0]}}

    def ratio(self, others, least=0, most=4096):
        return report.class_ratio(self.results, "ours", others, least, most)

    def test_best_rival_is_found_for_each_size(self):
        self.assertEqual(self.ratio(["a", "b"]), (3.5, 2.0))
        self.assertEqual(self.ratio(["a"]), (5.5, 2.0))
        self.assertEqual(self.ratio(["b", "nobody"]), (4.0, 3.0))

    def test_summary_uses_median_of_rounds(self):
        self.assertEqual(self.ratio(["a", "b"], 1 << 20, 1 << 30), (2.0, 2.0))

    def test_no_ratio_without_sizes_or_others(self):
        self.assertIsNone(self.ratio(["nobody"]))
        self.assertIsNone(self.ratio(["a"], 1 << 20, 1 << 30))
        self.assertIsNone(report.class_ratio({"a": {4: [1.0]}}, "ours", ["a"], 0, 4096))

    def test_summary_table_is_formatted(self):
        self.assertEqual(
            report.summary_table({TWO: self.results}, ["ours", "ours too"],
                                 {"best": ["a", "b"], "a": ["a"]}),
            "| setting | size | other / ours | best | a |\n| --- | --- | --- | ---: | ---: |\n"
            "| one host, 2 peers | up to 4 KiB | ours | 3.50 (2.00) | 5.50 (2.00) |\n"
            "| one host, 2 peers | 16 MiB and more | ours | 2.00 (2.00) | - |\n")


class Text(unittest.TestCase):
    results = {"ours": {4: [0.001, 0.002]}, "a": {4: [0.002, 0.008]}, "b": {}}

    def test_times_table_is_formatted(self):
        self.assertEqual(report.times_table(self.results),
                         "| ms | ours | a | b |\n| --- | ---: | ---: | ---: |\n"
                         "| 4 B | 1.50 | 5.00 | - |\n")

    def test_ratio_table_is_formatted(self):
        self.assertEqual(report.ratio_table(self.results, ["ours"]),
                         "| size | other / ours | a | b |\n| --- | --- | ---: | ---: |\n"
                         "| 4 B | ours | 3.00 (2.00-4.00) | - |\n")

    def test_no_ratio_table_without_ours(self):
        self.assertEqual(report.ratio_table({"a": {4: [1]}}, ["ours"]), "")

    def test_equal_notes_share_a_line(self):
        lines = report.note_lines([(TWO, "a"), (base.Setting(1, 4), "a"), (TWO, "b"), (TWO, "b")])
        self.assertEqual(lines, "- a (one host, 2 peers; one host, 4 peers)\n"
                                "- b (one host, 2 peers, 2 times)\n")

    def test_section_has_all_parts(self):
        facts = {"date": "D", "machine": "M", "commit": "C", "command": "X", "rounds": 2,
                 "streams": 4, "took": "9 min", "plot": "p.svg"}
        text = report.section({TWO: self.results}, ["ours"], {"best": ["a"]},
                              [(TWO, "left out: c: gone")], facts)
        for part in ("## All-reduce beside others, D", "Machine: M", "commit C",
                     "`X`", "9 min", "(p.svg)",
                     "| one host, 2 peers | up to 4 KiB | ours | 3.00 (3.00) |",
                     "### One host, 2 peers", "3.00 (2.00-4.00)",
                     "- left out: c: gone"):
            self.assertIn(part, text)


class Replacement(unittest.TestCase):
    def test_section_is_appended_when_missing(self):
        self.assertEqual(report.replaced("# R\n", "new\n"),
                         f"# R\n\n{report.BEGIN}\nnew\n{report.END}\n")

    def test_text_around_section_stays(self):
        text = f"before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n"
        once = report.replaced(text, "new")
        self.assertEqual(once, text.replace("old", "new"))
        self.assertEqual(report.replaced(once, "new"), once)

    def test_missing_end_marker_is_an_error(self):
        with self.assertRaises(ValueError):
            report.replaced(f"{report.BEGIN}\nold\n", "new")


if __name__ == "__main__":
    done = unittest.main(exit=False, verbosity=2).result
    bad = len(done.failures) + len(done.errors)
    print(f"{done.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad or not done.testsRun else 0)
