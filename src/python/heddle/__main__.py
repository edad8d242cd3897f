"""The program heddle, which the wheel carries."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Runs the program with this process's arguments, in this process's place."""
    program = Path(__file__).parent / "bin" / "heddle"
    if not program.exists():
        sys.exit(f"heddle: {program} is missing: this is not an installed package; build/heddle is the program")
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
