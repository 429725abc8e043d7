"""Report words that are not plain technical English, with the better word beside each: `make words`.

The list is in `words.yaml`. Text is docstrings, comments and string literals of Python, comments and strings of C and TypeScript,
YAML data, and the prose and Python blocks of Markdown pages. Names are what Python code under `src` assigns, and the identifiers
of C and TypeScript. With `--comments`
the stand-alone comments per 100 lines of code of each room of `src/surefoot` are printed instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".yaml")

# (kind, glob). Tests and benchmarks may quote old sentences, so they are not read.
FILES = [
    ("python", "src/**/*.py"),
    ("python", "examples/**/*.py"),
    ("python", "scripts/**/*.py"),
    ("c", "src/**/*.[ch]"),
    ("c", "src/**/*.inc"),
    ("c", "examples/**/*.[ch]"),
    ("typescript", "clients/typescript/src/**/*.ts"),
    ("typescript", "clients/typescript/scripts/**/*.mjs"),
    ("typescript", "studio/**/*.ts"),
    ("typescript", "studio/**/*.tsx"),
    ("yaml", "src/**/*.yaml"),
    ("yaml", "examples/**/*.yaml"),
    ("docs", "*.md"),
    ("docs", "docs/**/*.md"),
    ("docs", "clients/typescript/*.md"),
    ("docs", "examples/**/*.md"),
]
# Built bundles, code of others, and English that is data: texts and word
# lists of the prompt mutations and of the constitution.
SKIPPED = (
    "node_modules",
    "dist",
    "build",
    "/static/",
    "decide/prompts/categories.yaml",
    "decide/prompts/kinds.yaml",
    "decide/prompts/lint.yaml",
    "decide/prompts/mutations.py",
    "decide/prompts/restructure.py",
    "prompts/tables.ts",
    "prompts/mutations.ts",
    "lm/constitution/constitution.yaml",
    "lm/constitution/labelled.yaml",
)

SPACE = r"[\s#*/>]+"
"""A space of a phrase also matches a line break with the comment signs at the start of the next line."""
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.S | re.M)
INLINE = re.compile(r"`[^`\n]+`|\]\([^)\n]*\)|<!--.*?-->", re.S)
# Comments (1) and strings (2) of C and TypeScript.
PARTS = re.compile(r"""(//[^\n]*|/\*.*?\*/)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""", re.S)


class Phrase(NamedTuple):
    pattern: re.Pattern[str]
    better: str
    kinds: tuple[str, ...]
    exempt: tuple[str, ...]


class Hit(NamedTuple):
    path: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r} -> {self.better}"


def read_list(path: Path = LIST) -> tuple[list[Phrase], dict[str, str]]:
    """Return the phrases and the names (with their better words) of the list file."""
    content = yaml.safe_load(path.read_text())
    phrases = [
        Phrase(
            re.compile(rf"(?<![\w-])(?:{entry['phrase'].replace(' ', SPACE)})(?![\w-])", re.I | re.M),
            entry["better"],
            tuple(entry.get("in", ())),
            tuple(entry.get("except", ())),
        )
        for entry in content["phrases"]
    ]
    return phrases, content["names"]


def python_texts(source: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every comment block, docstring and string of Python source whose first line is number `first`."""
    tree = ast.parse(source)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)}
            parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno + first - 1, "".join(parts)
        # A string of one word is a key or an id of a file format, not a sentence.
        elif isinstance(node, ast.Constant) and id(node) not in inside and re.search(r"\s", text := str(node.value)):
            yield node.lineno + first - 1, text
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield last - len(block) + first, "\n".join(block)
            block = []
        block.append(token.string)
        last = token.start[0]
    if block:
        yield last - len(block) + first, "\n".join(block)


def markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the prose of a page, without code and link targets, and the texts of its Python blocks."""
    for fence in FENCE.finditer(source):
        if fence[2] in ("python", "py"):
            start = source.count("\n", 0, fence.start(3)) + 1
            indent = len(fence[1])
            try:
                yield from python_texts("\n".join(line[indent:] for line in fence[3].split("\n")), start)
            except (SyntaxError, tokenize.TokenError):
                continue  # a fragment that is not a complete program
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), source)
    yield 1, INLINE.sub(lambda code: "`" + "\n" * code[0].count("\n") + "`", prose)


def texts(kind: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of what a person reads in a file."""
    if kind == "python":
        yield from python_texts(source)
    elif kind == "docs":
        yield from markdown_texts(source)
    elif kind == "yaml":
        yield 1, source
    else:
        for part in PARTS.finditer(source):
            yield source.count("\n", 0, part.start()) + 1, part[0]


def assigned_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of every variable, parameter, attribute, field, function and class that Python source defines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def check_text(kind: str, path: str, source: str, phrases: list[Phrase]) -> Iterator[Hit]:
    """Yield the phrases of the list that occur in the text of a file."""
    applicable = [
        p for p in phrases if kind in (p.kinds or (kind,)) and not any(fnmatch(path, glob) for glob in p.exempt)
    ]
    for line, text in texts(kind, source):
        for phrase in applicable:
            for match in phrase.pattern.finditer(text):
                yield Hit(path, line + text.count("\n", 0, match.start()), " ".join(match[0].split()), phrase.better)


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of every identifier of C or TypeScript source, outside of comments and strings."""
    code = PARTS.sub(lambda part: "\n" * part[0].count("\n"), source)
    for match in re.finditer(r"\b[A-Za-z_]\w*", code):
        yield code.count("\n", 0, match.start()) + 1, match[0]


def check_names(kind: str, path: str, source: str, names: dict[str, str]) -> Iterator[Hit]:
    """Yield the names of the list that a source file uses, with or without underscores around them, in any case."""
    for line, name in assigned_names(source) if kind == "python" else identifiers(source):
        if (better := names.get(name.strip("_").lower())) is not None:
            yield Hit(path, line, name, better)


def files() -> Iterator[tuple[str, Path]]:
    """Yield (kind, path) of every file that is read."""
    for kind, glob in FILES:
        for path in sorted(ROOT.glob(glob)):
            if not any(part in str(path.relative_to(ROOT)) for part in SKIPPED):
                yield kind, path


def check() -> list[Hit]:
    """Return every word of the list that is in the repository."""
    phrases, names = read_list()
    hits: list[Hit] = []
    for kind, path in files():
        source, name = path.read_text(), path.relative_to(ROOT).as_posix()
        hits += check_text(kind, name, source, phrases)
        if kind in ("c", "typescript") or (kind == "python" and name.startswith("src/")):
            hits += check_names(kind, name, source, names)
    return sorted(set(hits))


def comment_rates() -> Iterator[tuple[str, int, int]]:
    """Yield (room, stand-alone comment lines, code lines) of each room; blank lines and docstrings are neither."""
    for room in sorted(path for path in (ROOT / "src/surefoot").iterdir() if path.is_dir() and any(path.glob("*.py"))):
        comments = code = 0
        for path in room.rglob("*.py"):
            source = path.read_text()
            docstrings: set[int] = set()
            for node in ast.walk(ast.parse(source)):
                if (
                    isinstance(node, ast.Expr)
                    and isinstance(node.value, ast.Constant)
                    and isinstance(node.value.value, str)
                ):
                    docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            for number, line in enumerate(source.splitlines(), 1):
                if number in docstrings or not line.strip():
                    continue
                if line.strip().startswith("#"):
                    comments += 1
                else:
                    code += 1
        yield room.name, comments, code


def main() -> int:
    if "--comments" in sys.argv[1:]:
        for room, comments, code in comment_rates():
            print(f"{room:10} {comments:5} comments {code:6} code lines {100 * comments / max(code, 1):5.1f} per 100")
        return 0
    hits = check()
    print("\n".join(map(str, hits)) or "no words of the list")
    if hits:
        print(
            f"{len(hits)} in {len({hit.path for hit in hits})} files; the list is scripts/words.yaml", file=sys.stderr
        )
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
