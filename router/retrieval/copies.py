"""Copies: a skill that says nearly the same as one in a stronger root is not routed to beside it.

A copied folder would take requests from its original, whichever of the two happens to score higher.
So of two skills in different roots whose texts have nearly the same words, the one in the earlier
root wins, as it does when the names are the same. Two in one root are both kept: their author put
them there. A copy is routed to when the caller may use it and not its original.

Likely pairs are found by MinHash: two sets of words agree in the smallest of their hashes with the
probability of their Jaccard similarity (Broder, "On the resemblance and containment of documents",
1997). Each likely pair is then compared in full, so what is a copy does not depend on luck.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import filterfalse
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import FIELDS, Edit, SkillDocument
from router.skills.catalog import Catalog

ALIKE: Final = 0.9
"""A skill is a copy of another one when at least this share of the stems of both is common
(Jaccard)."""
LEAST_STEMS: Final = 20
"""Texts with fewer different stems are not compared: short descriptions are alike by chance."""
_COMPARED: Final = tuple(FIELDS.index(field) for field in ("description", "prose", "code"))
_BANDS: Final = 8
"""Pairs of hashes, of which a likely pair shares one. At a similarity of 0.9 two texts share none
with a probability of 0.000002."""
_MULTIPLIERS: Final = np.frombuffer(
    hashlib.shake_128(b"copies").digest(16 * _BANDS), dtype="<u8"
) | np.uint64(1)
"""Odd numbers of 64 bits, as good as random. ``numpy.random`` would take 10 ms to import."""


@dataclass(frozen=True, slots=True)
class _Sketch:
    """What is compared of one document.

    Attributes:
        stems: their hashes, each once.
        bands: pairs of their smallest hashes.
    """

    stems: NDArray[np.uint32]
    bands: tuple[tuple[int, int], ...]


class Copies:
    """Which skills of a catalog are copies of stronger ones. Immutable: ``edited`` gives those of
    the next catalog.

    Attributes:
        stronger: for each copy, the names of the stronger skills that say the same.
        originals: the names of all other skills, in their order.
    """

    def __init__(self) -> None:
        """Of no skills."""
        self.originals: tuple[str, ...] = ()
        self.stronger: Mapping[str, tuple[str, ...]] = {}
        self._sketches: Mapping[str, _Sketch] = {}

    def edited(self, edit: Edit, names: Sequence[str], roots: Mapping[str, int]) -> Copies:
        """The copies after a step.

        Args:
            edit: the step; one from nothing where ``covers`` says no.
            names: of all skills after it, in their order.
            roots: see ``root_numbers``.
        """
        after = copy(self)
        sketches: dict[str, _Sketch] = {}
        if roots:
            sketches |= self._sketches
            for document in edit.removed:
                del sketches[document.name]
            sketches |= {document.name: _sketch(document) for document in edit.added}
        after._sketches = sketches
        after.stronger = after._compared(roots)
        is_copy = after.stronger.__contains__
        after.originals = tuple(filterfalse(is_copy, names) if after.stronger else names)
        return after

    def covers(self, names: Collection[str]) -> bool:
        """Whether all of these skills were looked through; they are not while there is one root."""
        return len(self._sketches) == len(names)

    def without(self, names: Sequence[str] | None) -> Sequence[str]:
        """The names, of all skills where None is given, without the copies of others among them."""
        if names is None:
            return self.originals
        allowed = set(names)
        return [name for name in names if allowed.isdisjoint(self.stronger.get(name, ()))]

    def _compared(self, roots: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        likely: defaultdict[tuple[int, int, int], list[str]] = defaultdict(list)
        for name, sketch in self._sketches.items():
            for number, band in enumerate(sketch.bands):
                likely[(number, *band)].append(name)
        found: defaultdict[str, set[str]] = defaultdict(set)
        for names in likely.values():
            if len(names) == 1:
                continue
            # Each is compared with the strongest alone, and not every copy with every other one.
            strongest = min(names, key=lambda name: (roots[name], name))
            for name in names:
                if roots[name] > roots[strongest] and self._alike(name, strongest):
                    found[name].add(strongest)
        return {name: tuple(sorted(others)) for name, others in found.items()}

    def _alike(self, one: str, other: str) -> bool:
        ours, theirs = self._sketches[one].stems, self._sketches[other].stems
        shared = len(np.intersect1d(ours, theirs, assume_unique=True))
        return shared >= ALIKE * (len(ours) + len(theirs) - shared)


def root_numbers(catalog: Catalog) -> dict[str, int]:
    """The number of the root, or of the source without files, that each skill comes from; the
    strongest is 0. Empty where there is only one."""
    numbers: dict[str, int] = {}
    for source, _ in catalog.snapshots:
        for place in map(str, source.roots) if source.roots else (f"<{source.name}>",):
            numbers.setdefault(place, len(numbers))
    found: dict[str, int] = {}
    if len(numbers) < 2:
        return found
    for skill in catalog.routable:
        if skill.origin:
            found[skill.name] = numbers.get(f"<{skill.origin}>", 0)
            continue
        path = str(skill.path)
        under = (n for root, n in numbers.items() if path.startswith(root.rstrip(os.sep) + os.sep))
        found[skill.name] = next(under, 0)
    return found


def _sketch(document: SkillDocument) -> _Sketch:
    stems = frozenset().union(*(document.fields[field] for field in _COMPARED))
    # Not numpy.unique: it imports the whole of numpy.ma, which takes longer than this index does.
    hashed = np.array(sorted({zlib.crc32(stem.encode()) for stem in stems}), dtype=np.uint32)
    if len(hashed) < LEAST_STEMS:
        return _Sketch(hashed, ())
    least = (hashed[:, np.newaxis] * _MULTIPLIERS >> np.uint64(32)).min(axis=0)
    values = least.tolist()
    return _Sketch(hashed, tuple(zip(values[::2], values[1::2], strict=True)))
