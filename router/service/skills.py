"""The skills for people who look at them: a list, one skill in detail, and everything that is odd.

Oddities are found by the reader of the files, by the linter's rules, and by ranking the examples: a
skill may take the example requests of another one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from router.errors import ManifestError
from router.retrieval.encoder_kinds import build_encoder
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic, in_order
from router.skills.discovery import shipped_skills_root
from router.skills.manifest import read_manifest_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from router.retrieval.encoders import Encoder
    from router.router import SemanticRouter
    from router.skills.manifest import SkillManifest

MAX_LISTED: Final = 100
"""How many skills one list shows; a search finds the others."""


@dataclass(frozen=True, slots=True)
class ListedSkill:
    """One line of the list.

    Attributes:
        skill: as its file describes it.
        source: the folder or the source that it comes from.
        oddities: how many things about its file are odd.
        reason: why it was found; empty in a list that nobody searched.
    """

    skill: SkillManifest
    source: str
    oddities: int
    reason: str


@dataclass(frozen=True, slots=True)
class SkillList:
    """What was found.

    Attributes:
        skills: best first, or by name.
        total: how many there are in all.
    """

    skills: tuple[ListedSkill, ...]
    total: int


@dataclass(frozen=True, slots=True)
class SkillDetails:
    """One skill with what is odd about it, and what it shares its requests with.

    Attributes:
        listed: as in the list.
        findings: on its file.
        near: the skills that its own description finds beside it, nearest first.
    """

    listed: ListedSkill
    findings: tuple[Diagnostic, ...]
    near: tuple[str, ...]


async def list_skills(router: SemanticRouter, query: str, limit: int = MAX_LISTED) -> SkillList:
    """The skills that a query finds, best first; without one all of them, by name.

    Raises:
        InvalidRequest: the query cannot be used.
    """
    catalog = (await router.open()).catalog
    if not query:
        chosen = list(catalog.skills.values())[:limit]
        return SkillList(
            tuple(_listed(skill, catalog, "") for skill in chosen), len(catalog.skills)
        )
    found = await router.discover(query, limit=min(limit, 20))
    return SkillList(
        tuple(
            _listed(catalog.skills[one.name], catalog, one.reason)
            for one in found
            if one.name in catalog.skills
        ),
        len(catalog.skills),
    )


async def show_skill(router: SemanticRouter, name: str) -> SkillDetails:
    """One skill.

    Raises:
        UnknownSkill: there is none of that name.
    """
    snapshot = await router.open()
    catalog = snapshot.catalog
    skill = catalog.get(name)
    ranking = await snapshot.index.rank(skill.description, limit=6)
    broken = await asyncio.to_thread(rules_broken_by, skill)
    return SkillDetails(
        _listed(skill, catalog, ""),
        tuple(in_order([*skill.diagnostics, *broken])),
        tuple(match.name for match in ranking.matches if match.name != name)[:5],
    )


async def find_oddities(router: SemanticRouter, *, together: bool) -> list[Diagnostic]:
    """What is odd about the skills, by path and line. Works in a thread, for seconds where there
    are many skills.

    Args:
        router: whose skills.
        together: whether to look for skills that take each other's requests instead of at each
            skill by itself.
    """
    catalog = (await router.open()).catalog
    if not together:
        return in_order(await asyncio.to_thread(lint, catalog))
    files = Catalog(
        {skill.name: skill for skill in catalog.routable if skill.has_file}, roots=catalog.roots
    )

    def rank_all() -> list[Diagnostic]:
        return in_order(list(asyncio.run(lint_together(files, build_encoder(router.settings)))))

    return await asyncio.to_thread(rank_all)


def _listed(skill: SkillManifest, catalog: Catalog, reason: str) -> ListedSkill:
    return ListedSkill(skill, _source(skill, catalog.roots), len(skill.diagnostics), reason)


def _source(skill: SkillManifest, roots: tuple[Path, ...]) -> str:
    if not skill.has_file:
        return skill.origin
    if skill.path.is_relative_to(shipped_skills_root()):
        return "shipped"
    root = next((root for root in roots if skill.path.is_relative_to(root)), skill.path.parent)
    return str(root)


def lint(catalog: Catalog) -> list[Diagnostic]:
    """The findings on each skill by itself, those on shadowed skills included. Reads every file."""
    shadowed = tuple(lost.manifest for lost in catalog.shadowed)
    findings = [*catalog.diagnostics, *(d for skill in shadowed for d in skill.diagnostics)]
    for skill in (*catalog.skills.values(), *shadowed):
        findings += rules_broken_by(skill)
    return findings


def rules_broken_by(skill: SkillManifest) -> Sequence[Diagnostic]:
    """The linter's findings on one skill; none for a skill without a file."""
    from router.lint.manifest import lint_manifest

    if not skill.has_file:
        return ()
    try:
        return lint_manifest(skill, read_manifest_bytes(skill.path))
    except ManifestError as error:  # deleted since the catalog was loaded
        return (Diagnostic.of_failure(error),)


async def lint_together(
    catalog: Catalog, encoder: Encoder, progress: Callable[[int, int], None] | None = None
) -> Sequence[Diagnostic]:
    """Find skills that take each other's example requests. Takes seconds if there are many skills.

    Raises:
        EncoderError: a skill or an example cannot be encoded.
        StoreError: no temporary index can be written.
    """
    from router.lint.routing import lint_routing

    return await lint_routing(catalog, encoder=encoder, progress=progress)
