"""The catalog: one immutable snapshot of every skill that is installed.

A name is taken once. When several skills have it, the one in the earlier root wins, and within a
root the first in the order of paths; the others are kept as ``shadowed`` and reported.

The version is a digest of what the catalog offers, the names and contents of the winning skills,
and of nothing else: two catalogs with the same version route alike, wherever their folders lie.
Precedence counts through who wins. Skills are in the order of their names, so that the order too
depends on nothing but content.

Skills are edited while they are in use, and an editor saves what its author has half written. So a
file that was loaded once and cannot be loaded now keeps its last good version, until it is mended
or gone; the failure is reported all the same. The last good version lives in the previous snapshot
and nowhere else: a new process starts from what is on disk.

Loading reads every file and parses what changed. ``quick`` loading, for those who look all the
time, does not even read a file whose size, inode and times are what they were. Times lie when two
saves fall into one tick of the file system's clock, so, as git does it, a file's times are believed
only when they were old already as the file was read.

What an LLM has written for the skills (``enrichment.jsonl``) is put on their manifests here: it
stands in a file of its own and changes without them.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from router.errors import ConfigurationError, ManifestError, UnknownSkill
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.discovery import link_fault, scan_root
from router.skills.enrichment import (
    ENRICHMENT_FILE,
    Enrichment,
    EnrichmentFile,
    read_enrichment,
)
from router.skills.manifest import (
    MAX_KEPT_NAME,
    SkillManifest,
    manifest_digest,
    parse_manifest,
    read_manifest_bytes,
)

FileState = tuple[int, int, int, int]
"""Inode, size, and the times of the last change of content and of anything, in nanoseconds."""

OLD_NS: Final = 2_000_000_000
"""Times this far back are believed: the coarsest clock of a file system ticks every two seconds."""


@dataclass(frozen=True, slots=True)
class ShadowedSkill:
    """A skill that is not offered because a stronger one has its name."""

    manifest: SkillManifest
    by: SkillManifest


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """A snapshot of the installed skills. Compare snapshots by ``version``.

    Attributes:
        skills: the skills by name, in the order of their names; read-only.
        shadowed: skills that lost their name to a stronger one, strongest first.
        failures: what could not be loaded, as diagnostics of severity ``ERROR``.
        notices: what the search for skills skipped or could not follow.
        stale: skills offered in their last good version, and why the file cannot be loaded now.
        roots: the folders that were searched, strongest first.
        hidden: names that are left out on request.
        states: what vouches for the content of the file at a path without reading it; see
            ``load_catalog``.
        enrichments: the files of enrichments that were read, by their paths.
        version: 16 hex digits; equal for equal names, contents and enrichments.
        routable: the skills that may be offered for routing, in the order of their names.
    """

    skills: Mapping[str, SkillManifest] = field(default_factory=dict)
    shadowed: tuple[ShadowedSkill, ...] = ()
    failures: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()
    stale: Mapping[str, Diagnostic] = field(default_factory=dict)
    roots: tuple[Path, ...] = ()
    hidden: frozenset[str] = frozenset()
    states: Mapping[str, FileState] = field(default_factory=dict, repr=False)
    enrichments: Mapping[Path, EnrichmentFile] = field(default_factory=dict, repr=False)
    version: str = field(init=False)
    routable: tuple[SkillManifest, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        skills = MappingProxyType(dict(sorted(self.skills.items())))
        content = hashlib.sha256()
        for name, manifest in skills.items():
            content.update(f"{name}\n{manifest.routing_digest}\n".encode())  # a name is one line
        object.__setattr__(self, "skills", skills)
        object.__setattr__(self, "stale", MappingProxyType(dict(sorted(self.stale.items()))))
        object.__setattr__(self, "version", content.hexdigest()[:16])
        object.__setattr__(
            self,
            "routable",
            tuple(m for m in skills.values() if not m.disable_model_invocation),
        )

    def get(self, name: str) -> SkillManifest:
        """The skill of that name.

        Raises:
            UnknownSkill: there is none; the error carries up to three close names.
        """
        try:
            return self.skills[name]
        except KeyError:
            close = difflib.get_close_matches(name[:MAX_KEPT_NAME], self.skills)
            raise UnknownSkill(name, tuple(close)) from None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything odd: the search, the failures, the shadowed skills, the loaded ones."""
        shadowed = (
            Diagnostic(
                lost.manifest.path,
                0,
                Severity.WARNING,
                "shadowed",
                f"not offered: the skill {lost.manifest.name!r} at {lost.by.path} is stronger",
            )
            for lost in self.shadowed
        )
        loaded = (
            diagnostic for manifest in self.skills.values() for diagnostic in manifest.diagnostics
        )
        return (*self.notices, *self.failures, *shadowed, *loaded)


def load_catalog(
    roots: Iterable[Path],
    *,
    enrichment: Path | None = None,
    previous: Catalog | None = None,
    hidden: frozenset[str] = frozenset(),
    missing_ok: bool = False,
    optional: Container[Path] = (),
    quick: bool = False,
    clock: Callable[[], int] = time.time_ns,
) -> Catalog:
    """Load every skill under the roots, strongest root first.

    A file that cannot be loaded becomes a failure and disturbs no other. Manifests of ``previous``
    are reused where path and digest are unchanged. Where a file of ``previous`` cannot be loaded
    any more, its manifest stays, as ``stale``.

    Args:
        roots: folders of skills, or folders of one skill.
        enrichment: a file of enrichments for skills of any root, before the files in the roots.
        previous: the snapshot that the new one will follow.
        hidden: names to leave out, whoever has them.
        missing_ok: a root that is not a folder is noted instead of raised.
        optional: roots that may be missing without a word.
        quick: do not read files whose state is that of ``previous``.
        clock: the time of day in nanoseconds, to compare with the times of files.

    Raises:
        ConfigurationError: a root is not a folder.
    """
    reader = _Reader(Catalog() if previous is None else previous, quick=quick, clock=clock)
    roots = tuple(roots)
    skills: dict[str, SkillManifest] = {}
    shadowed: list[ShadowedSkill] = []
    failures: dict[Path, Diagnostic] = {}
    notices: list[Diagnostic] = []
    seen: set[str] = set()
    for_all = _NONE if enrichment is None else reader.enrichments_in(enrichment, notices)
    for root in roots:
        try:
            scan = scan_root(root)
        except ConfigurationError:
            if root in optional:
                continue
            if not missing_ok:
                raise
            notices.append(Diagnostic(root, 0, Severity.WARNING, "missing-root", _MISSING))
            continue
        notices += scan.diagnostics
        real_root = os.path.join(scan.root.resolve(), "")  # noqa: PTH118 - for texts, see below
        for_root = reader.enrichments_of(scan.root, notices)
        within = len(os.path.join(scan.root, ""))  # noqa: PTH118
        for path in scan.files:
            # Roots may overlap; a file under two of them belongs to the stronger one. The search
            # follows no folder links, so the real place of a file is a matter of its root. Texts,
            # because paths would cost as much as all the rest.
            text = str(path)
            place = real_root + text[within:]
            if place in seen:
                continue
            seen.add(place)
            try:
                manifest = reader.read(path)
            except ManifestError as error:
                if not os.path.lexists(path):  # deleted since the search
                    continue
                last_good = reader.known.get(text)
                failures[path] = _failure(error, last_good)
                if last_good is None:
                    continue
                manifest = last_good
            if manifest.name in hidden:
                continue
            enriched = for_all.get(manifest.name) or for_root.get(manifest.name)
            if manifest.enrichment != enriched:
                manifest = replace(manifest, enrichment=enriched)
            winner = skills.setdefault(manifest.name, manifest)
            if winner is not manifest:
                shadowed.append(ShadowedSkill(manifest, by=winner))
    return Catalog(
        skills,
        tuple(shadowed),
        tuple(failures.values()),
        tuple(notices),
        stale={name: failures[m.path] for name, m in skills.items() if m.path in failures},
        roots=roots,
        hidden=hidden,
        states=reader.states,
        enrichments=reader.enrichments,
    )


class _Reader:
    """Reads manifests, and takes those of the previous snapshot where it can.

    Attributes:
        known: the manifests of the previous snapshot, by path.
        states: of the files read or vouched for, where they can be believed later, by path.
        enrichments: the files of enrichments that were read, by path.
    """

    def __init__(self, previous: Catalog, *, quick: bool, clock: Callable[[], int]) -> None:
        self.known = {str(lost.manifest.path): lost.manifest for lost in previous.shadowed}
        self.known |= {str(manifest.path): manifest for manifest in previous.skills.values()}
        self.states: dict[str, FileState] = {}
        self.enrichments: dict[Path, EnrichmentFile] = {}
        self._known_enrichments = previous.enrichments
        self._vouched = previous.states if quick else {}
        self._old = clock() - OLD_NS

    def read(self, path: Path) -> SkillManifest:
        text = str(path)
        known = self.known.get(text)
        state = _state(text)
        if known is None or state is None or self._vouched.get(text) != state:
            data = read_manifest_bytes(path)
            if known is None or known.digest != manifest_digest(data):
                known = parse_manifest(data, path=path)
        self._believe(text, state)
        return known

    def enrichments_of(self, root: Path, notices: list[Diagnostic]) -> Mapping[str, Enrichment]:
        """What the file of a root says; a link that leaves the root is not followed."""
        path = root / ENRICHMENT_FILE
        if not os.path.lexists(path):
            return _NONE
        if path.is_symlink() and (fault := link_fault(path, root.resolve())) is not None:
            notices.append(fault)
            return _NONE
        return self.enrichments_in(path, notices)

    def enrichments_in(self, path: Path, notices: list[Diagnostic]) -> Mapping[str, Enrichment]:
        """What a file says, by skill; what is odd about it goes to ``notices``."""
        text = str(path)
        known = self._known_enrichments.get(path)
        state = _state(text)
        if known is None or state is None or self._vouched.get(text) != state:
            known = read_enrichment(path, previous=known)
        self._believe(text, state)
        self.enrichments[path] = known
        notices += known.diagnostics
        return known.by_skill

    def _believe(self, text: str, state: FileState | None) -> None:
        """Vouch for a file from now on, where its times can be believed."""
        if state is not None and max(state[2], state[3]) < self._old:
            self.states[text] = state


def _state(path: str) -> FileState | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - half the price of Path.stat
    except OSError:  # reading it will say why
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _failure(error: ManifestError, last_good: SkillManifest | None) -> Diagnostic:
    failure = Diagnostic.of_failure(error)
    if last_good is None:
        return failure
    return replace(failure, message=f"{failure.message}; its last good version stays in use")


_NONE: Final[Mapping[str, Enrichment]] = MappingProxyType({})
_MISSING: Final = "there is no such folder now; it is looked for again at every reload"
