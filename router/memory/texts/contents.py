"""Functions for the texts of memories that files and layers share: comparing, showing, naming."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from router.errors import InvalidRequest
from router.memory.model import MAX_TAGS, MemoryItem
from router.request import CONTROL, check_text
from router.text import STOPWORDS, composed, tokens

MAX_TAG_CHARACTERS: Final = 60
MAX_TITLE_CHARACTERS: Final = 150
_NAME_WORDS: Final = 6


def readable(text: str) -> str:
    """The text with U+FFFD for each control character. Texts of files and services are accepted
    with them, because somebody may have pasted the output of a terminal."""
    return CONTROL.sub("\ufffd", text)


def content_key(text: str) -> str:
    """SHA-256, in hexadecimal, of the text in NFC with one space for each run of white space.

    Nothing else is normalised: memories hold code and paths, where case and signs carry meaning,
    and two memories must never be taken for one.
    """
    normal = " ".join(composed(text).split())
    # Lone surrogates are accepted here; ``check_text`` refuses them when the text is stored.
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()


def without_copies(items: Iterable[MemoryItem]) -> dict[str, MemoryItem]:
    """The items in order, by content key: for each content the first item, with the provenance of
    all items with this content. An item without provenance has its layer and id instead.
    """
    found: dict[str, MemoryItem] = {}
    for item in items:
        key = content_key(item.content)
        found[key] = united(found[key], item) if key in found else item
    return found


def united(item: MemoryItem, copy: MemoryItem) -> MemoryItem:
    """The item, with the provenance of its copy added to its own."""
    return replace(item, provenance=tuple(dict.fromkeys((*_origins(item), *_origins(copy)))))


def _origins(item: MemoryItem) -> tuple[str, ...]:
    return item.provenance or (f"{item.layer}:{item.id}",)


def memory_digest(content: str, tags: Sequence[str]) -> str:
    """A digest of a memory's content and tags."""
    return hashlib.sha256("\0".join((content_key(content), *tags)).encode()).hexdigest()


def title_of(content: str) -> str:
    """The first line with text, without Markdown's signs, 1 to 150 characters."""
    for line in content.splitlines():
        title = " ".join(line.strip(" \t#*_>`-").split())
        if title:
            return title[:MAX_TITLE_CHARACTERS].rstrip()
    return " ".join(content.split())[:MAX_TITLE_CHARACTERS].rstrip()


def name_from(content: str) -> str:
    """A name for a memory without one: the first content words of its title, else its digest."""
    words = [word for word in tokens(title_of(content)) if word not in STOPWORDS]
    kept = [re.sub(r"[^\w]", "", word) for word in words][:_NAME_WORDS]
    name = "-".join(word for word in kept if word)[:60].strip("-")
    return name if "-" in name else f"memory-{content_key(content)[:8]}"


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags without repetition. Raises InvalidRequest if there are over 50, or one is empty,
    over 60 characters, or holds a comma or a line break, which files could not give back."""
    if isinstance(tags, str):
        raise InvalidRequest("tags: expected a list of tags, not one string")
    for tag in tags:
        check_text("tag", tag, MAX_TAG_CHARACTERS)
        if "," in tag or len(tag.splitlines()) > 1 or tag != tag.strip():
            raise InvalidRequest(f"tag {tag!r}: no commas, line breaks or spaces around it")
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"tags: {len(tags)}; at most {MAX_TAGS}")
    return tuple(dict.fromkeys(tags))
