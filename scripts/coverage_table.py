"""coverage_table.py BUILD FOLDER...  Coverage of folders of src by what gcov counted in BUILD: a table of rooms, and
the files of which no line has run."""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def counts(build):
    """{file: {line: runs}} and {file: {(line, branch): runs}}; a line or branch of several objects counts once."""
    lines = collections.defaultdict(collections.Counter)
    branches = collections.defaultdict(collections.Counter)
    for data in sorted(build.rglob("*.gcda")):
        text = subprocess.run(
            ["gcov", "--json-format", "--stdout", "--branch-probabilities", str(data)],
            cwd=build, capture_output=True, check=True, text=True).stdout
        for document in text.splitlines():
            for entry in json.loads(document)["files"]:
                file = (build / entry["file"]).resolve()
                if not file.is_relative_to(ROOT / "src"):
                    continue
                name = str(file.relative_to(ROOT / "src"))
                for line in entry["lines"]:
                    lines[name][line["line_number"]] += line["count"]
                    # A branch that only an exception takes is no decision of the source.
                    plain = [b for b in line["branches"] if not b["throw"]]
                    for i, branch in enumerate(plain if len(plain) > 1 else []):
                        branches[name][line["line_number"], i] += branch["count"]
    return lines, branches


def share(counters):
    total = sum(len(c) for c in counters)
    ran = sum(1 for c in counters for runs in c.values() if runs > 0)
    return f"{100 * ran / total:.1f} %" if total else "-"


def main(build, folders):
    lines, branches = counts(build)
    rooms = collections.defaultdict(list)
    for folder in folders:
        for file in sorted((ROOT / "src" / folder).rglob("*.cc")):
            name = str(file.relative_to(ROOT / "src"))
            rooms[str(pathlib.Path(name).parent)].append(name)
    print("| room | files | lines | run | branches | taken |\n|---|---|---|---|---|---|")
    for room, files in sorted(rooms.items()):
        of_lines, of_branches = [lines[f] for f in files], [branches[f] for f in files]
        print(f"| `{room}` | {len(files)} | {sum(map(len, of_lines)):,} | {share(of_lines)} "
              f"| {sum(map(len, of_branches)):,} | {share(of_branches)} |")
    never = [f for files in rooms.values() for f in files if not any(lines[f].values())]
    print("\nFiles of which no line has run: " + (", ".join(f"`{f}`" for f in never) or "none") + ".")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
