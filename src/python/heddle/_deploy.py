"""heddle.deploy(): the verb deploy of the program that belongs to this package."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Literal

from ._errors import (
    CancelledError,
    Error,
    FileError,
    InfeasibleError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
    VerificationError,
)

_KINDS: dict[str, type[Error]] = {
    "invalid input": InvalidInputError,
    "not found": NotFoundError,
    "unsupported": UnsupportedError,
    "infeasible": InfeasibleError,
    "verification failed": VerificationError,
    "cancelled": CancelledError,
    "input/output error": FileError,
}


def program(name: str = "heddle") -> str:
    """The path of the program: the one that the package carries, else `name` as the shell finds it."""
    packaged = pathlib.Path(__file__).parent / "bin" / "heddle"
    if name == "heddle" and packaged.exists():
        return str(packaged)
    found = shutil.which(name)
    if found is None:
        raise NotFoundError(f"the program {name} is neither in the package nor on PATH")
    return found


def deploy(
    what: str | os.PathLike[str],
    *,
    on: Literal["kubernetes", "slurm", "ray", "systemd"],
    output: str | os.PathLike[str] | None = None,
    plan: str | os.PathLike[str] | None = None,
    settings: str | os.PathLike[str] | None = None,
    diff: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Writes a fleet file, or a plan file of one model, as files of an engine that keeps it running (docs/deploy.md).

    `output`: the folder for the files. `plan`: a plan file of the fleet; without it the fleet is planned by auto.
    `settings`: a settings file. `diff`: the folder of an earlier deployment. Either `output` or `diff` is needed.
    Returns what `heddle deploy --json` prints: `workers`, `files`, `notes`, and with `diff` the `changes`.
    """
    command = [program(), "deploy", os.fspath(what), "--on", on, "--json", "-q"]
    for flag, path in (("-o", output), ("--plan", plan), ("--settings", settings), ("--diff", diff)):
        if path is not None:
            command += [flag, os.fspath(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise InternalError(done.stderr.strip()) from None
    if "error" in report:
        raise _KINDS.get(report["error"]["code"], InternalError)(report["error"]["message"])
    return report
