"""The catalog: one immutable snapshot of every skill that is installed.

It is merged from the snapshots of the sources, strongest source first. A name is taken once: when
several skills have it, the one of the earlier source wins, and within a source the earlier one; the
others are kept as ``shadowed`` and reported.

The version is a digest of what the catalog offers, the names and contents of the winning skills,
and of nothing else: two catalogs with the same version route alike, wherever their folders lie.
Precedence counts through who wins. Skills are in the order of their names, so that the order too
depends on nothing but content.

The file of enrichments that the user has named speaks for every skill, whatever its source, and
before what the source itself knows; it is applied here. So are enrichments that other processes of
a cluster have: last, where there is none for the skill as it is now.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from router.errors import UnknownSkill
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.discovery import MAX_SKILLS
from router.skills.enrichment import Enrichment, EnrichmentFile, read_enrichment
from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.sources import SkillSource, SourceSnapshot


@dataclass(frozen=True, slots=True)
class ShadowedSkill:
    """A skill that is not offered because a stronger one has its name."""

    manifest: SkillManifest
    by: SkillManifest


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """A snapshot of the installed skills. Compare snapshots by ``version``.

    Attributes:
        skills: the skills by name, in the order of their names; a read-only copy of what is given.
        shadowed: skills that lost their name to a stronger one, strongest first.
        failures: what could not be loaded, as diagnostics of severity ``ERROR``.
        notices: what the search for skills skipped or could not follow.
        stale: skills offered in their last good version, and why the file cannot be loaded now.
        roots: the folders that were searched, strongest first.
        hidden: names that are left out on request.
        snapshots: what each source gave, strongest source first.
        enrichments: the files of enrichments that were read, by their paths.
        of_others: what other processes knew, by the digest of the skill's text.
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
    snapshots: tuple[tuple[SkillSource, SourceSnapshot], ...] = field(default=(), repr=False)
    enrichments: Mapping[Path, EnrichmentFile] = field(default_factory=dict, repr=False)
    of_others: Mapping[str, Enrichment] = field(default_factory=dict, repr=False)
    version: str = field(init=False)
    routable: tuple[SkillManifest, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        skills = {name: self.skills[name] for name in sorted(self.skills)}
        object.__setattr__(self, "skills", MappingProxyType(skills))
        content = hashlib.sha256(b"".join([manifest.mark for manifest in skills.values()]))
        object.__setattr__(self, "stale", MappingProxyType(dict(sorted(self.stale.items()))))
        object.__setattr__(self, "version", content.hexdigest()[:16])
        object.__setattr__(
            self,
            "routable",
            tuple([one for one in skills.values() if not one.disable_model_invocation]),
        )

    def get(self, name: str) -> SkillManifest:
        """The skill of that name.

        Raises:
            UnknownSkill: there is none; the error carries up to three close names.
        """
        try:
            return self.skills[name]
        except KeyError:
            raise UnknownSkill.among(name, self.skills) from None

    def root_of(self, skill: SkillManifest) -> Path | None:
        """The strongest of the folders that a skill lies under; None where it lies under none."""
        return next((root for root in self.roots if skill.path.is_relative_to(root)), None)

    def offers(self, name: str) -> bool:
        """Whether there is a skill of that name that may be offered for routing."""
        skill = self.skills.get(name)
        return skill is not None and not skill.disable_model_invocation

    def count_without(self, available: Iterable[str] | None) -> int:
        """How many of the routable skills a caller may not use who is limited to these names; None
        means that all may be used."""
        if available is None:
            return 0
        named = self.skills.keys() & frozenset(available)
        if len(self.routable) < len(self.skills):
            named = set(filter(self.offers, named))
        return len(self.routable) - len(named)

    @property
    def left_out(self) -> tuple[Diagnostic, ...]:
        """Why skills may be missing: what could not be loaded, and what was not searched."""
        warnings = (found for found in self.notices if found.severity is not Severity.INFO)
        return (*self.failures, *warnings)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything odd: the search, the failures, each file, those of shadowed skills too."""
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
        read = (*self.skills.values(), *(lost.manifest for lost in self.shadowed))
        of_files = (diagnostic for manifest in read for diagnostic in manifest.diagnostics)
        return (*self.notices, *self.failures, *shadowed, *of_files)


def merge_sources(
    snapshots: Iterable[tuple[SkillSource, SourceSnapshot]],
    *,
    hidden: frozenset[str] = frozenset(),
    enrichments: Mapping[Path, EnrichmentFile] = MappingProxyType({}),
    of_others: Mapping[str, Enrichment] = MappingProxyType({}),
) -> Catalog:
    """The catalog of what some sources give.

    Args:
        snapshots: the sources and what they give, strongest source first.
        hidden: names to leave out, in every source.
        enrichments: the user's own file, which speaks for every skill, by its path.
        of_others: what other processes know, by the digest of the skill's text.
    """
    snapshots = tuple(snapshots)
    given = [skill for _, found in snapshots for skill in found.skills if skill.name not in hidden]
    skills = {skill.name: skill for skill in reversed(given)}  # the first one of a name wins it
    lost = [skill for skill in given if skills[skill.name] is not skill]
    stale = {
        manifest.name: snapshot.stale[manifest.path]
        for _, snapshot in snapshots
        if snapshot.stale
        for manifest in snapshot.skills
        if manifest.path in snapshot.stale and skills.get(manifest.name) is manifest
    }
    if enrichments or of_others:
        own: dict[str, Enrichment] = {}
        for file in enrichments.values():
            own |= file.by_skill
        skills = {name: _enriched(skill, own, of_others) for name, skill in skills.items()}
    notices = [
        *(notice for file in enrichments.values() for notice in file.diagnostics),
        *(notice for _, found in snapshots for notice in found.notices),
    ]
    return Catalog(
        skills,
        tuple(
            ShadowedSkill(manifest, by=skills[manifest.name])
            for manifest in lost
            if not _same_file(skills[manifest.name], manifest)  # folders of two sources may overlap
        ),
        tuple(dict.fromkeys(fault for _, found in snapshots for fault in found.failures)),
        tuple(dict.fromkeys(notices)),
        stale=stale,
        roots=tuple(dict.fromkeys(root for source, _ in snapshots for root in source.roots)),
        hidden=hidden,
        snapshots=snapshots,
        enrichments=dict(
            item
            for files in (enrichments, *(s.enrichments for _, s in snapshots))
            for item in files.items()
        ),
        of_others=of_others,
    )


def _enriched(
    manifest: SkillManifest,
    own: Mapping[str, Enrichment],
    of_others: Mapping[str, Enrichment],
) -> SkillManifest:
    """A skill with what the user's own files or other processes say of it."""
    enrichment = own.get(manifest.name, manifest.enrichment)
    if enrichment is None or enrichment.digest not in (None, manifest.digest):
        enrichment = of_others.get(manifest.digest, enrichment)
    if enrichment == manifest.enrichment:
        return manifest
    return replace(manifest, enrichment=enrichment)


def load_catalog(
    roots: Iterable[Path],
    *,
    enrichment: Path | None = None,
    previous: Catalog | None = None,
    missing_ok: bool = False,
    quick: bool = False,
    max_skills: int = MAX_SKILLS,
    clock: Callable[[], int] = time.time_ns,
) -> Catalog:
    """The catalog of some folders; the arguments are those of ``FolderSource`` and of its ``read``.

    Args:
        enrichment: the user's own file of enrichments, for the skills of every root.
        previous: a catalog that this function gave, to take from it what did not change.

    Raises:
        ConfigurationError: a root is not a folder.
    """
    source = FolderSource(roots, missing_ok=missing_ok, max_skills=max_skills, clock=clock)
    before = None if previous is None else next((s for _, s in previous.snapshots), None)
    return merge_sources(
        [(source, source.read(before, quick=quick))],
        enrichments=read_own_enrichments(enrichment, previous),
    )


def read_own_enrichments(
    path: Path | None, previous: Catalog | None = None
) -> dict[Path, EnrichmentFile]:
    """The user's own file of enrichments, where there is one; parsed again when it has changed."""
    if path is None:
        return {}
    known = None if previous is None else previous.enrichments.get(path)
    return {path: read_enrichment(path, previous=known)}


def _same_file(one: SkillManifest, other: SkillManifest) -> bool:
    if not (one.has_file and other.has_file):
        return False
    return os.path.realpath(one.path) == os.path.realpath(other.path)
