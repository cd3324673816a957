"""Which cached answers a change of the catalog makes wrong: those, and no others.

An answer is wrong now when it chose a skill that was changed, or names one that is not offered any
more, or when an added or changed skill would now win: it scores higher for that request than every
skill that was chosen. Both scores are taken from the new index, so only their order counts. A
request that was restricted to some skills is won by one of those only.

The digests of the skills that the caches were last made right for are kept in a file, so that what
changed while no router ran is found at the next start. This record is written last, and only when
what is wrong is gone from the caches' file: it may be older than the caches, never newer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import numpy as np

from router.flight import give_way
from router.private_files import private_folder
from router.request import Request
from router.result import RoutingResult
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache

if TYPE_CHECKING:
    from router.retrieval.index import SkillIndex
    from router.skills.catalog import Catalog

LOOKED_AT_AT_ONCE: Final = 500
"""Answers, in ``outdated``, between two looks at what else there is to do."""

Key: TypeAlias = tuple[str, str, str]
"""A normalised request, its context, and the id of the answer: another answer is another key."""


@dataclass(frozen=True, slots=True)
class SkillChanges:
    """Names of skills that are newly offered, that are other skills now, and that no longer are."""

    added: Collection[str]
    changed: Collection[str]
    removed: Collection[str]

    @classmethod
    def between(cls, before: Catalog, after: Catalog) -> Self:
        """What changed among the skills that are offered for routing."""
        return cls._of(_digests(before), _digests(after))

    @classmethod
    def _of(cls, old: Mapping[str, str], new: Mapping[str, str]) -> Self:
        return cls(
            added=new.keys() - old.keys(),
            changed={name for name in new.keys() & old.keys() if new[name] != old[name]},
            removed=old.keys() - new.keys(),
        )


class CachedAnswers:
    """Both caches as one body of answers; all whose context begins with ``base``."""

    def __init__(self, exact: ExactCache, fuzzy: FuzzyCache, base: str) -> None:
        self._exact = exact
        self._fuzzy = fuzzy
        self._base = base

    def all(self) -> dict[Key, RoutingResult]:
        """Every answer; one that both caches hold is here once."""
        return {(request, context, result.id): result for request, context, result in self._held()}

    def learnt_since(self, answers: Container[Key]) -> set[Key]:
        """The answers that are none of these."""
        return {
            key
            for request, context, result in self._held()
            if (key := (request, context, result.id)) not in answers
        }

    def _held(self) -> list[tuple[str, str, RoutingResult]]:
        return [*self._fuzzy.answers(self._base), *self._exact.answers(self._base)]

    def discard(self, keys: Iterable[Key]) -> bool:
        """Drop answers; whether they are gone from the file too, which may be busy or shut."""
        for request, context, _ in keys:
            self._exact.discard(request, context)
            self._fuzzy.discard(request, context)
        return self._fuzzy.flush()


async def outdated(
    answers: Mapping[Key, RoutingResult], index: SkillIndex, changes: SkillChanges
) -> set[Key]:
    """The answers that are wrong over the catalog of ``index``. Requests are let in between.

    Raises:
        EncoderError: a request cannot be encoded.
    """
    await give_way()
    offered = {skill.name for skill in index.catalog.routable}
    changed = frozenset(changes.changed)
    wrong = {
        key
        for key, result in answers.items()
        if not changed.isdisjoint(result.selected_skills)
        or not offered.issuperset((*result.selected_skills, *result.suggested_skills))
    }
    rivals = sorted(changed.union(changes.added))
    kept = [key for key in answers if key not in wrong]
    if not rivals or not kept:
        return wrong
    names = sorted({name for key in kept for name in answers[key].selected_skills}.union(rivals))
    place = {name: column for column, name in enumerate(names)}
    requests = list(dict.fromkeys(request for request, _, _ in kept))  # whoever asked them
    place_of = {request: row for row, request in enumerate(requests)}
    scores = await index.scores(requests, names)
    best_rivals = scores[:, [place[name] for name in rivals]].max(axis=1)
    for number, key in enumerate(kept):
        if number % LOOKED_AT_AT_ONCE == 0:
            await give_way()
        request, context, _ = key
        row, allowed = place_of[request], _allowed(context)
        if allowed is None:
            best = best_rivals[row]
        else:
            able = (scores[row, place[name]] for name in rivals if name in allowed)
            best = max(able, default=-np.inf)
        held = (scores[row, place[name]] for name in answers[key].selected_skills)
        if best > max(held, default=-np.inf):
            wrong.add(key)
    await give_way()
    return wrong


def context_of(base: str, asked: Request) -> str:
    """``base``, and everything else but the text that changes the answer to a request. Two requests
    share cache entries only when it is equal.

    The names that may be chosen are there in full, because a later catalog has to be held against
    them; the rest is a digest.
    """
    if asked.is_plain:
        return base
    turns = [[turn.role, turn.text] for turn in asked.history]
    return f"{base}:{digest([turns, asked.scope])}:{json.dumps(asked.available)}"


def _allowed(context: str) -> frozenset[str] | None:
    """The names that may be chosen in a context; None means every one."""
    if ":" not in context:
        return None
    return _names(context.split(":", 2)[2])


@lru_cache(maxsize=64)  # most requests of a program may choose among the same skills
def _names(json_list: str) -> frozenset[str] | None:
    names = json.loads(json_list)
    return None if names is None else frozenset(names)


def digest(value: object) -> str:
    """32 hex digits that are equal for equal JSON values."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class CatalogRecord:
    """The file that says which skills the caches were last made right for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def changes_to(self, catalog: Catalog) -> SkillChanges | None:
        """What changed since the record was written; None when there is no readable record."""
        old = self._read()
        if old is None:
            return None
        return SkillChanges._of(old, _digests(catalog))

    def write(self, catalog: Catalog) -> None:
        """Record these skills, in one step. A record that cannot be written is removed, so that the
        next start trusts no cached answer rather than a wrong one."""
        aside = self._path.with_suffix(".new")
        try:
            private_folder(self._path.parent)
            aside.write_text(json.dumps(_digests(catalog)), encoding="utf-8")
            os.replace(aside, self._path)  # noqa: PTH105 - atomic, and says so
        except OSError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, str] | None:
        try:
            raw = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
            return None
        return raw


def _digests(catalog: Catalog) -> dict[str, str]:
    return {skill.name: skill.routing_digest for skill in catalog.routable}
