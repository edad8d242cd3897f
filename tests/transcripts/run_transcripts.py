"""Runs the transcripts of a page and compares what they print. Usage: run_transcripts.py PROGRAM ROOT PAGE [--update]

A transcript is a fenced block with a line "$ COMMAND". The blocks of a page run in order, in one scratch folder that
has the examples and two small models. A comment on the line above the block says how to compare:

(none)                                     every character, but for runs of blanks and dashes
<!-- transcript: within 5 % -->            words alike, each number within the tolerance; without what varies
                                           between searches: planner, stop, seconds, numbers of
                                           segments, the device whose loss is worst
<!-- transcript: measured -->              words alike, numbers and units of time by shape, without what
                                           depends on the plan: rows of devices and steps, like lines, proofs
<!-- transcript: measured, server -->      the same; the command runs until the page ends
<!-- transcript: measured, server ends --> what the server prints when it is interrupted
<!-- transcript: not run: REASON -->       not run, but counted
<!-- file: NAME -->                        no transcript: the block is that file, for the transcripts after it

A line "..." stands for any lines, and "..." at the end of a line for its rest. --update writes what the commands print
into the page, except for blocks with "...".
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

MODELS = ["light_squeezenet.onnx", "light_inception_v1.onnx"]
COMMAND_SECONDS = 400
CORES = 2  # of the machine whose measurements the pages show; devices are named by cores
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# These vary between runs of one search, whatever the tolerance.
SEARCH_WORDS = [
    (r"planner (\S+), [\d.]+ s, [a-z ]+;", r"planner \1;"),
    (r"best plan from .*", "best plan"),
    (r"\d+ segments?\b", "segments"),
    (r"^(\S+ +)\d+( +[\d.]+ [mu]s +\d+ %)$", r"\1N\2"),  # a device's line: its segments
    (r"\bif \S+ runs at half", "if DEVICE runs at half"),  # of two that are as busy, the one that this plan needs more
]
# Notes that a plan has only if something disturbed the measurement, or if the search took more than a second.
PROGRESS = re.compile(
    r"^(?:\S+Z info \w\S*(?: \S+)*|\w[\w ]*)  (?:\d+/\d+ \(\d+ %\)  )?[\d.]+ s(?:  best .*)?\n", re.MULTILINE
)
# These depend on the times that were measured.
MEASURED_WORDS = [
    (r"that of the best single device \(\S+\)|N times as fast as the best single device \(.*\)", "best device"),
    (r"\((?:proven|claimed)[^)]*\)", "(proof)"),
    (r"(?:run )?nN(?:\.\.nN)?(?: \(N ops?\))?", "STEP"),
    (r"cpuN(?:-?N)?", "CPU"),
    (r"N (segment|lane|request|tensor|unit)s?", r"N \1"),
]
# Rows of tables of steps and of devices: a busy machine may get another plan.
PLAN_ROW = re.compile(r"^(?:run|send|load|cpu[\d-]+)\b.*\S {2,}\S|^\(\d+ more steps; ")
DISTURBED = re.compile(r".*measured while other work disturbed the machine.*\n?|  after [\d.]+ s: .*\n?")


@dataclass
class Block:
    line: int  # of the fence, from 1
    how: str
    lines: list[str]
    file: str = ""

    @property
    def elided(self) -> bool:
        return any(line.endswith("...") for line in self.lines)


@dataclass
class Step:
    command: str
    expected: list[str] = field(default_factory=list)


def blocks_of(text: str) -> list[Block]:
    blocks: list[Block] = []
    lines = text.splitlines()
    start = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
            continue
        above = lines[start - 1] if start else ""
        note = re.fullmatch(r"<!-- (transcript|file): (.*) -->", above)
        block = Block(start + 1, "", lines[start + 1 : i])
        if note and note[1] == "file":
            block.file = note[2]
        elif note:
            block.how = note[2]
        if note or any(line.startswith("$ ") for line in block.lines):
            blocks.append(block)
        start = None
    return blocks


def steps_of(block: Block) -> list[Step]:
    steps: list[Step] = []
    open_command = False
    for line in block.lines:
        if line.startswith("$ ") and not open_command:
            steps.append(Step(line[2:]))
        elif open_command:
            steps[-1].command += "\n" + line
        else:
            steps[-1].expected.append(line)
            continue
        command = steps[-1].command
        open_command = command.endswith("\\") or command.count("'") % 2 == 1
    return steps


def shape(line: str, how: str) -> str:
    line = re.sub(r"-{3,}", "---", line)
    if how.startswith(("within", "measured")):
        for pattern, word in SEARCH_WORDS:
            line = re.sub(pattern, word, line)
    if how.startswith("measured"):
        line = re.sub(NUMBER.pattern + r" ?(?:us|ms|s|req/s|/s)\b", "TIME", line)
        line = NUMBER.sub("N", line)
        for pattern, word in MEASURED_WORDS:
            line = re.sub(pattern, word, line)
    return " ".join(line.split())


def close(expected: str, actual: str, how: str) -> bool:
    if expected == actual:
        return True
    tolerance = re.match(r"within (\d+) %", how)
    if not tolerance or NUMBER.sub("N", expected) != NUMBER.sub("N", actual):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(actual))
    values = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    # Small figures, such as the gap in percent, are apart by more of themselves.
    percent = float(tolerance[1])
    return all(abs(a - b) <= max(abs(a) * percent / 100, percent / 2) for a, b in values)


def mismatch(expected: list[str], actual: list[str], how: str) -> str:
    """The first difference, or nothing. Lines of "..." stand for any lines."""
    at = 0
    skipping = False
    if how.startswith("measured"):
        expected, actual = ([line for line in lines if not PLAN_ROW.match(line)] for lines in (expected, actual))
        # The number of like lines depends on the plan.
        expected, actual = (
            [line for line, last in zip(lines, ["", *lines]) if shape(line, how) != shape(last, how)]
            for lines in (expected, actual)
        )
    for line in expected:
        if line.strip() == "...":
            skipping = True
            continue
        rest = line.endswith("...")
        want = shape(line.removesuffix("..."), how)

        def fits(text: str) -> bool:
            got = shape(text, how)
            return close(want, got[: len(want)] if rest else got, how)

        while skipping and at < len(actual) and not fits(actual[at]):
            at += 1
        if at >= len(actual):
            return f"missing: {line}"
        if not fits(actual[at]):
            return f"the page has: {line}\n  the program: {actual[at]}"
        at += 1
        skipping = False
    if not skipping and at < len(actual):
        return f"not on the page: {actual[at]}"
    return ""


class Page:
    def __init__(self, program: Path, root: Path, folder: Path) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        (folder / "bin").mkdir()
        (folder / "bin" / "heddle").symlink_to(program)
        home = folder / "home"
        home.mkdir()
        self.scratch = folder / "work"
        self.scratch.mkdir()
        (self.scratch / "examples").symlink_to(root / "examples")
        (self.scratch / ".venv").symlink_to(root / ".venv")
        import onnx

        light = Path(onnx.__file__).parent / "backend/test/data/light"
        for model in MODELS:
            shutil.copy(light / model, self.scratch)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEDDLE_", "XDG_"))} | {
            "PATH": f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
        }

    def clean(self, output: str) -> list[str]:
        output = PROGRESS.sub("", output)
        output = output.replace(str(self.folder / "home"), "/home/user")
        return [line.rstrip() for line in DISTURBED.sub("", output).splitlines() if line.strip()]

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.scratch, env=self.environment, text=True, timeout=COMMAND_SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        # The progress of long commands goes to the error stream, too.
        return done.stdout + (done.stderr if done.returncode else "")

    def start_server(self, command: str, last_line: str) -> str:
        """What the command prints up to a line like the last that the page shows."""
        assert not self.server, "a page has one server at a time"
        self.server = subprocess.Popen(
            ["bash", "-c", "exec " + command], cwd=self.scratch, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self.server.stdout
        output = ""
        for line in self.server.stdout:
            output += line
            if shape(line, "measured") == shape(last_line, "measured"):
                break
        return output

    def stop_server(self) -> str:
        if not self.server:
            return ""
        self.server.send_signal(signal.SIGINT)
        output, _ = self.server.communicate(timeout=COMMAND_SECONDS)
        self.server = None
        return output


def output_of(page: Page, block: Block, step: Step) -> str:
    if block.how.endswith("server"):
        return page.start_server(step.command, step.expected[-1])
    return page.run(step.command)


def check(page: Page, block: Block) -> tuple[list[str], list[str]]:
    """The problems of a block, and its lines as they would be now."""
    if block.how.endswith("server ends"):
        steps, outputs = [Step("(the end of the server)", block.lines)], [page.stop_server()]
    else:
        steps, outputs = steps_of(block), []
    problems: list[str] = []
    now: list[str] = []
    for i, step in enumerate(steps):
        begin = time.monotonic()
        actual = page.clean(outputs[i] if outputs else output_of(page, block, step))
        expected = [line for line in step.expected if line.strip() and not DISTURBED.fullmatch(line)]
        if problem := mismatch(expected, actual, block.how):
            printed = "\n".join(f"    {line}" for line in actual)
            problems.append(f"{step.command}\n  {problem}\n  all of it:\n{printed}")
        print(f"  {time.monotonic() - begin:5.1f} s  {step.command.splitlines()[0][:100]}", flush=True)
        now += [] if outputs else [f"$ {line}" if n == 0 else line for n, line in enumerate(step.command.split("\n"))]
        now += actual
    return problems, now


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    path = root / sys.argv[3]
    lines = path.read_text(encoding="utf-8").splitlines()
    failed = ran = 0
    not_run = []
    replaced: list[tuple[Block, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        page = Page(program, root, Path(folder))
        try:
            for block in blocks_of("\n".join(lines)):
                if block.file:
                    (page.scratch / block.file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
                    continue
                if block.how.startswith("measured") and os.cpu_count() != CORES:
                    block.how = f"not run: it is of a machine with {CORES} cores"
                if block.how.startswith("not run: "):
                    not_run.append(f"{sys.argv[3]}:{block.line}: {block.how}")
                    continue
                ran += 1
                problems, now = check(page, block)
                failed += bool(problems)
                for problem in problems:
                    print(f"{sys.argv[3]}:{block.line}: {problem}")
                if problems and not block.elided:
                    replaced.append((block, now))
        finally:
            page.stop_server()
    if "--update" in sys.argv:
        for block, now in reversed(replaced):
            lines[block.line : block.line + len(block.lines)] = now
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for reason in not_run:
        print(reason)
    print(f"{sys.argv[3]}: {ran} transcript(s) run, {failed} wrong, {len(not_run)} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
