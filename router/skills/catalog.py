"""The catalog: one immutable snapshot of every skill that is installed.

It is merged from the snapshots of the sources, strongest source first. If several skills have the
same name, the one of the earlier source wins, and within a source the earlier one; the others are
listed as ``shadowed`` and reported.

The version is a digest of the names and contents of the winning skills, and of nothing else: two
catalogs with the same version route alike, wherever their folders lie. Skills are in the order of
their names, so that the order, too, depends on content only.

Two kinds of enrichments are applied here, because they may be about the skills of any source. The
user's own file (setting ``enrichment``) wins over the enrichments that a source brings. Those of
other processes of a cluster (``peer_enrichments``) are used last, for skills that have no
up-to-date one.
"""

from __future__ import annotations

import hashlib
import os
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Final

from router.errors import UnknownSkill
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.difference import differing
from router.skills.discovery import MAX_SKILLS
from router.skills.enrichment import Enrichment, EnrichmentFile, read_enrichment
from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.sources import SkillSource, SourceSnapshot

NEW_PER_SKILL: Final = 64
"""New skills are inserted one by one if they are at most one in so many; else all are sorted
anew."""


@dataclass(frozen=True, slots=True)
class ShadowedSkill:
    """A skill that is not offered because a stronger one has its name."""

    manifest: SkillManifest
    by: SkillManifest

    @property
    def diagnostic(self) -> Diagnostic:
        """The warning that says so."""
        return Diagnostic(
            self.manifest.path,
            0,
            Severity.WARNING,
            "shadowed",
            f"not offered: the skill {self.manifest.name!r} at {self.by.path} is stronger; rename "
            "one of them, or name the folders in the order that you want (ROUTER_SKILLS)",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """A snapshot of the installed skills. Compare snapshots by ``version``.

    Attributes:
        skills: the skills by name, in the order of their names; read-only. A ``MappingProxyType``
            is taken as it is, any other mapping is copied in order.
        shadowed: skills that lost their name to a stronger one, strongest first.
        failures: what could not be loaded, as diagnostics of severity ``ERROR``.
        notices: what the search for skills skipped or could not follow.
        stale: skills offered in their last good version, and why the file cannot be loaded now.
        roots: the folders that were searched, strongest first.
        hidden: names that are left out because somebody unloaded them.
        snapshots: the snapshot of each source, strongest source first.
        enrichments: the files of enrichments that were read, by their paths.
        peer_enrichments: enrichments of other processes, by the digest of the skill's text.
        won: the winning skill of each name as its source gave it, in the order of the names: hidden
            skills are included, and ``enrichments`` and ``peer_enrichments`` are not applied.
            Read-only. The next catalog is computed from it.
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
    peer_enrichments: Mapping[str, Enrichment] = field(default_factory=dict, repr=False)
    won: MappingProxyType[str, SkillManifest] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    version: str = field(init=False)
    routable: tuple[SkillManifest, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        skills = self.skills
        if not isinstance(skills, MappingProxyType):
            skills = MappingProxyType({name: skills[name] for name in sorted(skills)})
        object.__setattr__(self, "skills", skills)
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
        """The strongest of the folders that contain the skill; None if none does."""
        return next((root for root in self.roots if skill.path.is_relative_to(root)), None)

    def offers(self, name: str) -> bool:
        """Whether there is a skill of that name that may be offered for routing."""
        skill = self.skills.get(name)
        return skill is not None and not skill.disable_model_invocation

    def count_without(self, available: Iterable[str] | None) -> int:
        """The number of routable skills that are not among these names, which limit a caller; 0 for
        None, which means no limit."""
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
        """All diagnostics: of the search, the failures, and each file, also of shadowed skills."""
        shadowed = (lost.diagnostic for lost in self.shadowed)
        read = (*self.skills.values(), *(lost.manifest for lost in self.shadowed))
        of_files = (diagnostic for manifest in read for diagnostic in manifest.diagnostics)
        stale = (_stale(skill) for skill in self.routable if skill.enrichment_is_stale)
        return (*self.notices, *self.failures, *shadowed, *of_files, *stale)


def _stale(skill: SkillManifest) -> Diagnostic:
    """The report on requests by an LLM that are for another version of a skill, or in doubt."""
    message = (
        "has changed since an LLM wrote requests for it, or most of them belong to other skills; "
        "they count less until it is asked again: router skills enrich"
    )
    return Diagnostic(skill.path, 0, Severity.INFO, "enrichment-stale", message)


def merge_sources(
    snapshots: Iterable[tuple[SkillSource, SourceSnapshot]],
    *,
    hidden: frozenset[str] = frozenset(),
    enrichments: Mapping[Path, EnrichmentFile] = MappingProxyType({}),
    peer_enrichments: Mapping[str, Enrichment] = MappingProxyType({}),
    previous: Catalog | None = None,
) -> Catalog:
    """The catalog of what some sources give.

    Args:
        snapshots: the sources and what they give, strongest source first.
        hidden: names to leave out, in every source.
        enrichments: the user's own file, by its path; it may be about every skill.
        peer_enrichments: enrichments of other processes, by the digest of the skill's text.
        previous: the catalog before, from which everything is reused that did not change.
    """
    snapshots = tuple(snapshots)
    won = _winners(snapshots, previous)
    lost: list[SkillManifest] = []
    if len(won) < sum(len(snapshot.skills) for _, snapshot in snapshots):
        for _, snapshot in snapshots:
            lost += [one for one in snapshot.skills if won[one.name] is not one]
    skills: Mapping[str, SkillManifest] = MappingProxyType(won)
    if hidden:
        skills = {name: manifest for name, manifest in won.items() if name not in hidden}
    stale = {
        manifest.name: snapshot.stale[manifest.path]
        for _, snapshot in snapshots
        if snapshot.stale
        for manifest in snapshot.skills
        if manifest.path in snapshot.stale and skills.get(manifest.name) is manifest
    }
    if enrichments or peer_enrichments:
        own: dict[str, Enrichment] = {}
        for file in enrichments.values():
            own |= file.by_skill
        known = {} if previous is None else previous.skills
        skills = {
            name: _enriched(manifest, own, peer_enrichments, known.get(name))
            for name, manifest in skills.items()
        }
    notices = [
        *(notice for file in enrichments.values() for notice in file.diagnostics),
        *(notice for _, found in snapshots for notice in found.notices),
    ]
    return Catalog(
        skills,
        tuple(
            ShadowedSkill(manifest, by=winner)
            for manifest in lost
            if (winner := skills.get(manifest.name)) is not None  # else hidden
            and not _same_file(winner, manifest)  # the folders of two sources may overlap
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
        peer_enrichments=peer_enrichments,
        won=MappingProxyType(won),
    )


def _winners(
    snapshots: Sequence[tuple[SkillSource, SourceSnapshot]], previous: Catalog | None
) -> dict[str, SkillManifest]:
    """The first skill of each name. To be quick, only the names in the parts of the sources that
    differ from the previous catalog are decided again."""
    skills_now = [found.skills for _, found in snapshots]
    before: list[Sequence[SkillManifest]] = []
    won: dict[str, SkillManifest] = {}
    if previous is not None:
        before = [found.skills for _, found in previous.snapshots]
        won = previous.won.copy()
    parts = [differing(old, new) for old, new in zip_longest(before, skills_now, fillvalue=())]
    gone = {skill.name for part, _ in parts for skill in part}
    found = {skill.name: skill for _, part in reversed(parts) for skill in reversed(part)}
    open_names = gone | found.keys()
    each_once = len(won) == sum(map(len, before)) and len(found) == sum(len(p) for _, p in parts)
    if not each_once or not found.keys() & won.keys() <= gone:
        # Several skills have one name, and some of them may be outside the parts that differ.
        found = {}
        for skills in reversed(skills_now):
            found |= {one.name: one for one in reversed(skills) if one.name in open_names}
    for name in open_names & won.keys():
        if name in found:
            won[name] = found.pop(name)
        else:
            del won[name]
    return _in_order(won, found) if found else won


def _in_order(
    skills: Mapping[str, SkillManifest], new: Mapping[str, SkillManifest]
) -> dict[str, SkillManifest]:
    """Skills, which are in the order of their names, with new ones inserted."""
    if len(new) > len(skills) // NEW_PER_SKILL:
        both = {**skills, **new}
        return {name: both[name] for name in sorted(both)}
    names, manifests = list(skills), list(skills.values())
    for name, manifest in new.items():
        place = bisect(names, name)
        names.insert(place, name)
        manifests.insert(place, manifest)
    return dict(zip(names, manifests, strict=True))


def _enriched(
    manifest: SkillManifest,
    own: Mapping[str, Enrichment],
    peer_enrichments: Mapping[str, Enrichment],
    known: SkillManifest | None,
) -> SkillManifest:
    """A skill with the enrichment of the user's own file or of another process. If the result
    equals the skill of the previous catalog (``known``), that object is returned, so that later
    comparisons by identity are quick."""
    enrichment = own.get(manifest.name, manifest.enrichment)
    if enrichment is None or enrichment.digest not in (None, manifest.digest):
        enrichment = peer_enrichments.get(manifest.digest, enrichment)
    if enrichment == manifest.enrichment:
        return manifest
    enriched = replace(manifest, enrichment=enrichment)
    if known is not None and known == enriched and known.payload is manifest.payload:
        return known
    return enriched


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
        previous=previous,
    )


def read_own_enrichments(
    path: Path | None, previous: Catalog | None = None
) -> dict[Path, EnrichmentFile]:
    """The user's own file of enrichments, if there is one; it is parsed again if it has changed.
    One that is not there yet is noted and no fault: it is named before the first enrichment."""
    if path is None:
        return {}
    if path.parent.is_dir() and not os.path.lexists(path):
        message = "not there yet; `router skills enrich` writes it"
        notice = Diagnostic(path, 0, Severity.INFO, "enrichment-file", message)
        return {path: EnrichmentFile(diagnostics=(notice,))}
    known = None if previous is None else previous.enrichments.get(path)
    return {path: read_enrichment(path, previous=known)}


def _same_file(one: SkillManifest, other: SkillManifest) -> bool:
    if not (one.has_file and other.has_file):
        return False
    return os.path.realpath(one.path) == os.path.realpath(other.path)
