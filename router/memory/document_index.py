"""Documents for contexts: folders of text and Markdown, in chunks by their headings.

Chunks are items of the layer ``documents`` in the memory store: searched by words and by meaning,
in a scope. A chunk's id is made of its folder, file and content, so that ingesting a folder again
encodes only what changed, and going on after an interruption loses nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from router.errors import InvalidRequest
from router.flight import in_thread
from router.memory.chunking import sections
from router.memory.context import Strategy
from router.memory.model import LayerQuery, MemoryItem, Scope
from router.memory.stores.embedded import MemoryStore

LAYER: Final = "documents"
SUFFIXES: Final = frozenset((".md", ".markdown", ".txt", ".text", ".rst"))
MAX_FILES: Final = 20_000
MAX_FILE_BYTES: Final = 4 << 20
SAVING_BATCH: Final = 64
"""Chunks encoded and stored at a time; an interruption loses at most these."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What ``ingest`` did.

    Attributes:
        files: files that were read.
        added: chunks that are new.
        kept: chunks that were there already.
        removed: chunks that the folder does not hold any more.
        problems: a sentence for each file that was left out.
    """

    files: int
    added: int
    kept: int
    removed: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON types."""
        return {
            "files": self.files,
            "added": self.added,
            "kept": self.kept,
            "removed": self.removed,
            "problems": list(self.problems),
        }


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
            folder: searched to the bottom; hidden files and folders, links and other kinds of
                files are passed over.
            scope: who will find the chunks.
            progress: called in a thread with (done, total) chunks to add.

        Raises:
            InvalidRequest: there is no such folder, or it holds more than 20,000 documents.
            EncoderError, StoreError: the chunks cannot be kept; what was added before stays.
        """
        async with self._ingesting:
            return await in_thread(lambda: self._ingest(Path(folder), scope, progress))

    def _ingest(
        self, folder: Path, scope: Scope, progress: Callable[[int, int], None] | None
    ) -> IngestReport:
        place = folder.expanduser().absolute()
        problems: list[str] = []
        wanted: dict[str, MemoryItem] = {}
        files = 0
        origin = _digest(str(place))
        for path in _documents(place):
            try:
                chunks = list(_chunks(path, place, origin, scope))
            except (OSError, ValueError) as error:
                problems.append(f"{path}: left out: {error}")
                continue
            files += 1
            wanted.update((chunk.id, chunk) for chunk in chunks)
        held = {i for i in self._store.ids(LAYER, scope) if i.startswith(f"{origin}-")}
        missing = [chunk for id_, chunk in wanted.items() if id_ not in held]
        for start in range(0, len(missing), SAVING_BATCH):
            batch = missing[start : start + SAVING_BATCH]
            self._store.save(batch)
            if progress is not None:
                progress(start + len(batch), len(missing))
        gone = held - wanted.keys()
        self._store.delete(LAYER, gone, scope)
        kept = len(wanted) - len(missing)
        return IngestReport(files, len(missing), kept, len(gone), tuple(problems))

    async def retrieve(
        self,
        query: LayerQuery,
        *,
        strategy: Strategy,  # noqa: ARG002 - documents have but one way
        scope: Scope,
        k: int,
    ) -> Sequence[MemoryItem]:
        """The best chunks, best first; a ``ContextSource``."""
        words = " ".join(query.terms) or query.text
        return await in_thread(
            lambda: self._store.search(LAYER, query.text, words=words, scope=scope, k=k)
        )

    async def is_empty(self, scope: Scope) -> bool:
        """Whether the scope sees no document at all."""
        return not await in_thread(lambda: self._store.newest(LAYER, scope=scope, k=1))


def _documents(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    if not place.is_dir():
        raise InvalidRequest(f"{place}: no such folder or file")
    count = 0
    for folder, folders, files in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            hidden = name.startswith(".") or path.is_symlink()
            if hidden or path.suffix.lower() not in SUFFIXES:
                continue
            count += 1
            if count > MAX_FILES:
                raise InvalidRequest(f"{place}: more than {MAX_FILES:,} documents")
            yield path


def _chunks(path: Path, place: Path, origin: str, scope: Scope) -> Iterator[MemoryItem]:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
        written = os.fstat(file.fileno()).st_mtime
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"over {MAX_FILE_BYTES:,} bytes")
    text = data.decode("utf-8-sig").translate(_CONTROLS)
    source = path.name if path == place else path.relative_to(place).as_posix()
    file_id = _digest(source)
    for section in sections(text):
        title = " > ".join(section.headings)
        content = f"{title}\n{section.text}" if title else section.text
        yield MemoryItem(
            f"{origin}-{file_id}-{_digest(content)}",
            LAYER,
            content,
            datetime.fromtimestamp(written, UTC),
            type="document",
            scope=scope,
            provenance=(f"doc:{source}#{title}" if title else f"doc:{source}",),
            attributes={"source": source},
        )


_CONTROLS: Final = {
    code: " " for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r\f\v"
}
"""Form feeds and escape sequences are in many a text file; an item may not hold them."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
