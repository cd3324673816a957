"""Recognises the catalog of a router among those that one file of evidence knows.

Routers over other skills may learn into one file, and those of one user do by default. Labels name
their skills and serve all of them. An account of the error bound and calibrations are of one
catalog: a router over other skills would take each skill for one that has changed, and drop what is
known of it.

Skills of folders have a place, and what lies there later is the same catalog, changed. Tools that a
program holds have none: two sets of them are one catalog when nearly all are alike, and two
catalogs when half are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

MAX_CATALOGS: Final = 20
"""Catalogs that one file remembers; those that were used last."""
SAME: Final = 0.5
"""A catalog that has changed is the same one while it shares this of the smaller one's names ..."""
SAME_WITHOUT_FOLDERS: Final = 0.75
"""... and, where neither has folders, this of the larger one's."""
CATALOGS: Final = "catalog/"
"""What the names of the states begin with that describe catalogs."""


@dataclass(frozen=True, slots=True)
class KnownCatalog:
    """A catalog that was learnt about.

    Attributes:
        key: what the names of its states end with, as ``state_of`` gives them.
        roots: the folders of its skills.
        skills: a digest of what each skill says of itself, by name.
        used: when it was kept last, in seconds.
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
    """The catalog that these skills are of: the one that has exactly these or, of those from the
    same folders, the one that shares most of them; a new one, which has them, where there is none.
    """
    now = KnownCatalog(_digest([*roots, *sorted(skills)]), roots, skills)
    found = sorted(known, key=lambda one: one.used, reverse=True)
    for one in found:
        if one.skills == skills:
            return one
    like = [one for one in found if one.may_become(now)]
    if like:
        return max(like, key=now.shared)
    key = now.key
    while any(one.key == key for one in found):  # one that began with these skills has others now
        key = _digest([key])
    return KnownCatalog(key, roots, skills)


def state_of(name: str, key: str) -> str:
    """The name of a state of the catalog with a key."""
    return f"{name}/{key}"


def _digest(said: list[str]) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
