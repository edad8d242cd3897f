"""One table from what gpu_check.sh has measured. Usage: gpu_summary.py WARM.json COLD.json TORCH.json

WARM and COLD are files of `heddle run -o`, TORCH is torch_baseline.py's line; a file that is not there leaves its rows
out. The time of copying first and then running is the sum of the measured loads, one after the other as one link has
them, and of the warm request; both are medians of the same session.
"""

import json
import sys
from pathlib import Path


def read(path: str) -> dict | None:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None


def milliseconds(us: float | None) -> str:
    return "-" if us is None else f"{us / 1000:.3g} ms"


def loads_us(run: dict) -> float:
    """The medians of the steps that load parameters."""
    return sum(
        measured[2]
        for step, measured in zip(run["plan"]["plan"]["steps"], run["run"]["steps"])
        if "load" in step
    )


def rows(warm: dict | None, cold: dict | None, torch: dict | None) -> list[tuple[str, str, str]]:
    table = []
    for name, run in (("warm request", warm), ("cold start, overlapped", cold)):
        if run:
            record = run["run"]
            error = record["measured_us"] / record["predicted_us"] - 1 if record["predicted_us"] > 0 else 0
            equal = "equal" if record["outputs_equal"] else "NOT EQUAL" if record["verified"] else "not compared"
            table.append((name, milliseconds(record["measured_us"]),
                          f"predicted {milliseconds(record['predicted_us'])}, error {error:+.1%}; outputs {equal}"))
    if warm and cold:
        first = loads_us(cold) + warm["run"]["measured_us"]
        table.append(("cold start, copy, then run", milliseconds(first),
                      f"overlapping takes {cold['run']['measured_us'] / first:.2f} of it"))
    if torch:
        table.append(("PyTorch, eager", milliseconds(torch["eager_us"]), f"torch {torch['torch']}"))
        table.append(("PyTorch, one CUDA graph", milliseconds(torch["graph_us"]), ""))
    return table


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    table = rows(*(read(path) for path in sys.argv[1:]))
    print("| what | median | |\n|---|---|---|")
    for row in table:
        print("| " + " | ".join(row) + " |")
    return 0 if table else 1


if __name__ == "__main__":
    sys.exit(main())
