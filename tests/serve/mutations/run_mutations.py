#!/usr/bin/env python3
"""Measures which deliberate bugs the simulation of the service finds.

    run_mutations.py SCRATCH [--seeds N] [NAME...]

Each *.patch beside this file is a bug. In a copy of the checkout below SCRATCH, the script applies one after the other,
builds the program, runs `heddle doctor --simulate`, and prints a line: the bug, the first seed that fails, and why.
Without NAME it takes all of them. The copy stays, so a second call builds quickly.
"""

import argparse
import filecmp
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


def copy_checkout(to):
    to.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        source, copy = ROOT / name, to / name
        # What did not change is not built again.
        if not source.is_file() or (copy.is_file() and filecmp.cmp(source, copy, shallow=False)):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    link = to / ".venv"
    if not link.exists():
        link.symlink_to((ROOT / ".venv").resolve())


def build(scratch):
    return subprocess.run([scratch / "scripts/build.sh", "release", "heddle"], cwd=scratch,
                          capture_output=True, text=True)


def simulate(scratch, seeds):
    """The first seed that fails and why, or None."""
    run = subprocess.run([scratch / "build/heddle", "doctor", "--simulate", str(seeds), "--json", "--quiet"],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"heddle doctor --simulate: status {run.returncode}: {run.stderr}")
    return json.loads(run.stdout).get("failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=1000)
    args = parser.parse_intermixed_args()
    patches = sorted(HERE.glob("*.patch"))
    known = [p.stem for p in patches]
    for name in args.names:
        if name not in known:
            parser.error(f"no mutation is named {name}; there are {', '.join(known)}")
    scratch = args.scratch.resolve()
    copy_checkout(scratch)
    built = build(scratch)
    if built.returncode != 0:
        sys.exit(f"the unchanged copy does not build:\n{built.stdout[-2000:]}{built.stderr[-2000:]}")
    failed = simulate(scratch, args.seeds)
    if failed:
        sys.exit(f"seed {failed['seed']} of the unchanged copy fails: {failed['why']}")
    print("| bug | found with seed | what the seed shows |\n|---|---|---|", flush=True)
    found = 0
    chosen = [p for p in patches if not args.names or p.stem in args.names]
    for patch in chosen:
        text = patch.read_text()
        subprocess.run(["patch", "-p1", "-s"], input=text, text=True, cwd=scratch, check=True)
        try:
            built = build(scratch)
            if built.returncode != 0:
                sys.exit(f"{patch.name} does not build:\n{built.stdout[-2000:]}")
            failed = simulate(scratch, args.seeds)
        finally:
            subprocess.run(["patch", "-p1", "-s", "-R"], input=text, text=True, cwd=scratch, check=True)
        found += failed is not None
        seed, why = (failed["seed"], failed["why"].replace("|", "/")) if failed else (f"not in {args.seeds:,}", "")
        print(f"| {patch.stem} | {seed} | {why} |", flush=True)
    print(f"\n{found} of {len(chosen)} found")


if __name__ == "__main__":
    main()
