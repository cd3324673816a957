"""Which answers a change of the catalog makes wrong, held against ranking every request anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from router.request import Request
from router.result import Decision, RoutingResult, Stage
from router.retrieval.encoders import WordLlamaEncoder
from router.retrieval.index import NEAREST, SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache
from router.stages.invalidation import (
    CachedAnswers,
    CatalogRecord,
    Key,
    SkillChanges,
    context_of,
    outdated,
)

BASE = "a" * 32
OTHER_BASE = "b" * 32
CLOSE = 1e-5
"""Chroma's cosines and those of a matrix product differ by float32's rounding."""

_ids = count()


def skill(name: str, description: str, **more: Any) -> SkillManifest:
    digest = hashlib.sha256(f"{name}\0{description}\0{more}".encode()).hexdigest()
    path = Path(f"/skills/{name}/SKILL.md")
    return SkillManifest(
        name=name, description=description, body="", path=path, digest=digest, **more
    )


def catalog_of(*skills: SkillManifest) -> Catalog:
    return Catalog({skill.name: skill for skill in skills})


def answer(*selected: str, suggested: tuple[str, ...] = ()) -> RoutingResult:
    return RoutingResult(
        decision=Decision.ROUTE,
        selected_skills=selected,
        suggested_skills=suggested,
        memory_layers=(),
        mission_brief="",
        reasoning="",
        confidence=0.9,
        calibrated=False,
        evidence_count=0,
        stage=Stage.LLM,
        from_cache=False,
        catalog_version="1",
        trace=(),
        id=f"answer-{next(_ids)}",
    )


def cached(*answers: tuple[str, str, RoutingResult]) -> dict[Key, RoutingResult]:
    return {(request, context, result.id): result for request, context, result in answers}


def plain(*answers: tuple[str, RoutingResult]) -> dict[Key, RoutingResult]:
    return cached(*((request, BASE, result) for request, result in answers))


def requests_in(keys: set[Key]) -> set[str]:
    return {request for request, _, _ in keys}


GIT = skill("git", "Commits, branches and merge conflicts.")
CAKE = skill("cake", "Bakes chocolate cakes.")
TAX = skill("tax", "Files the tax return.")
BREAD = skill("bread", "Bakes sourdough bread and chocolate muffins.")


@dataclass
class Indexes:
    """Makes indexes that share one store, as a router's do."""

    store: VectorStore
    encoder: WordLlamaEncoder

    def over(self, *skills: SkillManifest) -> SkillIndex:
        return SkillIndex.build(catalog_of(*skills), encoder=self.encoder, store=self.store)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    encoder = WordLlamaEncoder()
    store = VectorStore.open(tmp_path_factory.mktemp("index"), identity=encoder.identity)
    yield Indexes(store, encoder)
    store.close()


# --- what differs between two catalogs


def test_changes_are_told_by_what_is_offered_for_routing() -> None:
    before = catalog_of(GIT, CAKE, TAX)
    after = catalog_of(
        skill("git", "Other."), BREAD, skill("tax", "x", disable_model_invocation=True)
    )
    changes = SkillChanges.between(before, after)
    assert set(changes.added) == {"bread"}
    assert set(changes.changed) == {"git"}
    assert set(changes.removed) == {"cake", "tax"}


# --- which answers are wrong


async def test_a_changed_skill_takes_the_answers_that_chose_it_and_no_others(
    indexes: Indexes,
) -> None:
    answers = plain(
        ("merge the branch", answer("git")),
        ("merge and bake", answer("cake", "git")),
        ("file the tax return", answer("tax", suggested=("git",))),
        ("bake a chocolate cake", answer("cake")),
    )
    after = indexes.over(skill("git", "Commits and branches."), CAKE, TAX)
    wrong = await outdated(answers, after, SkillChanges((), {"git"}, ()))
    assert requests_in(wrong) == {"merge the branch", "merge and bake"}


async def test_a_removed_skill_takes_the_answers_that_name_it_and_no_others(
    indexes: Indexes,
) -> None:
    answers = plain(
        ("merge the branch", answer("git")),
        ("file the tax return", answer("tax", suggested=("cake", "git"))),
        ("bake a chocolate cake", answer("cake", suggested=("tax",))),
    )
    wrong = await outdated(answers, indexes.over(CAKE, TAX), SkillChanges((), (), {"git"}))
    assert requests_in(wrong) == {"merge the branch", "file the tax return"}


async def test_an_answer_that_names_what_is_not_offered_is_wrong_whatever_the_changes_say(
    indexes: Indexes,
) -> None:
    """Another process may have learnt it on an older snapshot."""
    answers = plain(("merge the branch", answer("git")), ("bake a cake", answer("cake")))
    wrong = await outdated(answers, indexes.over(CAKE, TAX), SkillChanges((), (), ()))
    assert requests_in(wrong) == {"merge the branch"}


async def test_an_added_skill_takes_the_answers_that_it_would_win_and_no_others(
    indexes: Indexes,
) -> None:
    answers = plain(
        ("bake sourdough bread", answer("cake")),
        ("bake a chocolate cake", answer("cake")),
        ("merge the branch", answer("git")),
    )
    wrong = await outdated(
        answers, indexes.over(GIT, CAKE, TAX, BREAD), SkillChanges({"bread"}, (), ())
    )
    assert requests_in(wrong) == {"bake sourdough bread"}


async def test_an_added_skill_has_to_beat_every_skill_that_was_chosen(indexes: Indexes) -> None:
    request = "bake sourdough bread and merge the branch"
    index = indexes.over(GIT, CAKE, TAX, BREAD)
    ranked = [match.name for match in (await index.rank(request)).matches]
    assert ranked[:2] == ["bread", "git"]
    answers = plain(
        (request, answer("cake", "git")), ("file the tax return", answer("tax", "bread"))
    )
    assert requests_in(await outdated(answers, index, SkillChanges({"git"}, (), ()))) == set()
    wrong = await outdated(answers, index, SkillChanges({"bread"}, (), ()))
    assert requests_in(wrong) == {request}


async def test_a_skill_that_a_request_does_not_allow_does_not_win_it(indexes: Indexes) -> None:
    request = "bake sourdough bread"
    allowing = {
        None: True,
        ("cake", "git"): False,
        ("bread", "cake"): True,  # it was asked for before it was there
        ("cake",): False,
    }
    answers = cached(
        *(
            (request, context_of(BASE, Request.parse(request, available=names)), answer("cake"))
            for names in allowing
        )
    )
    index = indexes.over(GIT, CAKE, BREAD)
    wrong = await outdated(answers, index, SkillChanges({"bread"}, (), ()))
    assert [key in wrong for key in answers] == list(allowing.values())


@pytest.mark.parametrize(
    "more", [{"scope": "a:b"}, {"history": ["which oven?"]}, {"scope": "x", "history": ["y"]}]
)
async def test_scope_and_history_change_nothing_about_who_wins(
    indexes: Indexes, more: dict[str, Any]
) -> None:
    request = "bake sourdough bread"
    context = context_of(BASE, Request.parse(request, **more))
    answers = cached((request, context, answer("cake")), ("merge it", context, answer("git")))
    index = indexes.over(GIT, CAKE, BREAD)
    wrong = await outdated(answers, index, SkillChanges({"bread"}, (), ()))
    assert requests_in(wrong) == {request}


async def test_an_answer_that_chose_nothing_gives_way_to_any_new_skill(indexes: Indexes) -> None:
    """The router learns none, but the file that answers are read from is anybody's."""
    answers = plain(("zzz", answer()))
    index = indexes.over(GIT, CAKE)
    assert await outdated(answers, index, SkillChanges({"git"}, (), ())) == set(answers)


WORDS = st.lists(
    st.sampled_from("bake bread cake merge branch commit tax return file chocolate oven".split()),
    min_size=1,
    max_size=6,
).map(" ".join)
CATALOGS = st.dictionaries(st.sampled_from([f"skill-{c}" for c in "abcdef"]), WORDS, min_size=1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CATALOGS, CATALOGS, st.lists(WORDS, min_size=1, max_size=8, unique=True), st.data())
async def test_what_is_dropped_is_what_a_new_ranking_of_every_request_says(
    indexes: Indexes,
    before: dict[str, str],
    after: dict[str, str],
    requests: list[str],
    data: st.DataObject,
) -> None:
    skills = [skill(name, text) for name, text in after.items()]
    old = catalog_of(*(skill(name, text) for name, text in before.items()))
    choices = st.lists(st.sampled_from(sorted(before)), min_size=1, max_size=2, unique=True)
    answers = plain(*((request, answer(*data.draw(choices))) for request in requests))
    index = indexes.over(*skills)
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    rivals = changed | (after.keys() - before.keys())

    expected = set()
    for key, result in answers.items():
        scores = {match.name: match.score for match in (await index.rank(key[0])).matches}
        chosen = set(result.selected_skills)
        if chosen & changed or chosen - after.keys():
            expected.add(key)
        elif rivals:
            held = max(scores[name] for name in chosen)
            won = max(scores[name] for name in rivals)
            assume(abs(won - held) > CLOSE)
            if won > held:
                expected.add(key)

    changes = SkillChanges.between(old, index.catalog)
    assert await outdated(answers, index, changes) == expected


# --- the scores that decide it


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CATALOGS, st.lists(WORDS, min_size=1, max_size=4))
async def test_scores_are_those_of_a_ranking(
    indexes: Indexes, skills: dict[str, str], requests: list[str]
) -> None:
    index = indexes.over(*(skill(name, text) for name, text in skills.items()))
    names = [*skills, "nobody"]
    table = await index.scores(requests, names)
    for request, row in zip(requests, table, strict=True):
        ranked = {match.name: match.score for match in (await index.rank(request)).matches}
        assert dict(zip(names, row, strict=True)) == pytest.approx(
            ranked | {"nobody": -np.inf}, abs=CLOSE
        )


async def test_only_far_skills_score_less_than_in_a_ranking_which_takes_them_for_nearer(
    indexes: Indexes,
) -> None:
    topics = "bread git tax violin tulip engine poem tennis harbour glacier".split()
    skills = [
        skill(f"{topic}-{number}", f"Helps with {topic} number {number}.")
        for topic in topics
        for number in range(13)
    ]
    index = indexes.over(*skills)
    names = [skill.name for skill in skills]
    assert len(names) > NEAREST
    requests = ["tune the violin", "water the tulips", "the engine is broken"]
    table = await index.scores(requests, names)
    for request, row in zip(requests, table, strict=True):
        ranking = await index.rank(request, limit=len(names))
        assert len(ranking.matches) == len(names)
        least = min(match.cosine for match in ranking.matches)
        for match in ranking.matches:
            score = row[names.index(match.name)]
            if match.cosine > least + CLOSE:
                assert score == pytest.approx(match.score, abs=CLOSE)
            else:
                assert score <= match.score + CLOSE


async def test_more_requests_than_there_are_remembered_vectors_are_scored(
    indexes: Indexes,
) -> None:
    index = indexes.over(GIT, CAKE)
    await index.rank("bake a cake")  # remembered, and first to be forgotten below
    requests = ["bake a cake", *(f"merge branch {number}" for number in range(1_100))]
    table = await index.scores(requests, ["git", "cake"])
    assert table[0, 1] > table[0, 0]
    assert (table[1:, 0] > table[1:, 1]).all()


# --- both caches as one


async def both(path: Path | None = None) -> tuple[ExactCache, FuzzyCache]:
    return ExactCache(), FuzzyCache(path=path)


async def test_the_answers_are_those_of_both_caches_and_of_one_base() -> None:
    exact, fuzzy = await both()
    context = context_of(BASE, Request.parse("x", scope="me"))
    shared, only_exact, only_fuzzy = answer("git"), answer("cake"), answer("tax")
    exact.set("Shared!", shared, BASE)
    await fuzzy.learn("Shared!", shared, BASE)
    exact.set("Exact", only_exact, context)
    await fuzzy.learn("Fuzzy", only_fuzzy, BASE)
    exact.set("Shared!", answer("git"), OTHER_BASE)
    await fuzzy.learn("Shared!", answer("git"), OTHER_BASE)
    assert CachedAnswers(exact, fuzzy, BASE).all() == cached(
        ("shared", BASE, shared), ("exact", context, only_exact), ("fuzzy", BASE, only_fuzzy)
    )


async def test_two_answers_to_one_request_are_both_seen() -> None:
    """The fuzzy cache keeps its own when it was left out of the second question."""
    exact, fuzzy = await both()
    old, new = answer("git"), answer("cake")
    await fuzzy.learn("merge", old, BASE)
    exact.set("merge", new, BASE)
    assert CachedAnswers(exact, fuzzy, BASE).all() == plain(("merge", old), ("merge", new))


async def test_what_is_discarded_is_gone_from_both_caches_and_from_the_file(
    tmp_path: Path,
) -> None:
    exact, fuzzy = await both(tmp_path / "fuzzy.sqlite3")
    for base in (BASE, OTHER_BASE):
        for request in ("merge", "bake"):
            result = answer("git")
            exact.set(request, result, base)
            await fuzzy.learn(request, result, base)
    answers = CachedAnswers(exact, fuzzy, BASE)
    answers.discard([key for key in answers.all() if key[0] == "merge"])
    # Read while the first is open: what a process leaves behind that is killed now.
    again = FuzzyCache(path=tmp_path / "fuzzy.sqlite3")
    for cache in (fuzzy, again):
        assert cache.find("merge", BASE).result is None
        assert cache.find("bake", BASE).result is not None
        assert cache.find("merge", OTHER_BASE).result is not None
    assert exact.get("merge", BASE) is None
    assert exact.get("bake", BASE) is not None
    assert exact.get("merge", OTHER_BASE) is not None
    again.close()
    fuzzy.close()


# --- the record


def test_the_record_tells_what_changed_since_it_was_written(tmp_path: Path) -> None:
    record = CatalogRecord(tmp_path / "catalog.json")
    record.write(catalog_of(GIT, CAKE))
    assert record.changes_to(catalog_of(GIT, CAKE)) == SkillChanges(set(), set(), set())
    changes = record.changes_to(catalog_of(skill("git", "Other."), TAX))
    assert changes == SkillChanges({"tax"}, {"git"}, {"cake"})


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b'{"git": 1}', b"\xff\xfe", b'"git"', b"null"]
)
def test_a_record_that_cannot_be_read_tells_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "catalog.json"
    if content is not None:
        path.write_bytes(content)
    assert CatalogRecord(path).changes_to(catalog_of(GIT)) is None


def test_a_record_that_cannot_be_written_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps({"git": GIT.digest}))
    (tmp_path / "catalog.new").mkdir()  # in the way of the new one
    record = CatalogRecord(path)
    record.write(catalog_of(CAKE))
    assert record.changes_to(catalog_of(CAKE)) is None
