"""MkDocs hook: README.md and CHANGELOG.md are pages of the site, and links that leave docs/ lead to the repository."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}


def on_files(files, config):
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def spaced(markdown):
    """A blank line above each list: Markdown in Python needs it, GitHub's does not."""
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        fenced ^= line.lstrip().startswith("```")
        item = re.match(r"(?:[-*+]|\d+\.) ", line)
        if item and not fenced and lines and lines[-1].strip() and not re.match(r"[-*+] |\d+\. |\s", lines[-1]):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown, page, config, files):
    """A site has no sources: such a link becomes the file's name."""
    outside = r"\[([^\]]*)\]\(\.\./[^)]*\)"
    if page.file.src_uri in PAGES:
        outside = r"\[([^\]]*)\]\((?:LICENSE|NOTICE|(?:measurements|decisions)/?)\)"
    return spaced(re.sub(outside, r"\1", markdown) if "/" not in page.file.src_uri else markdown)
