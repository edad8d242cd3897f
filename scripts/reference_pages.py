"""reference_pages.py BUILD [--check]  Writes the reference pages that follow from the sources.

docs/python-api.md follows from the Python module's stub, docs/headers.md from each public header's first comment,
docs/errors.md from the messages that the tests expect, docs/flags.md from the program's help. BUILD is a build folder.
With --check it writes nothing; exit status 1 if a page is stale.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 100
# What each library is for; docs/architecture.md has the whole picture.
FOLDERS = {
    "session": "the pipeline: load, measure, plan, replan, grade",
    "planners": "planners and their portfolio",
    "plan": "problems, plans, evaluator, checker, plan files",
    "fleet": "fleets, their plans, the data plane and the simulator",
    "serve": "servers, workers and load",
    "runtime": "compiles and runs plans",
    "deploy": "fleets and plans as files of Kubernetes, Slurm, Ray and systemd",
    "report": "explanations, timelines, tables",
    "graph": "models and graphs",
    "cluster": "hardware",
    "cost": "times and the profile store",
    "solve": "exact solvers",
    "bench": "benchmarks",
    "base": "results, units, files, threads",
}


def one_line(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def signature(node: ast.FunctionDef, name: str) -> str:
    node.args.args = [a for a in node.args.args if a.arg not in ("self", "cls")]
    arguments = [ast.unparse(node.args)] if node.args else []
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    parts = re.split(r", (?=\*?\w+(?::|, |$))", arguments[0])
    return f"{name}(\n    " + ",\n    ".join(parts) + f",\n){returns}"


def python_class(node: ast.ClassDef) -> str:
    out = [f"## {node.name}\n"]
    base = ast.unparse(node.bases[0]) if node.bases else ""
    if base:
        out.append(f"A `{base}`. " + (ast.get_docstring(node) or "") + "\n")
    elif doc := ast.get_docstring(node):
        out.append(doc + "\n")
    values, properties, calls = [], [], []
    for i, item in enumerate(node.body):
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            after = node.body[i + 1] if i + 1 < len(node.body) else None
            doc = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            values.append(f"| `{item.targets[0].id}` | `{ast.unparse(item.value)}` | {one_line(str(doc))} |")
        elif isinstance(item, ast.FunctionDef):
            kinds = [ast.unparse(d) for d in item.decorator_list]
            doc = ast.get_docstring(item) or ""
            if "property" in kinds:
                kind = one_line(ast.unparse(item.returns)) if item.returns else ""
                properties.append(f"| `{item.name}` | `{kind}` | {one_line(doc)} |")
            elif item.name == "__init__" and not doc and not item.args.kwonlyargs and len(item.args.args) < 2:
                continue
            elif item.name == "__init__" or not item.name.startswith("_"):
                name = node.name if item.name == "__init__" else f"{node.name}.{item.name}"
                calls.append(f"```python\n{signature(item, name)}\n```\n{doc}\n".rstrip() + "\n")
    if values:
        out += ["| value | text | meaning |\n|---|---|---|\n" + "\n".join(values) + "\n"]
    if properties:
        out += ["| property | type | meaning |\n|---|---|---|\n" + "\n".join(properties) + "\n"]
    return "\n".join(out + calls)


def python_page(stub: Path) -> str:
    nodes = ast.parse(stub.read_text()).body
    out = [
        "# Python reference\n",
        "Every class and function of the package `heddle`, from its stubs. [Python](python.md) is the introduction.\n"
        "Times are in us, sizes in bytes, rates per second.\n",
        "## Functions\n",
    ]
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            out.append(f"```python\n{signature(node, 'heddle.' + node.name)}\n```\n{ast.get_docstring(node) or ''}\n")
    out += [python_class(node) for node in nodes if isinstance(node, ast.ClassDef)]
    return "\n".join(out)


def first_comment(header: Path) -> str:
    lines = []
    for line in header.read_text().splitlines():
        if not line.startswith("//") or line == "//":
            break
        lines.append(line.removeprefix("//").strip())
    comment = one_line(" ".join(lines)).replace("<", "&lt;")
    return re.split(r"(?<=[.:])\s(?=[A-Z])", comment)[0].rstrip(":")


def headers_page() -> str:
    out = [
        "# C++ headers\n",
        "The public headers of the libraries, with the first sentence of each. The header itself has shapes, units,\n"
        "errors and costs. [Heddle as a C++ library](library.md) is the introduction.\n",
    ]
    for folder, purpose in FOLDERS.items():
        out.append(f"## {folder}\n\n{purpose[0].upper()}{purpose[1:]}.\n\n| header | |\n|---|---|")
        for header in sorted((ROOT / "src" / folder / "include/heddle" / folder).glob("*.h")):
            out.append(f"| `heddle/{folder}/{header.name}` | {first_comment(header)} |")
        out.append("")
    return "\n".join(out)


def errors_page() -> str:
    # Each case is {"Name", {"argument", ...}, "message ..."}.
    text = (ROOT / "tests/cli/usage_mistakes.inc").read_text()
    cases = [case.split("},\n", 1) for case in re.split(r'^\{"\w+", \{', text, flags=re.MULTILINE)[1:]]
    out = [
        "# Error index\n",
        "Every error names the file or flag, the value, and what to do. The tests hold these messages word for word;\n"
        "yours has your files and values instead. [Troubleshooting](troubleshooting.md) starts from symptoms.\n",
        "| exit status | meaning |\n|---|---|",
        "| 0 | done |",
        "| 1 | a check failed: outputs differ, a plan is not valid, a budget or share is not reached |",
        "| 2 | a wrong flag or wrong input |",
        "| 3 | a bug in Heddle: please report it |",
        "| 130 | interrupted before there was a result |\n",
        "| command | message |\n|---|---|",
    ]

    def strings(code: str) -> list[str]:
        return [ast.literal_eval(found) for found in re.findall(r'"(?:[^"\\]|\\.)*"', code)]

    rows = set()
    for arguments, message in cases:
        lines = "".join(strings(message)).strip().splitlines()
        text = " ".join(line.strip() for line in lines if not line.startswith("See `"))
        command = "heddle " + " ".join(argument.removeprefix("/") or "''" for argument in strings(arguments))
        cells = [cell.replace("|", "\\|") for cell in (command.strip(), re.sub(r"^heddle[\w ]*: ", "", text))]
        rows.add("| " + " | ".join(f"`` {cell} ``" if "`" in cell else f"`{cell}`" for cell in cells) + " |")
    return "\n".join(out + sorted(rows)) + "\n"


def flags_page(program: Path) -> str:
    def help_of(*verb: str, flag: str = "--help-all") -> str:
        command = [program, *verb, flag, "--color", "never"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return text.replace(str(program), "heddle").rstrip()

    def verbs_in(text: str) -> list[str]:
        return re.findall(r"^  ([a-z]+)  ", text.partition("Subcommands:")[2], re.MULTILINE)

    out = [
        "# Flags\n",
        "Every verb with all its flags, as `heddle VERB --help-all` prints them. `heddle VERB --help` hides\n"
        "research flags. [The command line](cli.md) introduces the verbs.\n",
    ]
    for verb in verbs_in(help_of(flag="--help")):
        text = help_of(verb)
        out.append(f"## {verb}\n\n```\n{text}\n```\n")
        parts = verbs_in(help_of(verb, flag="--help"))
        out += [f"### {verb} {part}\n\n```\n{help_of(verb, part)}\n```\n" for part in parts]
    return "\n".join(out)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: reference_pages.py BUILD [--check]", file=sys.stderr)
        return 2
    build = Path(sys.argv[1]).resolve()
    pages = {
        "python-api.md": python_page(build / "python/heddle/_core.pyi"),
        "headers.md": headers_page(),
        "errors.md": errors_page(),
        "flags.md": flags_page(build / "heddle"),
    }
    stale = 0
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if path.exists() and path.read_text() == text:
            continue
        stale = 1
        if "--check" in sys.argv:
            print(f"docs/{name} is stale: scripts/reference_pages.py build writes it anew")
        else:
            path.write_text(text)
    return stale if "--check" in sys.argv else 0


sys.exit(main())
