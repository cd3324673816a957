"""The index over a catalog: ranking, updates, and what it asks of the encoder."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cascade import shipped_index
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.background import Background
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.scoring import FULLY_SCORED
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.enrichment import Enrichment
from router.skills.manifest import SkillManifest
from router.text import words

REQUEST = "resolve the merge conflict in config.yaml"


class CountingEncoder:
    """The bundled encoder, with a record of its calls and a fault that can be switched on."""

    def __init__(self, *, static: bool = True) -> None:
        self._encoder = BundledEncoder()
        self.identity = self._encoder.identity
        self.static = static
        self.requests: list[list[str]] = []
        self.documents: list[str] = []
        self.threads: set[int] = set()
        self.fault: str | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fault is not None:
            raise EncoderError(self.fault)
        self.requests.append(list(texts))
        self.threads.add(threading.get_ident())
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        if self.fault is not None:
            raise EncoderError(self.fault)
        self.documents += [head.split(".")[0] for head, _ in documents]
        return self._encoder.encode_documents(documents)


def skill(name: str, description: str, body: str = "") -> SkillManifest:
    digest = hashlib.sha256(f"{name}\0{description}\0{body}".encode()).hexdigest()
    path = Path(f"/skills/{name}/SKILL.md")
    return SkillManifest(name=name, description=description, body=body, path=path, digest=digest)


def catalog_of(*skills: SkillManifest) -> Catalog:
    return Catalog({skill.name: skill for skill in skills})


GIT = skill("git", "Commits, branches and merge conflicts.", "Resolve a merge conflict.")
CAKE = skill("cake", "Bakes chocolate cakes.", "Butter the tin.")
TAX = skill("tax", "Files the tax return.", "Collect receipts.")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


@pytest.fixture
def encoder() -> CountingEncoder:
    return CountingEncoder()


@pytest.fixture
def store(tmp_path: Path, encoder: CountingEncoder) -> Iterator[VectorStore]:
    store = VectorStore(tmp_path, identity=encoder.identity)
    Background.of(encoder, store)  # so that what the encoder is asked for is the test's own
    encoder.requests.clear()
    yield store
    store.close()


# --- ranking


async def test_the_skill_that_is_meant_comes_first(shipped: SkillIndex) -> None:
    ranking = await shipped.rank(REQUEST)
    assert ranking.matches[0].name == "git"
    assert {"merge", "conflict"} <= set(ranking.matches[0].terms)
    assert ranking.size == 16


async def test_ranking_is_deterministic(tmp_path: Path, shipped: SkillIndex) -> None:
    encoder = BundledEncoder()
    store = VectorStore(tmp_path, identity=encoder.identity)
    again = SkillIndex.build(shipped.catalog, encoder=encoder, store=store)
    for request in (REQUEST, "write tests and document them", "zzz", "the of and"):
        assert await again.rank(request) == await shipped.rank(request)
    store.close()


async def test_matches_are_ordered_by_score(shipped: SkillIndex) -> None:
    ranking = await shipped.rank("debug the crash and write a report about the data", limit=16)
    scores = [match.score for match in ranking.matches]
    assert scores == sorted(scores, reverse=True)
    assert ranking.lead == pytest.approx(scores[0] - scores[1])


async def test_the_clauses_of_a_request_are_ranked_by_themselves(shipped: SkillIndex) -> None:
    request = "squash the last four commits and write unit tests for the invoice calculator"
    ranking = await shipped.rank(request)
    parts = [clause.ranking for clause in ranking.clauses]
    assert [part.matches[0].name for part in parts] == ["git", "testing"]
    names = [match.name for match in ranking.matches]
    for part, asked, clause in zip(parts, ranking.clauses, request.split(" and "), strict=True):
        assert len(asked.scores) == len(asked.examples) == len(names)
        assert asked.scores[names.index(part.matches[0].name)] == part.matches[0].score
        assert asked.highest[0] - asked.highest[1] == pytest.approx(part.lead)
        assert max(asked.scores) <= asked.highest[0]
        assert 0 < asked.words <= len(words(clause))
        alone = await shipped.rank(clause)
        assert part.size == alone.size
        # What tells skills apart is asked of whole requests of one clause only.
        assert part.lead == pytest.approx(alone.lead, abs=0.25)
        assert part.evidence == pytest.approx(alone.evidence)
        assert part.matches[0].score == pytest.approx(alone.matches[0].score, abs=0.05)
    assert (await shipped.rank("squash the last four commits")).clauses == ()
    assert (await shipped.rank(f"{request}, using the git skill")).clauses == ()


async def test_a_context_is_read_with_a_request_and_asks_for_nothing_itself(
    shipped: SkillIndex,
) -> None:
    context = "squash the last four commits, then push them. Use /terminal for it"
    request = "write unit tests for the invoice calculator"
    alone, before = await shipped.rank(request, limit=16), await shipped.rank(context, limit=16)
    ranking = await shipped.rank(request, context=context, limit=16)
    assert (before.named, ranking.named) == (("terminal",), ())
    assert [clause.ranking.matches[0].name for clause in ranking.clauses] == ["testing"]
    # Half of the meaning is the request's, however many clauses there are before it.
    cosine = {one.name: one.cosine for one in ranking.matches}
    ours, theirs = ({one.name: one.cosine for one in r.matches} for r in (alone, before))
    both = [ours[name] + theirs[name] for name in cosine]
    assert np.corrcoef(both, list(cosine.values()))[0, 1] == pytest.approx(1)
    assert (await shipped.rank(f"{request} with /git", context=context)).named == ("git",)


async def test_a_skill_that_is_named_comes_first(shipped: SkillIndex) -> None:
    ranking = await shipped.rank("resolve the merge conflict with /terminal and the writer skill")
    assert ranking.named == ("terminal", "writer")
    assert [match.name for match in ranking.matches[:3]] == ["terminal", "writer", "git"]
    only = await shipped.rank("use /terminal", among=["git"])
    assert (only.named, [match.name for match in only.matches]) == ((), ["git"])


async def test_a_request_may_name_more_skills_than_are_scored_in_full(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    names = [f"make-{number:03}" for number in range(FULLY_SCORED + 10)]
    catalog = catalog_of(*(skill(name, "Makes something.") for name in names))
    index = SkillIndex.build(catalog, encoder=encoder, store=store)
    ranking = await index.rank(" ".join(reversed(names)), limit=3)
    assert ranking.named == tuple(names[: -FULLY_SCORED - 1 : -1])
    assert [match.name for match in ranking.matches] == names[:-4:-1]


async def test_the_limit_bounds_the_matches(shipped: SkillIndex) -> None:
    whole = await shipped.rank(REQUEST, limit=16)
    for limit in (1, 3, 10):
        assert (await shipped.rank(REQUEST, limit=limit)).matches == whole.matches[:limit]


async def test_only_allowed_skills_are_ranked(shipped: SkillIndex) -> None:
    ranking = await shipped.rank(REQUEST, among=["writer", "unknown", "testing", "writer"])
    assert {match.name for match in ranking.matches} == {"writer", "testing"}
    assert ranking.size == 2


@pytest.mark.parametrize("among", [[], ["unknown"]])
async def test_nobody_allowed_means_nothing_to_rank(shipped: SkillIndex, among: list[str]) -> None:
    assert (await shipped.rank(REQUEST, among=among)).matches == ()


async def test_an_empty_catalog_has_nothing_to_rank(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(Catalog(), encoder=encoder, store=store)
    assert (await index.rank(REQUEST)).matches == ()
    assert encoder.requests == []


@pytest.mark.parametrize("size", [1, 2, 3, 21])
async def test_catalogs_of_any_size_can_be_ranked(
    encoder: CountingEncoder, store: VectorStore, size: int
) -> None:
    others = [skill(f"other-{number}", f"Makes thing {number}.") for number in range(size - 1)]
    index = SkillIndex.build(catalog_of(GIT, *others), encoder=encoder, store=store)
    ranking = await index.rank("resolve a merge conflict", limit=size)
    assert len(ranking.matches) == size
    assert ranking.matches[0].name == "git"


async def test_many_new_skills_are_read_part_by_part_and_each_once(
    encoder: CountingEncoder, store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [skill(f"thing-{number}", f"Makes thing {number}.", "Glue.") for number in range(7)]
    whole = SkillIndex.build(catalog_of(GIT, *some), encoder=encoder, store=store)
    encoder.documents.clear()
    monkeypatch.setattr("router.retrieval.index.READ_AT_ONCE", 2)
    changed = replace(some[3], examples=("glue it",), digest="1" * 64)
    catalog = catalog_of(CAKE, *some[:3], changed, *some[4:], TAX)
    later = whole.updated(catalog)
    assert (later.encoded, sorted(encoder.documents)) == (3, ["cake", "tax", "thing 3"])
    parts = SkillIndex.build(catalog, encoder=encoder, store=store)
    monkeypatch.undo()
    anew = SkillIndex.build(catalog, encoder=encoder, store=store)
    for request in (REQUEST, "glue thing 3", "bake a cake and file the tax return"):
        assert await parts.rank(request) == await anew.rank(request)
        assert await later.rank(request) == await anew.rank(request)


async def test_a_skill_that_models_may_not_invoke_is_never_ranked(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    hidden = replace(GIT, disable_model_invocation=True)
    index = SkillIndex.build(catalog_of(hidden, CAKE), encoder=encoder, store=store)
    for among in (None, ["git", "cake"]):
        names = [match.name for match in (await index.rank(REQUEST, among=among)).matches]
        assert names == ["cake"]
    assert encoder.documents == ["cake"]


# --- examples


async def test_a_request_is_near_a_skill_when_it_is_near_its_examples(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    request = "is my dough too big?"
    plain = SkillIndex.build(catalog_of(GIT, CAKE, TAX), encoder=encoder, store=store)
    assert (await plain.rank(request)).matches[0].examples_weight == 0
    examples = ("the dough is too much for my tin", "where did my dough go?")
    told = replace(TAX, examples=examples, digest="1" * 64)
    index = plain.updated(catalog_of(GIT, CAKE, told))
    best = (await index.rank(request)).matches[0]
    assert best.name == "tax"
    assert best.examples_weight > 0
    assert best.examples > 0


async def test_requests_that_an_llm_has_written_count_as_examples(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    text = "the dough is too much for my tin"
    written = replace(TAX, enrichment=Enrichment(skill="tax", requests=(text, text)))
    index = SkillIndex.build(catalog_of(GIT, written), encoder=encoder, store=store)
    by_author = SkillIndex.build(
        catalog_of(GIT, replace(TAX, examples=(text,))), encoder=encoder, store=store
    )
    assert await index.rank(text) == await by_author.rank(text)


async def test_requests_for_another_version_of_a_skill_count_less(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    """They counted in full, although the skill may be for something else by now."""
    fresh = Enrichment(skill="tax", requests=("the dough is too much for my tin",), digest="d")
    told = replace(TAX, enrichment=fresh, digest="d")
    index = SkillIndex.build(catalog_of(GIT, told), encoder=encoder, store=store)
    changed = index.updated(catalog_of(GIT, replace(told, digest="e")))
    [before], [after] = [
        (await one.rank("too much dough", limit=1)).matches for one in (index, changed)
    ]
    assert (before.name, after.name) == ("tax", "tax")
    assert 0 < after.examples_weight < before.examples_weight
    assert (before.lexical > 0, after.lexical) == (True, 0)
    again = changed.updated(catalog_of(GIT, told))
    assert (await again.rank("too much dough", limit=1)).matches == (before,)


async def test_a_request_is_related_to_what_was_said_and_to_its_skill(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    baking = replace(
        skill("baking", "Bakes bread and cakes in an oven."),
        enrichment=Enrichment(skill="baking", requests=("when is the loaf done?",)),
    )
    index = SkillIndex.build(catalog_of(baking), encoder=encoder, store=store)
    said = "bake a loaf of rye bread, and then write to my landlord"
    related = await index.relation("when is the loaf done?", said, "baking")
    other = await index.relation("who is the king of Norway?", said, "baking")
    assert other < 0.33 < 1 < related  # the request is an example of the skill


async def test_only_new_examples_are_encoded(encoder: CountingEncoder, store: VectorStore) -> None:
    told = replace(TAX, examples=("count my receipts",))
    index = SkillIndex.build(catalog_of(GIT, told), encoder=encoder, store=store)
    encoder.requests.clear()
    more = replace(TAX, examples=("count my receipts", "what do I owe?"), digest="1" * 64)
    later = index.updated(catalog_of(GIT, more))
    assert encoder.requests == [["what do I owe?"]]
    anew = SkillIndex.build(later.catalog, encoder=encoder, store=store)
    assert await later.rank("what is owed?") == await anew.rank("what is owed?")


# --- encoding requests


def test_progress_is_told_of_skills_and_then_of_their_examples(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    written = Enrichment(skill="git", requests=("undo my commit", "join two branches"))
    told: list[tuple[int, int]] = []
    SkillIndex.build(
        catalog_of(replace(GIT, enrichment=written)),
        encoder=encoder,
        store=store,
        progress=lambda *now: told.append(now),
    )
    assert told == [(1, 1), (2, 2)]


async def test_requests_are_encoded_in_one_call_and_remembered(store: VectorStore) -> None:
    encoder = CountingEncoder(static=False)
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    requests = ["merge a branch", "bake a cake", "review the parser and commit the fix"]
    await index.reader.remember([*requests, requests[0]])
    assert encoder.requests == [
        ["merge a branch", "bake a cake", "review the parser", "commit the fix"]
    ]
    for request in requests:
        await index.rank(request)
    await index.reader.remember(requests)
    assert len(encoder.requests) == 1


@pytest.mark.parametrize("static", [True, False])
async def test_only_a_static_encoder_works_on_the_event_loop(tmp_path: Path, static: bool) -> None:
    encoder = CountingEncoder(static=static)
    store = VectorStore(tmp_path, identity=encoder.identity)
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    encoder.threads.clear()  # an index is built in a thread of its builder's
    await index.rank(REQUEST)
    assert (threading.get_ident() in encoder.threads) is static
    store.close()


async def test_an_encoder_that_fails_can_be_asked_again(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    encoder.fault = "unreachable"
    with pytest.raises(EncoderError, match="unreachable"):
        await index.rank(REQUEST)
    encoder.fault = None
    assert (await index.rank(REQUEST)).matches[0].name == "git"


# --- later catalogs


def test_a_change_that_retrieval_does_not_read_encodes_nothing(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(catalog_of(GIT), encoder=encoder, store=store)
    encoder.documents.clear()
    index.updated(catalog_of(replace(GIT, digest="0" * 64, license="MIT")))
    assert encoder.documents == []


async def test_an_index_that_was_updated_ranks_like_one_made_from_nothing(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    topics = [skill(f"s{n}", f"Knows t{n % 7} and t{n % 11} and t{n % 5}.") for n in range(60)]
    index = SkillIndex.build(catalog_of(*topics), encoder=encoder, store=store)
    later = index.updated(catalog_of(*topics[1:], TAX))
    anew = SkillIndex.build(later.catalog, encoder=encoder, store=store)
    for request in ("who knows t3 and t4", "the tax return", "t1"):
        assert await later.rank(request) == await anew.rank(request)


async def test_requests_are_answered_while_the_catalog_changes(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE, TAX), encoder=encoder, store=store)
    others = [skill("cake", f"Bakes cake number {number}.") for number in range(10)]

    def change() -> None:
        latest = index
        for cake in others:
            latest = latest.updated(catalog_of(GIT, cake))

    changing = asyncio.create_task(asyncio.to_thread(change))
    asked = 0
    while not changing.done():
        ranking = await index.rank(REQUEST, among=["git", "cake", "tax"])
        assert ranking.matches[0].name == "git"
        asked += 1
        await asyncio.sleep(0)
    await changing
    assert asked > 0


async def test_a_request_whose_vector_holds_no_numbers_is_not_ranked(
    encoder: CountingEncoder, store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    nothing = np.full((1, 256), np.nan, dtype=np.float32)
    monkeypatch.setattr(CountingEncoder, "encode", lambda *_: nothing)
    with pytest.raises(EncoderError, match="not a number"):
        await index.rank("what no model can read")


async def test_an_encoder_that_was_changed_under_its_name_is_told_as_that(
    encoder: CountingEncoder, store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    monkeypatch.setattr(CountingEncoder, "encode", lambda *_: np.ones((1, 8), dtype=np.float32))
    with pytest.raises(EncoderError, match="8 numbers, and those of the skills 256"):
        await index.rank("what another model reads")


async def test_a_request_is_compared_with_the_texts_of_others_and_the_background(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    requests = ("resolve the merge conflict of two branches", "call my mother")
    own, other = [(await index.rank(text)).background for text in requests]
    assert own is not None
    assert other is not None
    assert other.special < 0 < own.special
    assert own.clear <= own.special


async def test_a_lone_skill_is_compared_with_the_background_alone(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    index = SkillIndex.build(catalog_of(GIT), encoder=encoder, store=store)
    found = (await index.rank(REQUEST)).background
    assert found is not None
    assert found.clear == pytest.approx(found.special)


async def test_clauses_are_not_compared(encoder: CountingEncoder, store: VectorStore) -> None:
    index = SkillIndex.build(catalog_of(GIT, CAKE), encoder=encoder, store=store)
    ranking = await index.rank("merge the branch and bake a cake")
    assert ranking.background is not None
    assert [clause.ranking.background for clause in ranking.clauses] == [None, None]
