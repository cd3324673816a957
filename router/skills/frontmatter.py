"""The YAML at the top of a ``SKILL.md``: from bytes to a bounded tree of texts.

Skill files are untrusted. YAML is read from parser *events*, never constructed: no tag runs code,
scalars stay the text that was written (``version: 1.10`` is "1.10", not 1.1), nesting is bounded
before anything recurses, and an alias costs as much as the value it stands for. What YAML cannot
read for want of quotes is quoted and read again; every repair is reported.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml
from yaml.resolver import Resolver

from router.bounded.yaml import BeyondBound, parse_events, too_deep
from router.errors import ManifestError
from router.skills.diagnostics import Report, short

MAX_FRONTMATTER_CHARACTERS: Final = 1 << 16
MAX_EXPANDED_CHARACTERS: Final = 1 << 18
"""Bound on the frontmatter with every alias written out; one per node is added."""
MAX_DEPTH: Final = 20
MAX_REPAIRS: Final = 16
REPAIRS: Final = frozenset(("tab-indentation", "unquoted-value"))
"""Codes of the diagnostics that say that a strict YAML reader refuses the frontmatter."""


@dataclass(frozen=True, slots=True)
class Node:
    """A YAML value as written.

    Attributes:
        value: text of a scalar, None for null, or the children.
        line: 1-based line in the file; of its key, for a value in a mapping.
        size: characters with every alias written out, plus one per node.
        height: levels of nesting below it, with every alias written out.
        typed: an unquoted scalar that YAML readers take for a number, a date or a truth value.
    """

    value: str | list[Node] | dict[str, Node] | None
    line: int
    size: int
    height: int = 0
    typed: bool = False


def split_manifest(data: bytes, report: Report) -> tuple[dict[str, Node], str, int]:
    """The top-level keys, the body without blank lines around it, and the line before the body.

    Raises:
        ManifestError: there is no frontmatter, or it is not a YAML mapping even after repair.
    """
    lines = _decode(data, report).split("\n")
    start, end = _find_frontmatter(lines, report)
    top = _read_frontmatter(lines[start:end], start + 1, report)
    return top, "\n".join(lines[end + 1 :]).strip("\n").rstrip(), end + 1


# from bytes to lines

_LINE_BREAKS: Final = str.maketrans("\v\f\x85\u2028\u2029", "     ")
_UNPRINTABLE: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
"""What YAML does not allow in a file, and the line breaks that only some programs see as such."""


def _decode(data: bytes, report: Report) -> str:
    """Text with ``\\n`` line ends and printable characters only."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        report.warn(0, "not-utf-8", "the file is UTF-16; the format wants UTF-8")
        text = data.decode("utf-16", errors="replace")
    else:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            text = data.decode(errors="replace")
            before = data[: error.start].replace(b"\r\n", b"\n")
            line = before.count(b"\n") + before.count(b"\r") + 1
            report.warn(line, "not-utf-8", "bytes that are not UTF-8 were replaced by U+FFFD")
    if text.startswith("\ufeff"):
        report.info(1, "byte-order-mark", "the file starts with a byte order mark")
        text = text[1:]
    if "\r" in text:
        report.info(0, "line-endings", "lines end with a carriage return")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        report.warn(line, "control-characters", "control characters were taken out")
        text = printable(text)
    return text


def printable(text: str) -> str:
    """The text without control characters; odd line breaks become spaces."""
    if text.isprintable():  # nearly every one is
        return text
    return _UNPRINTABLE.sub("", text.translate(_LINE_BREAKS))


def on_one_line(text: str) -> str:
    """The printable text with single spaces between its words."""
    return " ".join(printable(text).split())


def words_on_one_line(text: str) -> str:
    """The same, for a text that must not be empty.

    Raises:
        ValueError: nothing is left of it.
    """
    if not (tidy := on_one_line(text)):
        raise ValueError("it is empty")
    return tidy


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts on one line, each once; empty ones are left out."""
    return tuple(dict.fromkeys(tidy for text in texts if (tidy := on_one_line(text))))


def _find_frontmatter(lines: list[str], report: Report) -> tuple[int, int]:
    """Indices of the first line after the opening fence, and of the closing fence.

    A fence stands at the start of a line: YAML itself allows no ``---`` there inside a value, so
    the first one is the end, whatever values and body hold.
    """
    opening = next((i for i, line in enumerate(lines) if line.strip()), None)
    if opening is None:
        raise ManifestError(report.path, 0, "the file is empty")
    if lines[opening].rstrip() != "---":
        raise ManifestError(
            report.path, opening + 1, "no frontmatter: the file must start with a line ---"
        )
    if opening:
        report.info(opening + 1, "leading-blank-lines", "blank lines stand before the frontmatter")
    for closing in range(opening + 1, len(lines)):
        if lines[closing].rstrip() in ("---", "..."):
            return opening + 1, closing
    raise ManifestError(report.path, opening + 1, "the frontmatter has no closing line ---")


# from lines to a bounded tree

_RESOLVER: Final[Any] = Resolver()  # its methods have no types
_YAML: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset((None, "!", f"{_YAML}str", f"{_YAML}seq", f"{_YAML}map"))

_TYPOGRAPHIC: Final = re.compile(
    "[\u201c\u201e\u2018\u201a]([^\u201c-\u201e\u2018\u201a]+)[\u201c\u201d\u2018\u2019]"
)
"""A value in the quotes that word processors write, and no other such quotes inside."""

_Note: TypeAlias = tuple[int, str, str]


class _TreeReader:
    """Builds nodes from parser events, within the bounds on depth and size.

    ``yaml.compose`` is of no use here: libyaml's composer recurses in C without a bound, and
    neither composer counts what aliases expand to.
    """

    def __init__(self, text: str, first_line: int) -> None:
        self._events = parse_events(text, max_depth=MAX_DEPTH)
        self._first_line = first_line
        self._anchors: dict[str, Node] = {}
        self._size = 0
        self.notes: list[_Note] = []

    def read(self) -> Node:
        next(self._events)  # start of stream
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return Node({}, self._first_line, 1)
        root = self._node(next(self._events), 0)
        next(self._events)  # end of document
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._note(event, "second-document", "only the first YAML document is read")
        if root.value is None:
            return replace(root, value={})
        return root

    def _node(self, event: Any, depth: int) -> Node:
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            target = self._anchors.get(event.anchor or "")
            if target is None:
                problem = f"alias *{event.anchor} has no anchor before it"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
            self._spend(event, target.size)
            self._descend(event, depth + target.height)
            return target
        self._descend(event, depth)
        if event.tag not in _PLAIN_TAGS:
            self._note(event, "yaml-tag", f"the YAML tag {short(event.tag)} is ignored")
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, depth)
        else:
            node = self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _scalar(self, event: Any) -> Node:
        text = printable(event.value)  # quoted scalars may hold escaped control characters
        self._spend(event, len(text) + 1)
        tag = f"{_YAML}str"
        if event.implicit[0]:
            tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
        if event.implicit[0] and (meant := _TYPOGRAPHIC.fullmatch(text)):
            text = meant[1]
            note = "typographic quotes around a value are left out; YAML knows only ' and \""
            self._note(event, "typographic-quotes", note)
        value = None if tag == f"{_YAML}null" else text
        typed = tag != f"{_YAML}str"
        return Node(value, self._line(event), len(text) + 1, typed=typed)

    def _sequence(self, event: Any, depth: int) -> Node:
        self._spend(event, 1)
        items: list[Node] = []
        while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(item, depth + 1))
        size = 1 + sum(item.size for item in items)
        height = 1 + max((item.height for item in items), default=0)
        return Node(items, self._line(event), size, height)

    def _mapping(self, event: Any, depth: int) -> Node:
        self._spend(event, 1)
        values: dict[str, Node] = {}
        merged: list[Node] = []
        size, height = 1, 1
        while not isinstance(key_event := next(self._events), yaml.MappingEndEvent):
            key = self._node(key_event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            value = Node(value.value, key.line, value.size, value.height, value.typed)
            size += key.size + value.size
            height = max(height, 1 + value.height)
            if isinstance(key.value, list | dict):
                self._note(key_event, "key-not-text", "a key that is not plain text is left out")
            elif key.value == "<<" and isinstance(value.value, list | dict):
                merged += value.value if isinstance(value.value, list) else [value]
            else:
                name = key.value or ""
                if name in values:
                    message = f"the key {short(name)} appears again; the last one counts"
                    self._note(key_event, "duplicate-key", message)
                values[name] = value
        for source in merged:
            if isinstance(source.value, dict):
                for name, value in source.value.items():
                    values.setdefault(name, value)
        return Node(values, self._line(event), size, height)

    def _descend(self, event: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise too_deep(MAX_DEPTH, event.start_mark)

    def _spend(self, event: Any, size: int) -> None:
        self._size += size
        if self._size > MAX_EXPANDED_CHARACTERS:
            problem = f"aliases expand to over {MAX_EXPANDED_CHARACTERS:,} characters"
            raise BeyondBound(problem=problem, problem_mark=event.start_mark)

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + self._first_line

    def _note(self, event: Any, code: str, message: str) -> None:
        self.notes.append((self._line(event), code, message))


def _read_frontmatter(lines: list[str], first_line: int, report: Report) -> dict[str, Node]:
    """The top-level mapping, after as few repairs as make the YAML readable."""
    if sum(map(len, lines)) + len(lines) > MAX_FRONTMATTER_CHARACTERS:
        limit = f"{MAX_FRONTMATTER_CHARACTERS:,}"
        raise ManifestError(report.path, first_line, f"the frontmatter is over {limit} characters")
    first_error: ManifestError | None = None
    repairs: dict[int, _Note] = {}
    while True:
        reader = _TreeReader("\n".join(lines), first_line)
        try:
            root = reader.read()
            break
        # The pure-Python parser lets ValueError and OverflowError through for absurd escapes.
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            first_error = first_error or _not_yaml(error, first_line, report.path)
            if (
                isinstance(error, BeyondBound)  # refused, not repaired
                or len(repairs) == MAX_REPAIRS
                or not _repair(lines, error, first_line, repairs)
            ):
                raise first_error from error
    if not isinstance(root.value, dict):
        fault = "the frontmatter is not a list of keys, such as 'name: git' with its space"
        raise ManifestError(report.path, root.line, fault)
    for note in (*repairs.values(), *reader.notes):
        report.warn(*note)
    return root.value


def _not_yaml(error: Exception, first_line: int, path: Path) -> ManifestError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
    return ManifestError(
        path,
        first_line + mark.line if mark else first_line,
        f"the frontmatter cannot be read as YAML: {problem}",
    )


# repairs of broken YAML

_ENTRY: Final = re.compile(r"(?P<head>\s*(?:- +)*[^\s:#\"'\[\]{}|>-][^:]*:[ \t]+)(?P<value>\S.*)")
_BLOCK_HEADER: Final = re.compile(r"[|>][0-9+-]{0,2}\s*(?:#.*)?")


def _repair(lines: list[str], error: Exception, first_line: int, repairs: dict[int, _Note]) -> bool:
    """Change ``lines`` where ``error`` points, keeping their number; False when nothing helps."""
    tabs = next((i for i, line in enumerate(lines) if "\t" in _indent(line)), None)
    if tabs is not None:
        lines[:] = [_indent(line).expandtabs(2) + line.lstrip(" \t") for line in lines]
        note = "tabs in the indentation are read as two spaces"
        repairs[-1] = (first_line + tabs, "tab-indentation", note)
        return True
    # For a quoted value the problem is where the reader gave up, and the context where it began.
    quoted = "quoted scalar" in (getattr(error, "context", None) or "")
    mark = getattr(error, "context_mark" if quoted else "problem_mark", None)
    if mark is None:
        return False
    at = _owner(lines, min(mark.line, len(lines) - 1))
    if at in repairs or not _quote(lines, at):
        return False
    note = "a value that is not valid YAML is read as plain text; it should be quoted"
    repairs[at] = (first_line + at, "unquoted-value", note)
    return True


def _owner(lines: list[str], at: int) -> int:
    """The line on which the value that covers line ``at`` starts.

    A key that has text on its own line has no children, so deeper lines below it are more of that
    text, even where they look like keys.
    """
    owner, limit = at, len(_indent(lines[at]))
    for i in range(at - 1, -1, -1):
        if limit == 0:
            break
        if lines[i].strip() and len(_indent(lines[i])) < limit:
            limit = len(_indent(lines[i]))
            if _ENTRY.match(lines[i]):
                owner = i
    return owner


def _quote(lines: list[str], at: int) -> bool:
    """Put the value that starts on line ``at`` in quotes, with the lines that continue it."""
    entry = _ENTRY.match(lines[at])
    if entry is None or _BLOCK_HEADER.fullmatch(entry["value"]):
        return False
    end = at + 1
    while end < len(lines) and len(_indent(lines[end])) > len(_indent(lines[at])):
        end += 1
    value = " ".join([entry["value"].rstrip(), *(line.strip() for line in lines[at + 1 : end])])
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]  # 'it's' and "a "b" c": the outer quotes are meant as such
    elif meant := _TYPOGRAPHIC.fullmatch(value):
        value = meant[1]
    lines[at] = entry["head"] + json.dumps(value, ensure_ascii=False)
    lines[at + 1 : end] = [""] * (end - at - 1)
    return True


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
