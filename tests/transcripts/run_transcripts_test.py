"""The comparison of transcripts finds what is stale, and nothing else."""

import unittest

from run_transcripts import PROGRESS, blocks_of, mismatch, steps_of


class Transcripts(unittest.TestCase):
    def test_words_and_figures_are_exact_without_a_note(self) -> None:
        self.assertEqual(mismatch(["a  1 ms"], ["a 1 ms"], ""), "")
        self.assertIn("2 ms", mismatch(["a 1 ms"], ["a 2 ms"], ""))
        self.assertIn("missing", mismatch(["a", "b"], ["a"], ""))
        self.assertIn("not on the page", mismatch(["a"], ["a", "b"], ""))

    def test_a_tolerance_holds_for_figures_and_not_for_words(self) -> None:
        self.assertEqual(mismatch(["rate 2,000 req/s"], ["rate 2,080 req/s"], "within 5 %"), "")
        self.assertNotEqual(mismatch(["rate 2,000 req/s"], ["rate 2,200 req/s"], "within 5 %"), "")
        self.assertNotEqual(mismatch(["rate 100 req/s"], ["speed 100 req/s"], "within 5 %"), "")

    def test_a_search_may_find_another_plan_of_the_same_value(self) -> None:
        page = ["on a busy machine: 1,034 req/s if fast runs at half its speed", "fast          46  482 us  100 %"]
        other = ["on a busy machine: 1,035 req/s if small runs at half its speed", "fast          11  483 us  100 %"]
        self.assertEqual(mismatch(page, other, "within 5 %"), "")
        other[0] = other[0].replace("1,035", "1,500")
        self.assertIn("1,500", mismatch(page, other, "within 5 %"))

    def test_measured_figures_count_by_shape(self) -> None:
        self.assertEqual(mismatch(["took 3.5 ms"], ["took 980 us"], "measured"), "")
        self.assertNotEqual(mismatch(["took 3.5 ms"], ["needs 980 us"], "measured"), "")

    def test_lines_of_progress_are_left_out(self) -> None:
        lines = [
            "2026-01-02T03:04:05.678Z info measuring net.b on cpu0-1  1.2 s",
            "searching  3/10 (30 %)  2.5 s  best 4 ms",
            "2026-01-02T03:04:05.678Z info serves net",
            "cpu0-1  2.5 s",
        ]
        self.assertEqual(PROGRESS.sub("", "\n".join(lines) + "\n").splitlines(), lines[2:])

    def test_dots_stand_for_lines_and_for_the_rest_of_one(self) -> None:
        self.assertEqual(mismatch(["a", "...", "d"], ["a", "b", "c", "d"], ""), "")
        self.assertEqual(mismatch(["planned in ..."], ["planned in 3 ms"], ""), "")
        self.assertIn("missing", mismatch(["...", "e"], ["a"], ""))

    def test_a_command_goes_on_behind_a_backslash_and_in_quotes(self) -> None:
        text = "<!-- transcript: measured -->\n```\n$ a \\\n  b\nout\n$ c 'd\ne'\n```\n"
        (block,) = blocks_of(text)
        self.assertEqual(block.how, "measured")
        self.assertEqual([step.command for step in steps_of(block)], ["a \\\n  b", "c 'd\ne'"])
        self.assertEqual(steps_of(block)[0].expected, ["out"])


if __name__ == "__main__":
    unittest.main()
