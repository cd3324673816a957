"""Long texts in pieces: Markdown by its headings, anything by paragraphs, sentences and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CHUNK_CHARACTERS: Final = 1_600
"""About 400 tokens: small enough that one chunk is about one thing."""

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
SENTENCE_BORDER: Final = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
"""Not within "3.1.4"; Chinese and Japanese write no space behind a sentence."""
_BORDERS: Final = (
    re.compile(r"\n[ \t]*\n\s*"),  # paragraphs
    re.compile(r"\n+"),  # lines
    SENTENCE_BORDER,
    re.compile(r"\s+"),  # words
)


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a document, without the titles that it stands under, outermost first."""

    headings: tuple[str, ...]
    text: str


def sections(markdown: str) -> Iterator[Section]:
    """The text under each heading, in pieces of at most ``CHUNK_CHARACTERS``. What stands inside a
    fence is no heading."""
    titles: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""

    def ended() -> Iterator[Section]:
        headings = tuple(title for _, title in titles)
        for piece in split("\n".join(lines), limit=CHUNK_CHARACTERS):
            yield Section(headings, piece)
        lines.clear()

    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield from ended()
        level = len(heading[1])
        titles = [(above, title) for above, title in titles if above < level]
        titles.append((level, heading[2]))
    yield from ended()


def split(text: str, *, limit: int) -> list[str]:
    """The text in pieces of at most ``limit`` characters, none empty, in order, cut at the widest
    border there is: between paragraphs, lines, sentences, words, and only then inside a word."""
    return _split(text.strip(), limit, 0)


def _split(text: str, limit: int, depth: int) -> list[str]:
    if len(text) <= limit:
        return [text] if text else []
    if depth == len(_BORDERS):
        return [text[start : start + limit] for start in range(0, len(text), limit)]
    pieces: list[str] = []
    start = end = after = 0
    for border in (*(m.span() for m in _BORDERS[depth].finditer(text)), (len(text), len(text))):
        # [start, end) is known to fit; up to this border it would be longer.
        if border[0] - start > limit and end > start:
            pieces.append(text[start:end])
            start = after
        if border[0] - start > limit:
            pieces.extend(_split(text[start : border[0]], limit, depth + 1))
            start = border[1]
        end, after = border
    if end > start:
        pieces.append(text[start:end])
    return pieces
