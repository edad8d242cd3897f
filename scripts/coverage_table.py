"""coverage_table.py  Reads `llvm-cov export -summary-only` and prints a table of the rooms of src, and the files of
which no line has run."""

import collections
import json
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"


def room(file):
    """The folder of a source; a public header belongs to the folder of the same name beside include/."""
    return re.sub(r"^(\w+)/include/heddle/\1", r"\1", str(file.parent))


def main():
    rooms = collections.defaultdict(dict)
    for entry in json.load(sys.stdin)["data"][0]["files"]:
        file = pathlib.Path(entry["filename"])
        if file.is_relative_to(SRC):
            file = file.relative_to(SRC)
            rooms[room(file)][str(file)] = entry["summary"]
    rooms = dict(sorted(rooms.items()))
    everything = {file: summary for files in rooms.values() for file, summary in files.items()}
    print("| room | files | lines | run | branches | taken |\n|---|---|---|---|---|---|")
    for name, files in [*((f"`{name}`", files) for name, files in rooms.items()), ("all", everything)]:
        cells = []
        for what in ("lines", "branches"):
            total = sum(summary[what]["count"] for summary in files.values())
            ran = sum(summary[what]["covered"] for summary in files.values())
            cells += [f"{total:,}", f"{100 * ran / total:.1f} %" if total else "-"]
        print(f"| {name} | {len(files)} | {' | '.join(cells)} |")
    never = sorted(file for file, summary in everything.items() if summary["lines"]["covered"] == 0)
    print("\nFiles of which no line has run: " + (", ".join(f"`{file}`" for file in never) or "none") + ".")


if __name__ == "__main__":
    main()
