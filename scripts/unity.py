#!/usr/bin/env python3
"""unity.py ROOT LINES FOLDER SOURCE...   Writes FOLDER/unity_N.cc, which compile the sources together; prints them.

Sources compiled as one file share one unnamed namespace. So two of them stay apart when one defines there a name that
the other, or a header it reads, defines in any namespace: neither a clash nor another overload can come of it. A group
holds at most LINES lines, and the result depends on the sources alone. The sources' layout is clang-format's: what a
namespace holds is not indented.
"""

import functools
import os
import pathlib
import re
import sys

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
TYPE = re.compile(r'(?:struct|class|enum class|enum|union)\s+(\w+)')
FUNCTION = re.compile(r'(?<![\w:.>])([A-Za-z_]\w*)\(')
VARIABLE = re.compile(r'(?<![\w:.>])([A-Za-z_]\w*)\s*(?=[={\[;,])')


def code_of(path):
    return NOT_CODE.sub(' ', path.read_text(encoding='utf-8'))


def introduced(line):
    """The names that an unindented line of code defines or declares; more than these at worst."""
    line = re.sub(r'^template <.*>(?= |$)', '', line).strip()
    if TYPE.match(line):
        return [TYPE.match(line)[1]]
    before = re.split(r'[={]', line, maxsplit=1)[0]
    names = FUNCTION.findall(before)[:1] or VARIABLE.findall(line)
    return [name for name in names if not name.isupper()]  # a macro's use, as TEST(...)


def names_of(code):
    """What a file introduces in its unnamed namespaces, and in its other ones."""
    unnamed, named, depth, outside = set(), set(), 0, None  # outside: the depth at which the unnamed one began
    for line in code.split('\n'):
        if outside is None and line.startswith('namespace {'):
            outside = depth
        elif line[:1] not in ('', ' ', '#', '}') and not line.startswith('namespace '):
            (named if outside is None else unnamed).update(introduced(line))
        depth += line.count('{') - line.count('}')
        if outside is not None and depth <= outside:
            outside = None
    return unnamed, named


class Tree:
    """The checkout's files, each read once."""

    def __init__(self, root):
        self.folders = sorted((root / 'src').glob('*/include'))
        self.read = functools.lru_cache(None)(self.read)

    def find(self, name, beside):
        for folder in [beside, *self.folders]:
            if (folder / name).is_file():
                return (folder / name).resolve()
        return None  # of a library, or found by another include path: no name of ours

    def read(self, path):
        text = path.read_text(encoding='utf-8')
        headers = {self.find(name, path.parent) for name in INCLUDE.findall(text)} - {None}
        return *names_of(code_of(path)), frozenset(headers)

    def names(self, source):
        """What a source introduces in its unnamed namespaces; that, and all that it and its headers introduce."""
        visible, seen, todo = set(), set(), [source]
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            unnamed, named, headers = self.read(path)
            visible |= unnamed | named
            todo.extend(headers)
        return self.read(source)[0], visible


class Group:
    def __init__(self):
        self.lines, self.unnamed, self.visible, self.sources = 0, set(), set(), []

    def takes(self, lines, unnamed, visible, most):
        return self.lines + lines <= most and not self.unnamed & visible and not self.visible & unnamed

    def add(self, source, lines, unnamed, visible):
        self.sources.append(source)
        self.lines += lines
        self.unnamed |= unnamed
        self.visible |= visible


def grouped(root, most, sources):
    tree, groups = Tree(root), []
    for path in sorted(sources):
        lines = path.read_text(encoding='utf-8').count('\n')
        unnamed, visible = tree.names(path)
        group = next((group for group in groups if group.takes(lines, unnamed, visible, most)), None)
        if group is None:
            group = Group()
            groups.append(group)
        group.add(path, lines, unnamed, visible)
    return groups


def main():
    root, most, folder = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for number, group in enumerate(grouped(root, most, [pathlib.Path(name).resolve() for name in sys.argv[4:]])):
        # Where one source has a constant, another may have a local of that name: what shadows what is told where each
        # source is compiled by itself.
        text = '#pragma GCC diagnostic ignored "-Wshadow"\n'
        # Relative, so that the compiler cache knows a checkout in another place again.
        text += ''.join(f'#include "{os.path.relpath(source, folder)}"\n' for source in group.sources)
        unit = folder / f'unity_{number}.cc'
        if not unit.exists() or unit.read_text(encoding='utf-8') != text:
            unit.write_text(text, encoding='utf-8')
        print(unit)


main()
