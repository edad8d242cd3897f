"""Checks of the source tree. Usage: check_tree.py ROOT CHECK; exit status 1 when something is wrong.

includes    a folder of src includes only itself and folders above it in ORDER
sizes       no source file over 500 lines, no line over 120 columns
folder_map  docs/architecture.md has one row for each folder of src, and for each room in it, and no others
rooms       no folder of src has more than 40 files directly inside
arrows      of two rooms of a folder only one includes the other, but for BOTH_WAYS
public      a public header is included by another folder, or by such a header
registry    each planner is in planners/core/planners.inc
mutations   each patch in tests/serve/mutations fits its source
types       no two headers define a type of one name, which would be undefined behaviour in a program with both
words       no paths of one machine, no package registry's host, no unfinished marks
"""

import re
import subprocess
import sys
from pathlib import Path

# DESIGN's layers, lowest first.
ORDER = ["base", "graph", "cluster", "cost", "plan", "solve", "planners"]
ORDER += ["runtime", "fleet", "deploy", "session", "report", "serve", "python", "bench", "command", "cli"]
MAX_LINES = 500
MAX_COLUMNS = 120
MAX_FILES_IN_ROOM = 40
# Two rooms that include each other, and why; an entry that is not needed any more is a problem, too.
BOTH_WAYS = {
    ("planners", "core", "lists"): "the portfolio begins with constructions; lists build on core's flat problem",
    ("planners", "diviml", "lists"): "the planner of modules is a construction and a part of DiviML's splitting",
    ("planners", "diviml", "search"): "DiviML's annealing shares the cooling; lns polishes DiviML's plans",
    ("planners", "hios", "search"): "auto lets HIOS's search of stages work, which builds schedules as the search does",
    ("planners", "lists", "search"): "greedy for throughput shares the search's loads; searches start from lists",
    ("runtime", "executor", "measure"): "the executor maps units to ops as the profiler does; probes use programs",
}
SOURCE_SUFFIXES = {".cc", ".h", ".py", ".sh", ".cmake"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".txt", ".yaml", ".yml", ".json", ".html", ".css", ".js", ""}
# Spelled in parts, so that this file does not find itself.
FORBIDDEN_WORDS = [
    "(?<![\\w.~-])/" + "(?:work/|root/|home/(?!user\\b))",
    "(?<![\\w.])/" + "tmp/",
    "(?:pypi|pythonhosted)" + "\\.org",
    "\\b(?:TO" + "DO|FIX" + "ME|XX" + "X)\\b",
]


def files_of(root: Path, suffixes: set[str], folders: list[str]) -> list[Path]:
    """All files below the folders ('.' is the root's own files), in order; build output is not looked at."""
    found = []
    for folder in folders:
        paths = root.glob("*") if folder == "." else (root / folder).rglob("*")
        found += [p for p in paths if p.is_file() and p.suffix in suffixes and "__pycache__" not in p.parts]
    return sorted(found)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def check_includes(root: Path) -> list[str]:
    problems = []
    for path in files_of(root, {".cc", ".h"}, ["src"]):
        own = path.relative_to(root / "src").parts[0]
        if own not in ORDER:
            problems.append(f"{path.relative_to(root)}: the folder '{own}' is not among the layers {ORDER}")
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if not match:
                continue
            place = f"{path.relative_to(root)}:{number}"
            parts = match[1].split("/")
            if ".." in parts:
                problems.append(f"{place}: '{match[1]}' leaves its folder; use a public header")
            elif parts[0] == "heddle" and len(parts) > 2:
                if parts[1] not in ORDER:
                    problems.append(f"{place}: '{parts[1]}' is no layer")
                elif ORDER.index(parts[1]) > ORDER.index(own):
                    problems.append(f"{place}: '{own}' includes '{parts[1]}', which stands above it")
    return problems


def check_sizes(root: Path) -> list[str]:
    problems = []
    for path in files_of(root, SOURCE_SUFFIXES, ["src", "tests", "bench", "scripts", "cmake"]):
        lines = read(path).splitlines()
        if len(lines) > MAX_LINES:
            problems.append(f"{path.relative_to(root)}: {len(lines)} lines, at most {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                problems.append(f"{path.relative_to(root)}:{number}: {len(line)} columns, at most {MAX_COLUMNS}")
    return problems


def rooms_of(root: Path) -> list[str]:
    """The folders below src that hold sources, but for those of public headers."""
    found = {path.relative_to(root / "src").parent for path in files_of(root, {".cc", ".h"}, ["src"])}
    return sorted(room.as_posix() for room in found if "include" not in room.parts)


def check_folder_map(root: Path) -> list[str]:
    document = root / "docs" / "architecture.md"
    if not document.exists():
        return ["docs/architecture.md is missing; it holds the map of folders"]
    rows = re.findall(r"^\|\s*`([a-z_/]+)`\s*\|", read(document), re.MULTILINE)
    folders = {p.name for p in (root / "src").iterdir() if p.is_dir()} | set(rooms_of(root))
    problems = [f"docs/architecture.md has no row for src/{f}" for f in sorted(folders - set(rows))]
    gone = sorted(set(rows) - folders)
    problems += [f"docs/architecture.md has a row for src/{r}, which does not exist" for r in gone]
    problems += [f"docs/architecture.md has two rows for src/{r}" for r in sorted(set(rows)) if rows.count(r) > 1]
    return problems


def check_rooms(root: Path) -> list[str]:
    counts: dict[Path, int] = {}
    for path in (root / "src").rglob("*"):
        if path.is_file():
            counts[path.parent] = counts.get(path.parent, 0) + 1
    return [
        f"{room.relative_to(root)}: {count} files, at most {MAX_FILES_IN_ROOM}; divide it"
        for room, count in sorted(counts.items())
        if count > MAX_FILES_IN_ROOM
    ]


def room_arrows(folder: Path) -> dict[tuple[str, str], str]:
    """For each room of the folder that includes another: one such place. A public header is its source's room's."""
    files = [(p, p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.suffix in {".cc", ".h"}]
    room_of_source = {p.stem: rel.parent.as_posix() for p, rel in files if p.suffix == ".cc"}
    arrows: dict[tuple[str, str], str] = {}
    for path, rel in files:
        public = "include" in rel.parts
        own = room_of_source.get(path.stem) if public else rel.parent.as_posix()
        for header in re.findall(r'#\s*include "([^"]+)"', read(path)):
            if header.startswith(f"heddle/{folder.name}/"):
                other = room_of_source.get(Path(header).stem)
            elif (path.parent / header).exists() or not (folder / header).exists():
                continue
            else:
                other = Path(header).parent.as_posix()
            if own and other and own != other:
                arrows.setdefault((own, other), f"{rel} includes {header}")
    return arrows


def check_arrows(root: Path) -> list[str]:
    problems = []
    found = set()
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        arrows = room_arrows(folder)
        for (a, b), place in sorted(arrows.items()):
            if a > b or (b, a) not in arrows:
                continue
            found.add((folder.name, a, b))
            if (folder.name, a, b) not in BOTH_WAYS:
                problems.append(f"src/{folder.name}: {a} and {b} include each other ({place}; {arrows[(b, a)]})")
    problems += [
        f"BOTH_WAYS has {entry}, which is not needed any more"
        for entry in sorted(set(BOTH_WAYS) - found)
        if (root / "src" / entry[0]).exists()
    ]
    return problems


def check_public(root: Path) -> list[str]:
    includes = re.compile(r'#\s*include "heddle/([a-z_]+/[a-z0-9_]+\.h)"')
    headers = root.glob("src/*/include/heddle/*/*.h")
    public = {path.as_posix().split("/include/heddle/")[1] for path in headers}
    used: dict[str, set[str]] = {}  # header: by which files
    for path in files_of(root, {".cc", ".h"}, ["src"]):
        for header in includes.findall(read(path)):
            used.setdefault(header, set()).add(path.relative_to(root / "src").as_posix())
    folder = {header: header.split("/")[0] for header in public}
    needed = {h for h in public if any(f.split("/")[0] != folder[h] for f in used.get(h, set()))}
    grown = True
    while grown:
        seen = {f"{folder[header]}/include/heddle/{header}" for header in needed}
        through = {h for h in public - needed if used.get(h, set()) & seen}
        grown = bool(through)
        needed |= through
    return [
        f"src/{folder[h]}/include/heddle/{h}: no other folder includes it; move it beside its source"
        for h in sorted(public - needed)
    ]


def check_registry(root: Path) -> list[str]:
    folder = root / "src" / "planners"
    registry = folder / "core" / "planners.inc"
    if not registry.exists():
        return ["src/planners/core/planners.inc is missing; it is the one list of planners"]
    listed = re.findall(r"^PLANNER\((\w+)\)$", read(registry), re.MULTILINE)
    return [
        f"{path.relative_to(root)}: {name} is not in core/planners.inc"
        for path in sorted(folder.rglob("*.cc"))
        for name in re.findall(r"^PlannerEntry (\w+)\(\)", read(path), re.MULTILINE)
        if name not in listed
    ]


def check_types(root: Path) -> list[str]:
    problems, places = [], {}
    for path in files_of(root, {".h"}, ["src"]):
        inside = []
        for number, line in enumerate(read(path).splitlines(), 1):
            if match := re.match(r"namespace ([\w:]+) \{", line):
                inside.append(match[1])
            elif line.startswith("}  // namespace") and inside:
                inside.pop()
            elif match := re.match(r"(?:struct|class|enum class|enum|union) (\w+)\b(?!::)[^;{]*(?:\{|$)", line):
                name = "::".join([*inside, match[1]])
                place = f"{path.relative_to(root)}:{number}"
                if name in places:
                    problems.append(f"{place}: {name} is defined at {places[name]}, too; rename one")
                places[name] = place
    return problems


def check_words(root: Path) -> list[str]:
    pattern = re.compile("|".join(FORBIDDEN_WORDS))
    problems = []
    for path in files_of(root, TEXT_SUFFIXES, [".", "src", "tests", "bench", "docs", "scripts", "cmake", ".ci"]):
        for number, line in enumerate(read(path).splitlines(), 1):
            match = pattern.search(line)
            if match:
                problems.append(f"{path.relative_to(root)}:{number}: '{match[0]}' does not belong here")
    return problems


def check_mutations(root: Path) -> list[str]:
    """Each deliberate bug for the simulation still fits its source."""
    problems = []
    for path in sorted((root / "tests/serve/mutations").glob("*.patch")):
        tried = subprocess.run(["patch", "-p1", "--dry-run", "--force", "-i", path], cwd=root, capture_output=True,
                               text=True)
        if tried.returncode != 0:
            problems.append(f"{path.relative_to(root)}: {tried.stdout.strip().splitlines()[-1]}")
    return problems


CHECKS = {
    "mutations": check_mutations,
    "includes": check_includes,
    "sizes": check_sizes,
    "folder_map": check_folder_map,
    "rooms": check_rooms,
    "arrows": check_arrows,
    "public": check_public,
    "registry": check_registry,
    "types": check_types,
    "words": check_words,
}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[2] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    problems = CHECKS[sys.argv[2]](Path(sys.argv[1]).resolve())
    for problem in problems:
        print(problem)
    print(f"{sys.argv[2]}: {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
