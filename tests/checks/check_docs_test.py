"""Each check of the documentation finds what it is there for, and accepts a sound page."""

import tempfile
import unittest
from pathlib import Path

import check_docs

SOUND = """# A page
Start the server, then send it a request:
- If a device fails, its work moves. See [the table](#a-table) and [here](other.md#second-part).
- It reads `a file that may be very long and has many more words than twenty-five in it, as code often does, so it
  counts as one`.

```
Where the door is, whoever judges it is told, and this sentence has more than twenty-five words, which code may have, as
it is no prose at all.
```

    Where the indented door is, whoever judges it is told

| a table | `where` |
|---|---|
| the place where a tensor lies is the device from where it came | ~~~ |
"""


class CheckDocs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.put("docs/page.md", SOUND + "\n## A table\n")
        self.put("docs/other.md", "# Other\n## Second `part`\n")
        pages = ["index.md", "Page: page.md", "other.md", "changelog.md", "security.md"]
        self.put("mkdocs.yml", "nav:\n" + "".join(f"  - {page}\n" for page in pages))

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def problems(self, check):
        return check_docs.CHECKS[check](self.root)

    def assert_one(self, text, place, part):
        self.put("docs/other.md", "# Other\n## Second part\n" + text)
        problems = self.problems("prose")
        self.assertEqual(len(problems), 1, problems)
        self.assertTrue(problems[0].startswith(place), problems)
        self.assertIn(part, problems[0])

    def test_a_sound_page_passes(self):
        for check in check_docs.CHECKS:
            self.assertEqual(self.problems(check), [], check)

    def test_a_long_sentence_is_found_at_its_first_line(self):
        words = "word " * 14
        self.assert_one(f"Short one.\nShort two. This has\n{words}\n{words}.\n", "docs/other.md:4:", "30 words")

    def test_banned_words_are_found(self):
        for text in ["The door is open.", "The server is told.", "Workers of before do not work.", "It judges plans."]:
            self.assert_one(text, "docs/other.md:3:", "banned word")

    def test_where_for_a_condition_is_found(self):
        for text in ["Where it fails, stop.", "It stops where there is none.", "| `a` | where it fits |"]:
            self.assert_one(text, "docs/other.md:3:", "'where'")

    def test_a_clause_as_a_subject_is_found(self):
        for text in ["What is read stays.", "Whoever starts it waits.", "- Who kills it waits."]:
            self.assert_one(text, "docs/other.md:3:", "starts with a clause")
        self.assert_one("The time of one that waits counts.", "docs/other.md:3:", "in place of a noun")

    def test_research_notes_are_left_out(self):
        self.put("docs/decisions/0001.md", "Where the door is.\n")
        self.assertEqual(self.problems("prose"), [])

    def test_proselint_is_asked(self):
        self.put("docs/other.md", "# Other\n## Second part\nA fine page.\nIt is very very unique.\n")
        self.assertTrue(any(p.startswith("docs/other.md:4: ") for p in self.problems("proselint")))

    def test_dead_links_are_found(self):
        links = "[a](gone.md) [b](#gone) [c](page.md#gone) [d](page.md#a-table) `[e](gone.md)` `src/gone.cc` `src/*.md`"
        self.put("docs/other.md", f"# Other\n{links}\n")
        self.put("docs/page.md", "# Page\n## A table\n")
        self.assertEqual(
            self.problems("links"),
            [
                "docs/other.md:2: there is no src/gone.cc",
                "docs/other.md:2: there is no src/*.md",
                "docs/other.md:2: there is no gone.md",
                "docs/other.md:2: #gone: there is no such heading",
                "docs/other.md:2: page.md#gone: there is no such heading",
            ],
        )

    def test_a_page_without_its_place_on_the_site_is_found(self):
        self.put("docs/new.md", "# New\n")
        (self.root / "docs/other.md").unlink()
        self.assertEqual(
            self.problems("nav"), ["mkdocs.yml has no place for docs/new.md", "mkdocs.yml: there is no docs/other.md"]
        )


if __name__ == "__main__":
    unittest.main()
