"""MkDocs hook: README, CHANGELOG and SECURITY are pages, and links that leave docs/ lead to the repository."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}


def on_files(files, config):
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        for other, file in PAGES.items():
            text = text.replace(f"]({file})", f"]({other})")
        files.append(File.generated(config, page, content=text))
    return files


def as_python_markdown(markdown):
    """What Markdown in Python needs and GitHub's does not: a blank line above a list, four blanks inside entries."""
    lines: list[str] = []
    fenced = listed = inner = False  # inner: in a further paragraph of an entry
    for line in markdown.splitlines():
        fenced ^= line.lstrip().startswith("```")
        item = not fenced and re.match(r"(?:[-*+]|\d+\.) ", line)
        if item and (inner or not listed) and lines and lines[-1].strip():
            lines.append("")
        if item:
            listed, inner = True, False
        elif line.strip() and not line.startswith("  "):
            listed = False
        elif listed:
            inner |= not line.strip()
            line = re.sub(r"^ {2,3}(?=\S)", "    ", line)
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown, page, config, files):
    """A site has no sources: such a link becomes the file's name."""
    outside = r"\[([^\]]*)\]\(\.\./[^)]*\)"
    if page.file.src_uri in PAGES:
        outside = r"\[([^\]]*)\]\((?:LICENSE|NOTICE|(?:measurements|decisions)/?)\)"
    if "/" not in page.file.src_uri:
        markdown = re.sub(outside, r"\1", markdown)
    return as_python_markdown(markdown)
