"""lock_requirements.py  Writes the hashes into scripts/requirements/*.txt, for each Python that `make setup` accepts.

Edit the lines NAME==VERSION and run this with a Python that has pip and a network. A wheel that is missing for one of
the Pythons is an error, and leaves the files alone.
"""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent / "requirements"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# Debian 12 has glibc 2.36.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(5, 37)]
PLATFORMS += ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "linux_x86_64"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels_of(pins: list[str], folder: pathlib.Path) -> dict[str, set[str]]:
    """The hashes of the wheels of each pin, by normal name, for all Pythons."""
    (folder / "pins.txt").write_text("\n".join(pins))
    for python in PYTHONS:
        print(f"wheels for Python {python}", flush=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--ignore-requires-python"]
        command += ["--implementation", "cp", "--python-version", python]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        subprocess.run(command + ["-d", str(folder), "-r", str(folder / "pins.txt")], check=True)
    hashes: dict[str, set[str]] = {}
    for wheel in folder.glob("*.whl"):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        hashes.setdefault(normal(wheel.name.split("-")[0]), set()).add(digest)
    return hashes


def main() -> None:
    texts = {path: re.sub(r" \\\n +--hash=\S+", "", path.read_text()) for path in sorted(FOLDER.glob("*.txt"))}
    pin = re.compile(r"^([\w.-]+)==\S+$", re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        pins = [match.group() for text in texts.values() for match in pin.finditer(text)]
        hashes = wheels_of(pins, pathlib.Path(folder))

    def locked(match: re.Match) -> str:
        lines = [match.group(), *(f"    --hash=sha256:{digest}" for digest in sorted(hashes[normal(match.group(1))]))]
        return " \\\n".join(lines)

    for path, text in texts.items():
        path.write_text(pin.sub(locked, text))


main()
