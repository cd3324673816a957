"""Linting a set of skills together: which skill takes the requests of which other one.

An author's example requests are part of the index, so a skill finds its own examples too easily.
They are therefore ranked as strangers' requests would be: the examples are dealt into folds, and
those of one fold are ranked by an index that was built without them, every skill losing its share
at once, so that no skill has an advantage over another. Up to ten examples a skill, each is left
out alone (leave one out); beyond that, a tenth of them together. It is the router's own index,
built over the skills that are linted and no others.

A request that another skill takes only when the example is missing is *taken*: it shows how near
two skills are. One that goes *astray*, to another skill although the index holds it, is lost in
service as well. Say ``git`` gives the example "undo my last commit". Without it ``editor`` ranks
first for that request: taken, and perhaps chance. With it ``editor`` ranks first all the same:
astray, and one of the two authors has something to change.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from router.lint.rules import Rule
from router.lint.skill_file import SkillFile
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic, short
from router.skills.manifest import SkillManifest, read_manifest_bytes
from router.skills.scaffold import PLACEHOLDERS
from router.text import stem, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_FOLDS: Final = 10
MIN_OTHER_SKILLS: Final = 3
"""A skill is greedy if it takes requests from at least this many others."""
MIN_LOST: Final = 3
LOST_SHARE: Final = 0.5
"""A skill that loses at least this many of its examples, and this share of them, when they are left
out, is described in other words than people use when they ask for it."""
SHOWN: Final = 3
"""How many requests a finding quotes at most, in each direction."""
SAME_COSINE: Final = 0.9
SAME_WORDS: Final = 0.7
"""Two descriptions are nearly the same when their vectors and their word sets are this alike; the
second is the share of common stems in all stems (Jaccard)."""


@dataclass(frozen=True, slots=True)
class LostExample:
    """An example request for which another skill ranks first when the index does not hold it.

    Attributes:
        request: the example.
        owner: the skill that gives it.
        winner: the skill that ranks first for it.
        far: whether it is nearer to another example of its owner than to any of the winner's.
    """

    request: str
    owner: str
    winner: str
    far: bool


async def lint_routing(
    catalog: Catalog,
    *,
    encoder: Encoder,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Diagnostic, ...]:
    """Find requests that skills of a catalog take from each other.

    Skills without examples are judged as winners only, those that say nothing of their own yet
    (``PLACEHOLDERS``) not at all. ``progress`` is called with (done, total)
    rounds of indexing.

    Raises:
        EncoderError: a skill or an example cannot be encoded.
        StoreError: no temporary index can be written.
    """
    meant = {s.name: s for s in catalog.routable if not s.description.startswith(PLACEHOLDERS)}
    if len(meant) < 2:
        return ()
    catalog = dataclasses.replace(catalog, skills=meant)
    taken, astray = await _rank_examples(catalog, encoder, progress)
    found = (
        *_stray(catalog, astray),
        *_described_in_other_words(catalog, taken),
        *_collisions(catalog, taken),
        *_greedy(catalog, taken),
        *_near_duplicates(catalog, encoder),
    )
    return tuple(sorted(found, key=lambda diagnostic: (diagnostic.path.parts, diagnostic.line)))


async def _rank_examples(
    catalog: Catalog, encoder: Encoder, progress: Callable[[int, int], None] | None
) -> tuple[list[LostExample], list[LostExample]]:
    """Examples that another skill takes when the index lacks them; and those that it takes although
    the index holds them."""
    folds = min(max(len(skill.examples) for skill in catalog.routable), MAX_FOLDS)
    owned = {skill.name: skill.examples for skill in catalog.routable if skill.examples}
    if not owned:
        return [], []
    nearness = _Nearness(owned, encoder)
    taken: list[LostExample] = []
    astray: list[LostExample] = []
    with tempfile.TemporaryDirectory(prefix="cascade-router-lint-") as folder:
        store = VectorStore(Path(folder), identity=encoder.identity)
        try:
            index = SkillIndex(encoder, store).updated(catalog)
            for fold in range(folds):
                if progress is not None:
                    progress(fold, folds + 1)
                index = index.updated(_without(catalog, fold, folds))
                left_out = [
                    (name, request)
                    for name, examples in owned.items()
                    for request in examples[fold::folds]
                ]
                await index.reader.remember(request for _, request in left_out)
                for owner, request in left_out:
                    winner = (await index.rank(request, limit=1)).matches[0].name
                    if winner != owner:
                        far = nearness.is_far(request, owner, winner)
                        taken.append(LostExample(request, owner, winner, far))
            if progress is not None:
                progress(folds, folds + 1)
            index = index.updated(catalog)
            for lost in taken:
                winner = (await index.rank(lost.request, limit=1)).matches[0].name
                if winner != lost.owner:
                    astray.append(dataclasses.replace(lost, winner=winner))
        finally:
            store.close()
    return taken, astray


def _without(catalog: Catalog, fold: int, folds: int) -> Catalog:
    """The catalog with the examples of one fold taken out of every skill."""
    return Catalog(
        {
            skill.name: dataclasses.replace(
                skill,
                examples=tuple(e for i, e in enumerate(skill.examples) if i % folds != fold),
                digest=f"{skill.digest}-{fold}" if skill.examples else skill.digest,
            )
            for skill in catalog.routable
        }
    )


class _Nearness:
    """Which skill's examples a request is nearest to."""

    def __init__(self, owned: dict[str, tuple[str, ...]], encoder: Encoder) -> None:
        requests = list(dict.fromkeys(itertools.chain.from_iterable(owned.values())))
        vectors = encoder.encode(requests)
        self._vector: dict[str, NDArray[np.float32]] = dict(zip(requests, vectors, strict=True))
        self._owned = owned

    def is_far(self, request: str, owner: str, winner: str) -> bool:
        """Whether the winner's examples are farther off than the owner's other ones.

        A winner without examples has said nothing that the request could be near to; an owner
        without another one leaves nothing to compare.
        """
        if winner not in self._owned:
            return True
        others = tuple(text for text in self._owned[owner] if text != request)
        return bool(others) and (
            self._nearest(request, self._owned[winner]) < self._nearest(request, others)
        )

    def _nearest(self, request: str, examples: Sequence[str]) -> float:
        vectors = np.stack([self._vector[text] for text in examples])
        return float((vectors @ self._vector[request]).max())


def _stray(catalog: Catalog, astray: Sequence[LostExample]) -> Iterator[Diagnostic]:
    for case in astray:
        skill = catalog.skills[case.owner]
        message = (
            f"the example {short(case.request)} finds {case.winner!r} first: say in the "
            f"description what it is about, or leave the example to {case.winner!r}"
        )
        yield Rule.STRAY_EXAMPLE.breach(skill.path, _line_of(skill, case.request), message)


def _described_in_other_words(
    catalog: Catalog, taken: Sequence[LostExample]
) -> Iterator[Diagnostic]:
    lost: dict[str, list[str]] = defaultdict(list)
    for case in taken:
        lost[case.owner].append(case.request)
    for owner, requests in lost.items():
        skill = catalog.skills[owner]
        if len(requests) >= max(MIN_LOST, LOST_SHARE * len(skill.examples)):
            message = (
                f"{len(requests)} of {len(skill.examples)} examples find other skills first when "
                f"the index does not hold them ({_quoted(requests)}): requests like them are lost; "
                "use their words in the description or the keywords"
            )
            yield Rule.STRAY_EXAMPLE.breach(skill.path, _line_of(skill, requests[0]), message)


def _collisions(catalog: Catalog, taken: Sequence[LostExample]) -> Iterator[Diagnostic]:
    requests: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in taken:
        requests[case.owner, case.winner].append(case.request)
    for (owner, winner), lost in requests.items():
        won = requests.get((winner, owner), [])
        if owner > winner or not won:
            continue
        skill = catalog.skills[owner]
        message = (
            f"{owner!r} and {winner!r} take each other's requests: {winner!r} is found first for "
            f"{_quoted(lost)}, {owner!r} for {_quoted(won)}: say in both descriptions what is the "
            "other's, or make one skill of them"
        )
        yield Rule.COLLISION.breach(skill.path, _line_of(skill, lost[0]), message)


def _greedy(catalog: Catalog, taken: Sequence[LostExample]) -> Iterator[Diagnostic]:
    by_winner: dict[str, list[LostExample]] = defaultdict(list)
    for case in taken:
        if case.far:
            by_winner[case.winner].append(case)
    for winner, cases in by_winner.items():
        others = Counter(case.owner for case in cases)
        if len(others) < MIN_OTHER_SKILLS:
            continue
        skill = catalog.skills[winner]
        firsts = [next(c.request for c in cases if c.owner == owner) for owner in others]
        message = (
            f"takes requests far from its own, {len(cases)} examples of {len(others)} other skills "
            f"({', '.join(list(others)[:SHOWN])}), such as {_quoted(firsts)}: narrow what the "
            "description and the hints claim"
        )
        yield Rule.GREEDY.breach(skill.path, _line_of(skill, skill.description), message)


def _near_duplicates(catalog: Catalog, encoder: Encoder) -> Iterator[Diagnostic]:
    """Two skills of one root are perhaps an oversight of their author. A skill that is described as
    one of another root takes the requests of somebody else's skill."""
    skills = catalog.routable
    vectors = encoder.encode([skill.description for skill in skills])
    stems = [frozenset(map(stem, words(skill.description))) for skill in skills]
    # Row by row: the whole matrix of a large catalog would not fit into memory.
    for place, skill in enumerate(skills):
        alike = np.flatnonzero(vectors[place + 1 :] @ vectors[place] >= SAME_COSINE)
        for other in (alike + place + 1).tolist():
            common = len(stems[place] & stems[other]) / max(len(stems[place] | stems[other]), 1)
            if common >= SAME_WORDS:
                yield _duplicate(skill, skills[other], catalog)


def _duplicate(one: SkillManifest, other: SkillManifest, catalog: Catalog) -> Diagnostic:
    roots = (catalog.root_of(one), catalog.root_of(other))
    if roots[0] == roots[1]:
        message = (
            f"the description is nearly that of {other.name!r}: say what sets the two apart, or "
            "remove one of them"
        )
        return Rule.NEAR_DUPLICATE.breach(one.path, _line_of(one, one.description), message)
    stronger = next(root for root in catalog.roots if root in roots)
    original, copy = (one, other) if stronger == roots[0] else (other, one)
    message = (
        f"the description is nearly that of {original.name!r} in {stronger}, which is "
        "searched first: remove the copy, or say what sets the two apart"
    )
    return Rule.COPY_IN_ANOTHER_ROOT.breach(copy.path, _line_of(copy, copy.description), message)


def _line_of(skill: SkillManifest, text: str) -> int:
    file = SkillFile.of(skill, read_manifest_bytes(skill.path))
    passage = next(passage for passage in file.head if passage.text == text)
    return file.place(passage, 0, len(text))


def _quoted(requests: Sequence[str]) -> str:
    shown = ", ".join(map(short, requests[:SHOWN]))
    more = len(requests) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
