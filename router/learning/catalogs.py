"""Recognises the catalog of a router among those that an evidence file knows.

Routers with different skills may share one evidence file, and those of one user do by default. They
share the labels, which name their skills. The account of the error bound and the calibrations
belong to one catalog: with those of another one, a router would take each skill for a changed one
and drop its outcomes.

Skills in folders are recognised by the folders: what they hold later is the same catalog, changed.
The tools of a program have no folder. Two sets of tools are one catalog when nearly all names are
the same, and two catalogs when half of them are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

MAX_CATALOGS: Final = 20
"""An evidence file remembers this many catalogs, those that were used last."""
SAME: Final = 0.5
"""Two sets of skills from the same folders are one catalog where they share at least this part of
the names of the smaller one."""
SAME_WITHOUT_FOLDERS: Final = 0.75
"""Two sets of tools without folders are one catalog where they share at least this part of the
names of the larger one."""
CATALOGS: Final = "catalog/"
"""The prefix of the names of the states that describe catalogs."""


@dataclass(frozen=True, slots=True)
class KnownCatalog:
    """A catalog that an evidence file knows.

    Attributes:
        key: identifies it in the names of its states, see ``state_of``.
        roots: the folders of its skills.
        skills: a digest of each skill's description, by name.
        used: when it was last stored, in seconds.
    """

    key: str
    roots: tuple[str, ...]
    skills: Mapping[str, str]
    used: float = 0.0

    @property
    def state(self) -> str:
        """The name of the state that describes it."""
        return CATALOGS + self.key

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types, for ``from_dict``."""
        return {"roots": self.roots, "skills": dict(self.skills), "used": self.used}

    @classmethod
    def from_dict(cls, key: str, state: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError, ValueError or AttributeError where it is none."""
        skills = {str(name): str(digest) for name, digest in state["skills"].items()}
        return cls(key, tuple(map(str, state["roots"])), skills, float(state["used"]))

    def shared(self, other: KnownCatalog, of: Callable[[int, int], int] = min) -> float:
        """The share of the smaller catalog's names that both have, or with ``max`` of the larger
        one's; 0 where one is empty."""
        names = of(len(self.skills), len(other.skills))
        return len(self.skills.keys() & other.skills.keys()) / names if names else 0.0

    def may_become(self, other: KnownCatalog) -> bool:
        """Whether the other one is this one, changed."""
        if self.roots != other.roots:
            return False
        if self.roots:
            return self.shared(other) >= SAME
        return self.shared(other, max) >= SAME_WITHOUT_FOLDERS


def recognise(
    known: Iterable[KnownCatalog], roots: tuple[str, ...], skills: Mapping[str, str]
) -> KnownCatalog:
    """The known catalog of these skills: the one that has exactly them or, of those that may have
    become them, the one that shares the most names. A new catalog where there is none."""
    now = KnownCatalog(_digest([*roots, *sorted(skills)]), roots, skills)
    found = sorted(known, key=lambda one: one.used, reverse=True)
    for one in found:
        if one.skills == skills:
            return one
    like = [one for one in found if one.may_become(now)]
    if like:
        return max(like, key=now.shared)
    key = now.key
    # A catalog that began with these skills, and has others now, may have this key.
    while any(one.key == key for one in found):
        key = _digest([key])
    return KnownCatalog(key, roots, skills)


def state_of(name: str, key: str) -> str:
    """The name of a state of the catalog with a key."""
    return f"{name}/{key}"


def _digest(said: list[str]) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
