"""Memories as Serena keeps them: Markdown files under ``<project>/.serena/memories``, and those of
all projects under ``~/.serena/memories/global``. Serena has no search; this store adds one.

Names are the ids: ``auth/login`` is ``auth/login.md``. The index contains counts of words, never
texts. Before each call the folders are scanned, and only files whose time, size or inode has
changed are read again. So whatever Serena, an editor or Git writes is found by the next search.

- Files may be written by strangers: their size and number are bounded, a file that cannot be read
  is reported in ``problems`` and left out, and only regular files are opened.
- Symbolic links are followed, as Serena does, for example from a monorepo to the memories of its
  parts. But they must lead into the project (or the global root), because a cloned project must not
  be able to show the rest of the disk. That also holds for the project's root, unless the user's
  own configuration of Serena places it elsewhere. The global root may be a link, because it belongs
  to the user.
- A file is written completely or not at all: a temporary file is synchronised and then replaces it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rapidfuzz import fuzz, process

from router.bounded.files import Unreadable
from router.errors import InvalidRequest, ReadOnlyMemory, StoreError, UnknownMemory
from router.memory.files.names import (
    GLOBAL,
    SUFFIX,
    check_new_name,
    checked_patterns,
    matches,
    parse_name,
)
from router.memory.files.serena import Serena, SerenaRules
from router.memory.files.text import (
    FoundFile,
    is_inside,
    read_text,
    stamp_of,
    sync_folder,
    to_item,
    with_tags,
    write_whole,
)
from router.memory.model import MAX_CONTENT_CHARACTERS, MemoryItem, ScoreKind
from router.memory.texts.bm25 import TextIndex
from router.memory.texts.contents import check_tags, memory_digest
from router.request import check_text

MAX_FILES: Final = 10_000
MAX_FOLDERS: Final = 2_000
MAX_DEPTH: Final = 8
_LEADS_OUT: Final = "a link that leads out of the project"


@dataclass(frozen=True, slots=True)
class _Known:
    """A file that has been read, with the digest of its memory."""

    found: FoundFile
    digest: str


@dataclass(frozen=True, slots=True)
class FilesSnapshot:
    """All memories of a store at one moment.

    Attributes:
        digests: by name, a digest of a memory's content and tags; None if it cannot be read.
        whole: the roots that could be read completely. A name that is missing in another root may
            still exist, because a folder is absent, cannot be read, or has too many files.
    """

    digests: Mapping[str, str | None]
    whole: frozenset[Path]


class FileStore:
    """The memory files of one project, and the global ones. Thread-safe; all calls block. ``roots``
    are the folders of both, whether or not they exist.

    Args:
        project: the project's folder.
        serena_home: Serena's own folder; None means that of ``SERENA_HOME``, else ``~/.serena``.
        read_only: regular expressions for whole names that are never written, in addition to those
            in Serena's own files.
        ignored: regular expressions for whole names that are treated as absent.

    Raises:
        ConfigurationError: a pattern is malformed or could take exponential time.
    """

    def __init__(
        self,
        project: Path,
        *,
        serena_home: Path | None = None,
        read_only: Sequence[str] = (),
        ignored: Sequence[str] = (),
    ) -> None:
        self._serena = Serena(project, serena_home)
        self._project, self._global = self._serena.memories, self._serena.global_memories
        self.roots = self._project, self._global
        inside = self._project.is_relative_to(self._serena.project)
        self._allowed: dict[Path, tuple[Path, ...]] = {
            self._project: (*(() if inside else (self._project,)), self._serena.project),
            self._global: (self._global,),
        }
        self._read_only = checked_patterns("read_only_patterns", read_only)
        self._ignored = checked_patterns("ignored_patterns", ignored)
        self._index = TextIndex()
        self._known: dict[str, _Known] = {}
        self._problems: dict[Path, str] = {}
        self._unread: dict[str, tuple[FoundFile, str]] = {}
        self._whole: set[Path] = set()
        self._lock = threading.Lock()
        self._generation = 0

    @property
    def generation(self) -> int:
        """A number that rises with every change of a memory, by any program; to find out, the
        folders are scanned."""
        with self._lock:
            self._refresh()
            return self._generation

    def root_of(self, name: str) -> Path:
        """The folder under which a parsed name lies."""
        return self._global if name.startswith(f"{GLOBAL}/") else self._project

    def problems(self) -> tuple[str, ...]:
        """What is left out of every answer, with the reason, in sentences."""
        with self._lock:
            self._refresh()
            unread = {found.path: why for found, why in self._unread.values()}
            found = sorted((self._problems | unread).items())
            return tuple(f"{path}: {why}" for path, why in found)

    def names(self) -> tuple[str, ...]:
        with self._lock:
            self._refresh()
            return tuple(sorted(self._known))

    def search(self, query: str, *, k: int, only_global: bool = False) -> list[MemoryItem]:
        """At most ``k`` memories that share a content word with the query, best first, scored by
        BM25 over their contents; their names count a little. ``only_global`` leaves out those of
        the project."""
        with self._lock:
            self._refresh()
            ranked = self._index.search(query)
            places = [
                (self._known[name].found, name, score)
                for name, score in ranked
                if not only_global or name.startswith(f"{GLOBAL}/")
            ]
        items: list[MemoryItem] = []
        for found, name, score in places:
            if len(items) == k:
                break
            with suppress(Unreadable):  # it has changed since; the next call reads it again
                items.append(
                    to_item(name, found, read_text(found.path)).scored(score, ScoreKind.BM25)
                )
        return items

    def get(self, name: str) -> MemoryItem:
        """One memory.

        Raises:
            InvalidRequest: it is not a valid name.
            UnknownMemory: no readable file has it; the error suggests similar names.
        """
        name = parse_name(name)
        with self._lock:
            known = self._current(name)
            names = () if known else tuple(self._known)
        if known is not None:
            with suppress(Unreadable):
                return to_item(name, known.found, read_text(known.found.path))
        close = process.extract(name, names, scorer=fuzz.WRatio, limit=3, score_cutoff=70)
        raise UnknownMemory(name, tuple(match for match, _, _ in close))

    def save(self, name: str, content: str, *, tags: Sequence[str] = ()) -> MemoryItem:
        """Write a memory, in place of the one that had this name; durable on return.

        Raises:
            InvalidRequest: the name, the content (1 to 100,000 characters) or a tag is not usable,
                or the name leads through a link out of the folder.
            ReadOnlyMemory: a pattern protects or hides it.
            StoreError: it cannot be written.
        """
        name = parse_name(name)
        check_text("content", content, MAX_CONTENT_CHARACTERS)
        tags = check_tags(tags)
        self.check_writable(name)
        with self._lock:
            self._refresh()
            path = self._place(name)
            text = with_tags(content, tags)
            try:
                write_whole(path, self._allowed[self.root_of(name)], text)
                self._generation += 1
                return to_item(name, FoundFile(path, stamp_of(path.stat())), text)
            except OSError as error:
                raise StoreError(path, f"memory {name!r} cannot be written: {error}") from error

    def delete(self, name: str) -> None:
        """Delete a memory's file; durable on return. Raises as ``save``, and UnknownMemory."""
        name = parse_name(name)
        self.check_writable(name)
        with self._lock:
            self._refresh()
            if name not in self._known and name not in self._unread:
                raise UnknownMemory(name)
            path = self._place(name)
            try:
                path.unlink(missing_ok=True)
                self._generation += 1
                sync_folder(path.parent)
            except OSError as error:
                raise StoreError(path, f"memory {name!r} cannot be deleted: {error}") from error

    def snapshot(self) -> FilesSnapshot:
        """All memories as they are now, in the order of their names."""
        with self._lock:
            self._refresh()
            digests: dict[str, str | None] = dict.fromkeys(self._unread)
            digests |= {name: known.digest for name, known in self._known.items()}
            return FilesSnapshot(dict(sorted(digests.items())), frozenset(self._whole))

    def check_writable(self, name: str) -> None:
        """Raise ReadOnlyMemory if a pattern protects or hides the name, or if a file of Serena
        cannot be used, so that it is not known what it protects."""
        rules = self._serena.rules()
        if self._is_ignored(name, rules):
            raise ReadOnlyMemory(f"memory {name!r} is hidden by ignored_memory_patterns")
        if matches(self._read_only + rules.read_only, name):
            raise ReadOnlyMemory(f"memory {name!r} is protected by read_only_memory_patterns")
        for file, why in rules.problems.items():
            raise ReadOnlyMemory(f"memory {name!r} may be protected: mend {file} first: {why}")

    def _is_ignored(self, name: str, rules: SerenaRules) -> bool:
        return matches(self._ignored + rules.ignored, name)

    def _current(self, name: str) -> _Known | None:
        """The known file of a name; the folders are scanned only if the file has changed."""
        known = self._known.get(name)
        if known is not None:
            with suppress(OSError):
                if stamp_of(known.found.path.stat()) == known.found.stamp:
                    return known
        self._refresh()
        return self._known.get(name)

    def _place(self, name: str) -> Path:
        if name in self._known:
            return self._known[name].found.path
        if name in self._unread:
            return self._unread[name][0].path
        check_new_name(name)
        return self.root_of(name) / (name.removeprefix(f"{GLOBAL}/") + SUFFIX)

    def _refresh(self) -> None:
        """Bring the index up to date with the folders."""
        unread, rules = self._unread, self._serena.rules()
        self._problems = dict(rules.problems)
        self._whole = {root for root in self.roots if root.is_dir()}
        present: dict[str, FoundFile] = {}
        hidden: list[Path] = []
        for root, prefix in ((self._project, ""), (self._global, f"{GLOBAL}/")):
            for name, found in self._scan(root, prefix):
                if self._is_ignored(name, rules):
                    hidden.append(found.path)
                elif name in present:
                    self._problems[found.path] = "another file has the same name"
                else:
                    present[name] = found
        if hidden:
            others = f", and {len(hidden) - 1} more" if len(hidden) > 1 else ""
            self._problems[hidden[0]] = f"hidden by ignored_memory_patterns{others}"
        self._unread = {}
        for name in self._known.keys() - present.keys():
            self._forget(name)
        for name, found in present.items():
            known = self._known.get(name)
            if known is not None and known.found == found:
                continue
            if name in unread and unread[name][0] == found:
                self._unread[name] = unread[name]
                continue
            try:
                self._learn(name, found)
            except Unreadable as problem:
                self._forget(name)
                self._unread[name] = found, str(problem)

    def _learn(self, name: str, found: FoundFile) -> None:
        item = to_item(name, found, read_text(found.path))
        self._generation += 1
        self._index.put(name, item.content, name)
        digest = memory_digest(item.content, item.tags)
        self._known[name] = _Known(found, digest)

    def _forget(self, name: str) -> None:
        self._generation += 1
        self._index.remove(name)
        self._known.pop(name, None)

    def _scan(self, root: Path, prefix: str) -> Iterator[tuple[str, FoundFile]]:
        """Every file under a root that is a memory by its name."""
        real_root = root.resolve()
        if not is_inside(real_root, self._allowed[root]):
            self._miss(
                root, root, f"{_LEADS_OUT}; memory.project_directory may name another project"
            )
            return
        pending: list[tuple[Path, str, tuple[Path, ...]]] = [(root, prefix, (real_root,))]
        folders = files = 0
        while pending:
            folder, topic, ancestors = pending.pop()
            folders += 1
            if folders > MAX_FOLDERS:
                self._miss(root, root, f"over {MAX_FOLDERS:,} folders; the rest is left out")
                return
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._miss(root, folder, error.strerror or str(error))
                continue
            for entry in entries:
                path = Path(entry.path)
                if prefix == "" and topic + entry.name == GLOBAL:
                    self._problems[path] = "names in it would mean the global memories"
                    continue
                if entry.name.startswith("."):
                    if not entry.name.endswith(".tmp"):  # a file that is being written
                        self._problems[path] = "its name begins with a dot"
                    continue
                try:
                    is_folder, info = entry.is_dir(), entry.stat()
                    real = path.resolve() if entry.is_symlink() else None
                except OSError as error:
                    why = error.strerror or str(error)
                    if entry.is_symlink():  # a broken link; no memory is missing because of it
                        self._problems[path] = why
                    elif not isinstance(error, FileNotFoundError):  # deleted just now
                        self._miss(root, path, why)
                    continue
                if real is not None and not is_inside(real, self._allowed[root]):
                    self._problems[path] = _LEADS_OUT
                elif is_folder:
                    real = real or ancestors[-1] / entry.name
                    if len(ancestors) == MAX_DEPTH:
                        self._problems[path] = f"over {MAX_DEPTH} folders deep"
                    elif real not in ancestors:
                        pending.append((path, f"{topic}{entry.name}/", (*ancestors, real)))
                elif entry.name.endswith(SUFFIX):
                    files += 1
                    if files > MAX_FILES:
                        self._miss(root, root, f"over {MAX_FILES:,} files; the rest is left out")
                        return
                    try:
                        yield parse_name(topic + entry.name), FoundFile(path, stamp_of(info))
                    except InvalidRequest as error:
                        self._problems[path] = str(error)

    def _miss(self, root: Path, path: Path, why: str) -> None:
        """Note that a root could not be read completely."""
        self._whole.discard(root)
        self._problems[path] = why
