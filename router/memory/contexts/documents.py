"""Documents for contexts: folders of text and Markdown, in chunks by their headings.

Chunks are items of the layer ``documents`` in the memory store: searched by words and by meaning,
in a scope. A chunk's id is made of its folder, file and content, so that ingesting a folder again
encodes only what changed, and going on after an interruption does again only what was not stored.
Files are read one at a time, and a cancelled ingestion stops between two of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from router.bounded.files import Unreadable
from router.concurrency.tasks import in_thread
from router.errors import InvalidRequest
from router.memory.contexts.context import Retrieved, Strategy
from router.memory.files.text import read_text
from router.memory.layers.stored import search_words
from router.memory.model import LayerQuery, MemoryItem, Scope
from router.memory.stores.memory_store import MemoryStore
from router.memory.texts.chunking import sections
from router.memory.texts.contents import readable
from router.plain_json import PlainJson

LAYER: Final = "documents"
SUFFIXES: Final = frozenset((".md", ".markdown", ".txt", ".text", ".rst"))
MAX_FILES: Final = 20_000
MAX_FILE_BYTES: Final = 4 << 20
SAVING_BATCH: Final = 64
"""Chunks encoded and stored at a time; an interruption loses at most these."""


@dataclass(frozen=True, slots=True)
class IngestReport(PlainJson):
    """What ``ingest`` did: how many files were read, how many chunks are new, were there already,
    and are gone, and a sentence for each file that was left out."""

    files: int
    added: int
    kept: int
    removed: int
    problems: tuple[str, ...]


class DocumentIndex:
    """The documents of a store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._ingesting = asyncio.Lock()

    async def ingest(
        self,
        folder: str | Path,
        *,
        scope: Scope,
        progress: Callable[[int, int], None] | None = None,
    ) -> IngestReport:
        """Make the index hold exactly what a folder holds now, or a single file.

        Args:
            folder: searched to the bottom; hidden files and folders, links and other kinds of files
                are passed over. One that is gone takes its chunks with it.
            scope: who will find the chunks.
            progress: called with (done, total) files.

        Raises:
            InvalidRequest: there is no such folder and never was, or it holds more than 20,000
                documents.
            StoreError: the chunks cannot be kept; what was added before stays.
        """
        async with self._ingesting:
            place = _place(folder)
            origin = _digest(str(place))
            stored = await in_thread(lambda: self._store.ids(LAYER, scope))
            held = {chunk_id for chunk_id in stored if chunk_id.startswith(f"{origin}-")}
            problems: list[str] = []
            paths = await in_thread(lambda: _documents(place, problems, known=bool(held)))
            seen: set[str] = set()
            waiting: list[MemoryItem] = []
            files = added = 0
            for number, path in enumerate(paths, 1):
                try:
                    chunks = await in_thread(partial(_chunks, path, place, origin, scope))
                except (OSError, Unreadable, ValueError) as error:
                    problems.append(f"{path}: left out: {error}")
                    continue
                finally:
                    if progress is not None:
                        progress(number, len(paths))
                files += 1
                waiting += [chunk for chunk in chunks if chunk.id not in held]
                seen.update(chunk.id for chunk in chunks)
                if len(waiting) >= SAVING_BATCH:
                    added += await self._save(waiting)
            added += await self._save(waiting)
            gone = held - seen
            await in_thread(lambda: self._store.delete(LAYER, gone, scope))
            return IngestReport(files, added, len(held & seen), len(gone), tuple(problems))

    async def _save(self, waiting: list[MemoryItem]) -> int:
        """Store what waits, so many at a time; how many there were."""
        count = len(waiting)
        while waiting:
            batch = waiting[:SAVING_BATCH]
            await in_thread(partial(self._store.save, batch))
            del waiting[: len(batch)]
        return count

    async def retrieve(self, query: LayerQuery, _: Strategy, scope: Scope, k: int) -> Retrieved:
        """The best chunks, best first, in the one way that there is; a ``ContextSource``."""
        words = search_words(query)
        search = partial(self._store.search, LAYER, query.text, words=words, scope=scope, k=k)
        return Retrieved(await in_thread(search))

    async def is_empty(self, scope: Scope) -> bool:
        """Whether the scope sees no document at all."""
        return not await in_thread(lambda: self._store.newest(LAYER, scope=scope, k=1))


def _place(folder: str | Path) -> Path:
    return Path(folder).expanduser().absolute()


def _documents(place: Path, problems: list[str], *, known: bool) -> list[Path]:
    """The documents of a folder, in order; what cannot be listed is added to the problems. A place
    that is neither there nor known from before is refused."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        if known:
            return []
        raise InvalidRequest(f"{place}: no such folder or file")
    found: list[Path] = []
    walk = os.walk(
        place, onerror=lambda e: problems.append(f"{e.filename}: left out: {e.strerror}")
    )
    for folder, folders, files in walk:
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            if path.is_symlink() or not path.is_file():
                continue
            if len(found) == MAX_FILES:
                raise InvalidRequest(f"{place}: more than {MAX_FILES:,} documents")
            found.append(path)
    return found


def _chunks(path: Path, place: Path, origin: str, scope: Scope) -> list[MemoryItem]:
    """A file in chunks, those that repeat left out. Raises Unreadable, or ValueError for a heading
    that is too long for an item."""
    written = path.stat().st_mtime
    text = readable(read_text(path, most=MAX_FILE_BYTES))
    name = path.name if path == place else path.relative_to(place).as_posix()
    # Contexts show it, and the name of a file may hold line breaks and bytes that are no text.
    source = "".join(sign if sign.isprintable() else "\ufffd" for sign in name)
    file_id = _digest(name)
    chunks: dict[str, MemoryItem] = {}
    for section in sections(text):
        title = " > ".join(section.headings)
        content = f"{title}\n{section.text}" if title else section.text
        chunk_id = f"{origin}-{file_id}-{_digest(content)}"
        chunks[chunk_id] = MemoryItem(
            chunk_id,
            LAYER,
            content,
            datetime.fromtimestamp(written, UTC),
            type="document",
            scope=scope,
            provenance=(f"doc:{source}#{title}" if title else f"doc:{source}",),
            attributes={"source": source},
        )
    return list(chunks.values())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
