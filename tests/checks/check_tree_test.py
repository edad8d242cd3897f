"""Each check finds what it is there for, and accepts a sound tree."""

import tempfile
import unittest
from pathlib import Path

import check_tree


class CheckTree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.put("docs/architecture.md", "| `base` | errors |\n| `plan` | plans |\n")
        self.put("src/base/a.cc", '#include "heddle/base/a.h"\n')
        self.put("src/base/include/heddle/base/a.h", "\n")
        self.put("src/plan/p.cc", '#include "heddle/base/a.h"\n#include <vector>\n#include "own.h"\n')

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def problems(self, check):
        return check_tree.CHECKS[check](self.root)

    def test_a_sound_tree_passes(self):
        for check in ["includes", "sizes", "folder_map", "rooms", "arrows", "public", "words"]:
            self.assertEqual(self.problems(check), [], check)

    def test_an_upward_include_is_found(self):
        self.put("src/base/b.h", '#pragma once\n#  include "heddle/plan/plan.h"\n')
        self.assertEqual(self.problems("includes"), ["src/base/b.h:2: 'base' includes 'plan', which stands above it"])

    def test_an_include_around_the_public_headers_is_found(self):
        self.put("src/plan/b.cc", '#include "../base/secret.h"\n')
        self.assertEqual(len(self.problems("includes")), 1)

    def test_an_unknown_folder_is_found(self):
        self.put("src/misc/b.cc", "\n")
        self.assertEqual(len(self.problems("includes")), 1)
        self.assertEqual(self.problems("folder_map"), ["docs/architecture.md has no row for src/misc"])

    def test_a_row_without_its_folder_is_found(self):
        self.put("docs/architecture.md", "| `base` | x |\n| `plan` | x |\n| `gone` | x |\n| `plan` | again |\n")
        self.assertEqual(len(self.problems("folder_map")), 2)

    def test_a_room_without_its_row_is_found(self):
        self.put("src/plan/io/read.cc", "\n")
        self.assertEqual(self.problems("folder_map"), ["docs/architecture.md has no row for src/plan/io"])

    def test_a_crowded_room_is_found(self):
        for number in range(41):
            self.put(f"src/plan/io/part_{number}.cc", "\n")
        self.assertEqual(self.problems("rooms"), ["src/plan/io: 41 files, at most 40; divide it"])

    def test_rooms_that_include_each_other_are_found(self):
        self.put("src/plan/io/read.cc", '#include "timing/clock.h"\n')
        self.put("src/plan/timing/clock.h", "\n")
        self.assertEqual(self.problems("arrows"), [])
        self.put("src/plan/include/heddle/plan/read.h", "\n")
        self.put("src/plan/timing/clock.cc", '#include "heddle/plan/read.h"\n')
        self.assertEqual(
            self.problems("arrows"),
            [
                "src/plan: io and timing include each other (io/read.cc includes timing/clock.h; "
                "timing/clock.cc includes heddle/plan/read.h)"
            ],
        )

    def test_a_public_header_that_no_other_folder_includes_is_found(self):
        self.put("src/plan/include/heddle/plan/used.h", '#include "heddle/plan/through.h"\n')
        self.put("src/plan/include/heddle/plan/through.h", "\n")
        self.put("src/plan/include/heddle/plan/own.h", "\n")
        self.put("src/fleet/f.cc", '#include "heddle/plan/used.h"\n')
        self.assertEqual(
            self.problems("public"),
            ["src/plan/include/heddle/plan/own.h: no other folder includes it; move it beside its source"],
        )

    def test_a_long_file_and_a_long_line_are_found(self):
        self.put("src/base/long.cc", "int x;\n" * 501)
        self.put("src/base/wide.cc", "//" + "x" * 119 + "\n")
        self.assertEqual(len(self.problems("sizes")), 2)

    def test_a_planner_outside_the_registry_is_found(self):
        self.put("src/planners/core/planners.inc", "PLANNER(heft_planner)\n")
        for name in ["heft", "lost"]:
            self.put(f"src/planners/lists/{name}.cc", f"PlannerEntry {name}_planner() {{\n  return {{}};\n}}\n")
        self.put("src/planners/lists/helper.cc", "int help() { return 1; }\n")
        self.assertEqual(
            self.problems("registry"), ["src/planners/lists/lost.cc: lost_planner is not in core/planners.inc"]
        )

    def test_a_type_that_two_headers_define_is_found(self):
        self.put("src/base/one.h", "namespace heddle {\n\nstruct Part {\n};\n\n}  // namespace heddle\n")
        self.put("src/plan/two.h", "namespace heddle {\n\nclass Part\n    : Base {\n};\n\n}  // namespace heddle\n")
        self.put("src/plan/other.h", "namespace heddle::internal {\n\nclass Part;\nstruct Part {\n};\n")
        self.assertEqual(
            self.problems("types"),
            ["src/plan/two.h:3: heddle::Part is defined at src/base/one.h:3, too; rename one"],
        )

    def test_paths_of_a_machine_are_found(self):
        self.put("docs/a.md", "see /" + "home/someone/file\n")
        self.put("src/base/b.cc", "// TO" + "DO later\n")
        self.put("docs/fine.md", "a framework/homework and work/file and ../shared\n")
        self.assertEqual(len(self.problems("words")), 2)


if __name__ == "__main__":
    unittest.main()
