"""Checks of README, CHANGELOG, SECURITY, docs. Usage: check_docs.py ROOT CHECK; exit status 1 when something is wrong.

prose      sentences of at most 25 words, no banned word, "if" for conditions, nouns as subjects
proselint  the rules of proselint, but for those in PROSELINT_OFF
links      each relative link leads to a file, each anchor to a heading, each path in `` to a file of the checkout
nav        each page of docs is in mkdocs.yml once
"""

import itertools
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

MAX_WORDS = 25
# Rules of proselint that are off: these files are ASCII, and "multiply-add" has its hyphen.
PROSELINT_OFF = ["typography", "misc.phrasal_adjectives.ly"]
# Research notes keep the words of the day on which they were written.
EXEMPT_FOLDERS = ["docs/measurements", "docs/decisions"]

# Private metaphors and phrases of STYLE.md's list and table.
BANNED = [
    r"doors?",
    r"judge[sd]?",
    r"boards?",
    r"fates?",
    r"told",
    r"of (?:before|now)",
    r"busy all the time",
    r"given up as",
    r"only so much",
    r"of no rule",
    r"least rate over weight",
    r"the one that is called",
]
# "where" is for places. After these words it can be one.
PLACES = r"from|is|to|place|places|point|points|position|folder|line|lines|column|say|says|show|shows|know|knows|see"
NO_PLACE = "".join(rf"(?<!{word} )" for word in PLACES.split("|"))
RULES = [
    (re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.IGNORECASE), "a banned word; use the field's term"),
    (
        re.compile(r"^[Ww]here\b(?!.*\?$)|(?<!^)" + NO_PLACE + r"\bwhere\b(?! and when)"),
        "'where' is for places; write 'if' or 'when' for a condition",
    ),
    (
        re.compile(r"^(?:What|Who|Whoever|Whatever|Whichever)\b(?!.*\?$)"),
        "a sentence that starts with a clause; start with a noun or an imperative",
    ),
    (
        re.compile(r"\b(?:of (?:one|those|that|what|ones) (?:that|which|who)|that which|(?:by|for) who(?:ever)?)\b"),
        "a clause in place of a noun; name the thing",
    ),
]


class Sentence(NamedTuple):
    line: int
    text: str


def headings_of(text: str) -> Iterator[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    seen: dict[str, int] = {}
    fenced = False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        match = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if fenced or not match:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield anchor if count == 0 else f"{anchor}-{count}"


def plain(text: str) -> str:
    """Markdown's marks taken out; a span of code is one word. The length of the text changes, its lines do not."""
    spans = itertools.count(1)
    text = re.sub(r"`[^`]+`", lambda m: f"Code{next(spans)}" + "\n" * m[0].count("\n"), text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>\n]*>", "", text)
    return re.sub(r"\*+|(?<!\w)_|_(?!\w)", "", text)


def sentences_of(block: str, first_line: int) -> Iterator[Sentence]:
    text = plain(block)
    start = 0

    def sentence(piece: str) -> Sentence:
        before = start + len(piece) - len(piece.lstrip())
        return Sentence(first_line + text.count("\n", 0, before), " ".join(piece.split()))

    # Not after a capital letter alone, "e.g." or "vs."; a sentence starts with no small letter.
    for match in re.finditer(r"(?<![\s.(][A-Z])(?<!e\.g)(?<!i\.e)(?<!vs)[.!?][)\"']*(?=\s+[^\sa-z]|\s*$)", text):
        yield sentence(text[start : match.end()])
        start = match.end()
    if text[start:].strip():
        yield sentence(text[start:])


def blocks_of(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, entries of lists and cells of tables, with their first line; no code, no headings."""
    block: list[str] = []
    first = 0
    fence = None
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = re.match(r"\s*(```|~~~)", line)
        if fence:
            fence = None if mark and mark[1] == fence else fence
            continue
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+|\s*>\s?", line)
        ends = mark or item or not line.strip() or re.match(r"\s*(#{1,6}\s|\||---|!!!|===|\?\?\?)", line)
        if ends and block:
            yield first, "\n".join(block)
            block = []
        if mark:
            fence = mark[1]
        elif re.match(r"\s*\|", line):
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                # In cells, semicolons end sentences.
                yield from ((number, part) for part in plain(cell).split("; ") if part.strip(" -:"))
        elif not block and not item and line.startswith("    "):
            continue  # indented code
        elif item or not ends:
            if not block:
                first = number
            block.append(line[item.end() :] if item else line)


def pages(root: Path) -> list[Path]:
    return [root / "README.md", root / "CHANGELOG.md", root / "SECURITY.md", *sorted((root / "docs").rglob("*.md"))]


def prose_problems(text: str) -> list[tuple[int, str]]:
    problems = []
    for first_line, block in blocks_of(text):
        for sentence in sentences_of(block, first_line):
            start = " ".join(sentence.text.split()[:6])
            words = [word for word in sentence.text.split() if re.search(r"\w", word)]
            if len(words) > MAX_WORDS:
                problems.append((sentence.line, f"{len(words)} words, at most {MAX_WORDS}: '{start} ...'"))
            for pattern, rule in RULES:
                match = pattern.search(sentence.text)
                if match:
                    problems.append((sentence.line, f"'{match[0]}': {rule}: '{start} ...'"))
    return problems


def check_prose(root: Path) -> list[str]:
    problems = []
    for page in prose_pages(root):
        name = page.relative_to(root).as_posix()
        found = prose_problems(page.read_text(encoding="utf-8"))
        problems += [f"{name}:{line}: {problem}" for line, problem in found]
    return problems


def prose_pages(root: Path) -> Iterator[Path]:
    for page in pages(root):
        name = page.relative_to(root).as_posix()
        if page.exists() and not any(name.startswith(folder + "/") for folder in EXEMPT_FOLDERS):
            yield page


def check_proselint(root: Path) -> list[str]:
    from proselint.checks import __register__ as rules
    from proselint.config import DEFAULT
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    if not CheckRegistry().checks:
        CheckRegistry().register_many(rules)
    # The first prefix that fits a rule decides.
    checks = {check: False for check in PROSELINT_OFF}
    config = {**DEFAULT, "checks": {**checks, **{k: v for k, v in DEFAULT["checks"].items() if k not in checks}}}
    problems = []
    for page in prose_pages(root):
        name = page.relative_to(root).as_posix()
        for line, block in blocks_of(page.read_text(encoding="utf-8")):
            for found in LintFile(name, plain(block) + "\n").lint(config):
                result = found.check_result
                problems.append(f"{name}:{line + found.pos[0] - 1}: {result.check_path}: {result.message}")
    return problems


def check_nav(root: Path) -> list[str]:
    listed = re.findall(r"([\w/.-]+\.md)\s*$", (root / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    made = {"index.md", "changelog.md", "security.md"}  # scripts/site_pages.py
    there = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")} | made
    problems = [f"mkdocs.yml has no place for docs/{page}" for page in sorted(there - set(listed))]
    problems += [f"mkdocs.yml: there is no docs/{page}" for page in sorted(set(listed) - there)]
    return problems + [f"mkdocs.yml has docs/{p} twice" for p in sorted(set(listed)) if listed.count(p) > 1]


def check_links(root: Path) -> list[str]:
    problems = []
    for page in pages(root):
        if not page.exists():
            continue
        fence = None
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            mark = re.match(r"\s*(```|~~~)", line)
            if mark:
                fence = None if fence == mark[1] else fence or mark[1]
            if fence:
                continue
            place = f"{page.relative_to(root).as_posix()}:{number}"
            for name in re.findall(r"`((?:src|tests|scripts|examples|cmake)/[\w./*-]+)`", line):
                if not any(root.glob(name)):
                    problems.append(f"{place}: there is no {name}")
            for target in re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = (page.parent / file) if file else page
                if not path.exists():
                    problems.append(f"{place}: there is no {target}")
                elif anchor and path.suffix == ".md" and anchor not in headings_of(path.read_text(encoding="utf-8")):
                    problems.append(f"{place}: {target}: there is no such heading")
    return problems


CHECKS = {"prose": check_prose, "proselint": check_proselint, "links": check_links, "nav": check_nav}


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
