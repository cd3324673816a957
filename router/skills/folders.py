"""The source of skills that lie in folders on disk.

Skills are edited while they are in use, and an editor may save a half-written file. So in three
cases the last good version of a skill stays in use, and the failure is reported:

- its file was loaded before and cannot be loaded now, until it is corrected or deleted;
- its folder cannot be searched now: when a network disk is away for a moment, its skills must not
  disappear;
- its frontmatter was valid YAML and is not any more: an unclosed quote can be repaired into a
  description that its author never meant.

The last good version is only in the previous snapshot: a new process begins with what is on the
disk, and reads it as leniently as it can.

Loading reads every file and parses those that changed. With ``quick``, which is used while
watching, a file is not even read if its size, inode and times are the same. File times are not
reliable when two saves fall into one tick of the file system's clock. So they are trusted, as in
git, only if they were already old when the file was read.

The enrichments of a root (``enrichment.jsonl``) are added to the manifests here, because they are
in a file of their own that changes independently.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from router.errors import ConfigurationError, ManifestError
from router.skills.diagnostics import Diagnostic, Severity, short
from router.skills.discovery import (
    MAX_SKILLS,
    RootScan,
    configured_roots,
    default_roots,
    is_own,
    scan_root,
)
from router.skills.enrichment import (
    ENRICHMENT_FILE,
    Enrichment,
    EnrichmentFile,
    read_enrichment,
)
from router.skills.frontmatter import REPAIRS
from router.skills.manifest import (
    SkillManifest,
    manifest_digest,
    parse_manifest,
    read_manifest_bytes,
)
from router.skills.sources import SourceSnapshot

if TYPE_CHECKING:
    from router.settings.settings import Settings

FileState = tuple[int, int, int, int]
"""Inode, size, and the times of the last change of content and of anything, in nanoseconds."""

OLD_NS: Final = 2_000_000_000
"""File times older than this are trusted: the coarsest clock of a file system has ticks of 2 s."""


@dataclass(frozen=True, slots=True, eq=False)
class FolderSnapshot(SourceSnapshot):
    """Attributes:
    states: by path, the state of each file that need not be read again while it stays so.
    """

    states: Mapping[str, FileState] = field(default_factory=lambda: MappingProxyType({}))


class FolderSource:
    """Skills in some folders, strongest folder first."""

    name = "folders"

    def __init__(
        self,
        folders: Iterable[Path | str],
        *,
        missing_ok: bool = False,
        optional: Container[Path] = (),
        max_skills: int = MAX_SKILLS,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """A source that has read nothing yet.

        Args:
            folders: folders of skills, or folders of one skill; ``~`` is the user's home.
            missing_ok: a folder may be missing at the first reading; that is reported as a notice.
            optional: absolute folders that may be missing without a report.
            max_skills: skills that are taken at most; it is reported if there are more.
            clock: the time of day in nanoseconds, to compare with the times of files.
        """
        self._roots = tuple(dict.fromkeys(map(absolute, folders)))
        self._missing_ok = missing_ok
        self._optional = optional
        self._max_skills = max_skills
        self._clock = clock

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """Over the configured folders, those of the default ones included that are still
        missing."""
        return cls(
            configured_roots(settings, later_ones=True),
            optional=frozenset(map(absolute, default_roots() if settings.skills is None else ())),
            max_skills=settings.max_skills,
        )

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders, without those of the default ones that are links to what is not to be
        searched now."""
        return tuple(root for root in self._roots if root not in self._optional or is_own(root))

    def read(
        self, previous: SourceSnapshot | None = None, *, quick: bool = False
    ) -> FolderSnapshot:
        """Load every skill. A file below two of the folders is loaded once, for the first.

        Raises:
            ConfigurationError: there is no ``previous`` and a folder is missing.
        """
        reader = _Reader(previous, quick=quick, clock=self._clock)
        skills: list[SkillManifest] = []
        notices: list[Diagnostic] = []
        seen: set[str] = set()
        roots = self.roots
        for root in roots:
            try:
                scan = scan_root(
                    root,
                    trusted=roots,
                    max_skills=self._max_skills - len(skills),
                    may_be_away=previous is not None,
                )
            except ConfigurationError:
                if root in self._optional:
                    continue
                if previous is None and not self._missing_ok:
                    raise
                notices.append(Diagnostic(root, 0, Severity.WARNING, "missing-root", _MISSING))
                continue
            notices += scan.diagnostics
            is_unreadable = str(scan.root) in scan.unreadable
            enrichments = reader.enrichments_of(scan.root, notices, is_unreadable=is_unreadable)
            unused = set(enrichments)
            for text, place, was_found in reader.files_of(scan)[: self._max_skills - len(skills)]:
                if place in seen:
                    unused.clear()  # they may be about this skill, which another root has read
                    continue
                seen.add(place)
                manifest = reader.read_or_last_good(text, was_found=was_found)
                if manifest is None:
                    continue
                unused.discard(manifest.name)
                enrichment = enrichments.get(manifest.name)
                if manifest.enrichment != enrichment:
                    manifest = replace(manifest, enrichment=enrichment)
                skills.append(manifest)
            if unused and not reader.failures:  # a skill that cannot be read may have any name
                notices.append(_unused(scan.root, unused))
        return FolderSnapshot(
            tuple(skills),
            tuple(reader.failures.values()),
            tuple(notices),
            MappingProxyType(reader.stale),
            MappingProxyType(reader.enrichments),
            MappingProxyType(reader.states),
        )

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """Changes are seen by watching ``roots``, so there is nothing to tell."""
        return lambda: None


class _Reader:
    """Reads manifests, and takes those of the previous snapshot where it can.

    Attributes:
        failures: what could not be read, by path.
        stale: of these, what is given in its last good version.
        states: by path, the states of the files whose times can be trusted at the next reading.
        enrichments: the files of enrichments that were read, by path.
    """

    def __init__(
        self, previous: SourceSnapshot | None, *, quick: bool, clock: Callable[[], int]
    ) -> None:
        skills = () if previous is None else previous.skills
        self._known = {str(manifest.path): manifest for manifest in skills}
        self.failures: dict[Path, Diagnostic] = {}
        self.stale: dict[Path, Diagnostic] = {}
        self.states: dict[str, FileState] = {}
        self.enrichments: dict[Path, EnrichmentFile] = {}
        self._known_enrichments = {} if previous is None else previous.enrichments
        trusted = quick and isinstance(previous, FolderSnapshot)
        self._trusted_states = previous.states if trusted else {}  # type: ignore[union-attr]
        self._old = clock() - OLD_NS

    def files_of(self, scan: RootScan) -> list[tuple[str, str, bool]]:
        """The path and the place of each file of a root, and whether it was found now. Files in a
        folder that cannot be searched now are included if they were known before."""
        files = [(*file, True) for file in zip(scan.files, scan.places, strict=True)]
        if scan.unreadable:
            above = tuple(folder.rstrip(os.sep) + os.sep for folder in scan.unreadable)
            missed = {text for text in self._known if text.startswith(above)} - set(scan.files)
            files += [(text, os.path.realpath(text), False) for text in missed]
            files.sort(key=lambda file: file[0].split(os.sep))  # noqa: PTH206
        return files

    def read_or_last_good(self, text: str, *, was_found: bool) -> SkillManifest | None:
        """The skill in a file. If the file cannot be read, that is reported, and the last good
        version is returned; None if there is none, or if the file was deleted since it was
        found."""
        try:
            return self._read(text)
        except ManifestError as error:
            if was_found and not os.path.lexists(text):
                return None
            failure, last_good = Diagnostic.of_failure(error), self._known.get(text)
            if last_good is not None:
                message = f"{failure.message}; its last good version stays in use"
                self.stale[error.path] = failure = replace(failure, message=message)
            self.failures[error.path] = failure
            return last_good

    def _read(self, text: str) -> SkillManifest:
        known = self._known.get(text)
        state = state_of(text)
        if known is None or state is None or self._trusted_states.get(text) != state:
            path = Path(text)
            data = read_manifest_bytes(path)
            if known is None or known.digest != manifest_digest(data):
                parsed = parse_manifest(data, path=path)
                if known is not None and not _repairs(known) and (broken := _repairs(parsed)):
                    reason = (
                        "the frontmatter is no longer valid YAML here, as if it were half written"
                    )
                    raise ManifestError(path, broken[0].line, reason)
                known = parsed
        self._trust(text, state)
        return known

    def enrichments_of(
        self, root: Path, notices: list[Diagnostic], *, is_unreadable: bool
    ) -> Mapping[str, Enrichment]:
        """The enrichments in the file of a root, by skill. If the root cannot be read now, they are
        those that were read before. A link that leaves the root is not followed."""
        path = root / ENRICHMENT_FILE
        text = str(path)
        if is_unreadable and path in self._known_enrichments:
            self.enrichments[path] = self._known_enrichments[path]
            return self.enrichments[path].by_skill
        if not os.path.lexists(path):
            return {}
        if not Path(os.path.realpath(path)).is_relative_to(root.resolve()):
            message = "the link leaves its root; not followed"
            notices.append(Diagnostic(path, 0, Severity.WARNING, "link-leaves-root", message))
            return {}
        known = self._known_enrichments.get(path)
        state = state_of(text)
        if known is None or state is None or self._trusted_states.get(text) != state:
            known = read_enrichment(path, previous=known)
        self._trust(text, state)
        self.enrichments[path] = known
        notices += known.diagnostics
        return known.by_skill

    def _trust(self, text: str, state: FileState | None) -> None:
        """Store the state of a file if its times are old enough to be trusted."""
        if state is not None and max(state[2], state[3]) < self._old:
            self.states[text] = state


def absolute(root: Path | str) -> Path:
    """The absolute path of a folder, which need not exist."""
    expanded = os.path.expanduser(root)  # noqa: PTH111 - Path.expanduser raises without a home
    return Path(expanded).absolute()


def _repairs(manifest: SkillManifest) -> list[Diagnostic]:
    """The repairs that were needed before the frontmatter could be read as YAML."""
    return [found for found in manifest.diagnostics if found.code in REPAIRS]


def _unused(root: Path, names: set[str]) -> Diagnostic:
    """The report on lines of enrichments without a skill, which was renamed, removed or
    misspelt."""
    message = (
        f"no skill of this folder has the name of {len(names):,} of the lines, such as "
        f"{short(min(names))}"
    )
    return Diagnostic(root / ENRICHMENT_FILE, 0, Severity.INFO, "enrichment-unused", message)


def state_of(path: str | Path) -> FileState | None:
    """Inode, size and times, which differ between two versions of a file; None if the file cannot
    be looked at."""
    try:
        status = os.stat(path)  # noqa: PTH116 - half the price of Path.stat
    except OSError:  # reading it will say why
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_MISSING: Final = "there is no such folder now; it is looked for again at every reload"
