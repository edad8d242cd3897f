"""private_library.py SOURCE TARGET: a copy of a shared library under a name (soname) of its own, TARGET's.

A process has one library of each name: with a name of its own, Heddle's HiGHS is neither taken for the one in a user's
highspy or ortools nor replaced by it. The new name has the old one's length, so nothing else in the file moves.
"""
import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:])
content = source.read_bytes()
old, new = (b"\0" + path.name.encode() + b"\0" for path in (source, target))
if len(old) != len(new) or content.count(old) != 1:
    sys.exit(f"{source}: expected its own name once, as its soname, and {target.name} to be as long; "
             "is this another release of the wheel?")
content = content.replace(old, new)
if not target.exists() or target.read_bytes() != content:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(0o755)
