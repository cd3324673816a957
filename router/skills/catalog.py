"""The catalog: one immutable snapshot of every skill that is installed.

A name is taken once. When several skills have it, the one in the earlier root wins, and within a
root the first in the order of paths; the others are kept as ``shadowed`` and reported.

The version is a digest of what the catalog offers, the names and contents of the winning skills,
and of nothing else: two catalogs with the same version route alike, wherever their folders lie.
Precedence counts through who wins. Skills are in the order of their names, so that the order too
depends on nothing but content.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from router.errors import ManifestError, UnknownSkill
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.discovery import scan_root
from router.skills.manifest import (
    MAX_KEPT_NAME,
    SkillManifest,
    manifest_digest,
    parse_manifest,
    read_manifest_bytes,
)


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
        version: 16 hex digits; equal for equal names and contents.
        routable: the skills that may be offered for routing, in the order of their names.
    """

    skills: Mapping[str, SkillManifest] = field(default_factory=dict)
    shadowed: tuple[ShadowedSkill, ...] = ()
    failures: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()
    version: str = field(init=False)
    routable: tuple[SkillManifest, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        skills = MappingProxyType(dict(sorted(self.skills.items())))
        content = hashlib.sha256()
        for name, manifest in skills.items():
            content.update(f"{name}\n{manifest.digest}\n".encode())  # a name is one line
        object.__setattr__(self, "skills", skills)
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


def load_catalog(roots: Iterable[Path], *, previous: Catalog | None = None) -> Catalog:
    """Load every skill under the roots, strongest root first.

    A file that cannot be loaded becomes a failure and disturbs no other. Manifests of ``previous``
    are reused where path and digest are unchanged: every file is read, only changed ones are
    parsed. File times are not relied on, because two saves may share one tick.

    Raises:
        ConfigurationError: a root is not a folder.
    """
    known: dict[Path, SkillManifest] = {}
    if previous is not None:
        known = {lost.manifest.path: lost.manifest for lost in previous.shadowed}
        known |= {manifest.path: manifest for manifest in previous.skills.values()}
    skills: dict[str, SkillManifest] = {}
    shadowed: list[ShadowedSkill] = []
    failures: list[Diagnostic] = []
    notices: list[Diagnostic] = []
    seen: set[Path] = set()
    for root in roots:
        scan = scan_root(root)
        notices += scan.diagnostics
        real_root = scan.root.resolve()
        for path in scan.files:
            # Roots may overlap; a file under two of them belongs to the stronger one. The search
            # follows no folder links, so the real place of a file is a matter of its root.
            place = real_root / path.relative_to(scan.root)
            if place in seen:
                continue
            seen.add(place)
            try:
                manifest = _load(path, known.get(path))
            except ManifestError as error:
                failures.append(Diagnostic.of_failure(error))
                continue
            winner = skills.setdefault(manifest.name, manifest)
            if winner is not manifest:
                shadowed.append(ShadowedSkill(manifest, by=winner))
    return Catalog(skills, tuple(shadowed), tuple(failures), tuple(notices))


def _load(path: Path, known: SkillManifest | None) -> SkillManifest:
    data = read_manifest_bytes(path)
    if known is not None and known.digest == manifest_digest(data):
        return known
    return parse_manifest(data, path=path)
