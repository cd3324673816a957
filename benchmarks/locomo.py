"""Does memory find the sessions that answer a question about a long conversation?

LoCoMo: ten conversations of months, told in up to 32 sessions. Turns are stored as episodic
memories, observations as semantic, events in a plugged-in layer ``temporal``, summaries of sessions
in the layer ``session``, each conversation a project of its own in one store. The audit's
corrections of the evidence are applied; a question counts when its evidence can be resolved.

Every question is asked of the product, without an LLM: layers through ``MemoryRouter``, merged by
``router.memory.recall.ranking``.
The merged list gives an order of sessions, each at its first item; the
first five are compared with those that hold the evidence: their share, and whether it is any. Then
each layer is left out, and company (what ranking adds for items of one session). The row
``recall`` asks ``Recaller``, which also drops what is not relevant and weighs recency and
usefulness.
Beside them stand grep (how many of the question's words a session holds), textbook BM25
(k1 = 1.2, b = 0.75) over sessions and turns, the encoder's nearest turns, and reciprocal rank
fusion (k = 60) of those three. Intervals are of 95%, by bootstrap over conversations.

Abstention: the confidence of a recall for questions whose premise is false (category 5), and for
questions asked of another conversation, where nothing answers them; each as the area under the ROC
curve against answerable questions.

The data folder holds ``locomo/*.jsonl``.

    python benchmarks/locomo.py --data FOLDER [--limit QUESTIONS] [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import bm25
from benchmarks.inputs import encoder_of, give, parsed, parser_of, read, say, with_encoder
from benchmarks.metrics import auroc
from router.memory.layers import built_in_layers
from router.memory.layers.stored import TimedLayer
from router.memory.model import (
    Classification,
    LayerQuery,
    LayerSpec,
    MemoryItem,
    QueryType,
    Scope,
)
from router.memory.query.rewrite import rewrite
from router.memory.recall import ranking
from router.memory.recall.answers import MemoryRoute
from router.memory.recall.memory_router import MAX_K, MemoryRouter
from router.memory.recall.recaller import Recaller
from router.memory.recall.relevance import Judged, Relevance
from router.memory.recall.weights import LayerWeights
from router.memory.stores.memory_store import MemoryStore
from router.memory.texts.contents import without_copies
from router.memory.texts.text_vectors import TextVectors
from router.result import LayerChoice
from router.retrieval.encoders import Encoder
from router.text import STOPWORDS, tokens

SESSIONS = 5
LAYERS = ("episodic", "semantic", "temporal", "session")
TEMPORAL = LayerSpec("temporal", "Events in the lives of those who talk, and when they happened.")
ADVERSARIAL = 5
PATIENCE_SECONDS = 30.0
"""Deadlines are another benchmark's subject."""
RESAMPLES = 2_000
BATCH = 500


@dataclass(frozen=True)
class Question:
    text: str
    adversarial: bool
    sessions: frozenset[str]
    """Those that hold its evidence."""


@dataclass
class Conversation:
    name: str
    items: list[MemoryItem] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        return Scope(project=self.name)

    @property
    def end(self) -> datetime:
        return max(item.created for item in self.items) + timedelta(days=1)

    def texts(self, layer: str) -> list[tuple[str, str]]:
        """Session and content of each item of a layer."""
        return [(session(item), item.content) for item in self.items if item.layer == layer]


def session(item: MemoryItem) -> str:
    return str(item.attributes["session"])


def load(folder: Path, limit: int | None) -> list[Conversation]:
    conversations: dict[str, Conversation] = {}
    dates: dict[tuple[str, str], datetime] = {}
    sessions: dict[tuple[str, str], str] = {}

    def add(sample: str, layer: str, number: str, content: str) -> None:
        items = conversations[sample].items
        items.append(
            MemoryItem(
                f"{layer}-{len(items)}",
                layer,
                content,
                dates[sample, number],
                scope=conversations[sample].scope,
                attributes={"session": number},
            )
        )

    for row in read(folder / "turns.jsonl"):
        sample, number = row["sample_id"], str(row["session"])
        conversations.setdefault(sample, Conversation(sample))
        said = datetime.strptime(row["date"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        dates[sample, number] = said
        sessions[sample, row["dia_id"]] = number
        caption = f" [{row['blip_caption']}]" if row["blip_caption"] else ""
        add(sample, "episodic", number, f"{row['speaker']}: {row['text']}{caption}")
    for row in read(folder / "observations.jsonl"):
        add(row["sample_id"], "semantic", digits(row["session"]), row["observation"])
    for row in read(folder / "session_summaries.jsonl"):
        add(row["sample_id"], "session", digits(row["session"]), row["summary"])
    for row in read(folder / "event_summaries.jsonl"):
        for name, of_session in row["event_summary"].items():
            for who, events in of_session.items():
                for event in events if who != "date" else ():
                    if event:
                        add(row["sample_id"], "temporal", digits(name), event)
    for row in read(folder / "questions.jsonl"):
        sample = row["sample_id"]
        evidence = row["audit_correct_evidence"] or row["evidence"]
        held = frozenset(sessions[sample, turn] for turn in evidence if (sample, turn) in sessions)
        if held:
            question = Question(row["question"], row["category"] == ADVERSARIAL, held)
            conversations[sample].questions.append(question)
    if limit is not None:
        for conversation in conversations.values():
            every = max(1, len(conversation.questions) * len(conversations) // limit)
            conversation.questions = conversation.questions[::every]
    return list(conversations.values())


def digits(name: str) -> str:
    found = re.search(r"\d+", name)
    if found is None:
        raise ValueError(f"{name!r} names no session")
    return found.group()


class EveryLayer:
    """A classifier that reads all layers; which ones a query needs is another benchmark's
    subject."""

    def classify(self, query: str) -> Classification:
        chosen = tuple(LayerChoice(name, 1.0) for name in LAYERS)
        return Classification((QueryType.GENERAL,), chosen, (), 1.0, (f"all, for {query!r}",))


@dataclass(frozen=True)
class Found:
    """How well one method did on one question."""

    share: float
    any: bool


def found(order: Iterable[str], question: Question) -> Found:
    first = list(dict.fromkeys(order))[:SESSIONS]
    hits = question.sessions.intersection(first)
    return Found(len(hits) / len(question.sessions), bool(hits))


def merged(
    query: LayerQuery,
    items: Sequence[MemoryItem],
    judged: dict[str, Judged],
    *,
    company: bool = True,
) -> list[str]:
    """The sessions of the items, best first."""
    alike = items if company else [replace(item, attributes={}) for item in items]
    found = [judged[item.content] for item in items]
    relevances, cosines = [one.relevance for one in found], [one.cosine for one in found]
    scores = ranking.rank(query.text, alike, relevances, cosines, period=query.period)
    return [session(items[place]) for place in np.argsort(-np.asarray(scores), kind="stable")]


class Methods:
    """The product on one store, asked by method."""

    def __init__(self, store: MemoryStore, encoder: Encoder, conversation: Conversation) -> None:
        layers = (*built_in_layers(store), TimedLayer(store, TEMPORAL, recency=0.01))
        self._relevance = Relevance(TextVectors(encoder))

        self._router = MemoryRouter(
            layers,
            classifier=EveryLayer(),
            weights=LayerWeights(),
            clock=conversation.end.timestamp,
            layer_deadline_seconds=PATIENCE_SECONDS,
            deadline_seconds=PATIENCE_SECONDS,
        )
        self._recall = Recaller(
            self._router, relevance=self._relevance.of, clock=conversation.end.timestamp
        )
        self._scope = conversation.scope
        self._now = conversation.end

    async def orders(self, query: str) -> dict[str, list[str]]:
        """Sessions, best first, by method."""
        route = await self._router.route(
            query, scope=self._scope, k=MAX_K, layers=LAYERS, strict=True
        )
        contents = list({item.content for report in route.results for item in report.items})
        judged = dict(zip(contents, self._relevance.of(query, contents), strict=True))
        asked = rewrite(query, now=self._now)

        def order(layers: Sequence[str], *, company: bool = True) -> list[str]:
            return merged(asked, items_of(route, layers), judged, company=company)

        answer = await self._recall.answer(
            query, self._scope, k=MAX_K, include_confidence_scores=False
        )
        return (
            {"all layers": order(LAYERS)}
            | {f"without {name}": order([n for n in LAYERS if n != name]) for name in LAYERS}
            | {"without company": order(LAYERS, company=False)}
            | {"recall": [session(recalled.item) for recalled in answer.items]}
        )

    async def confidence(self, query: str) -> float:
        """That of a recall as an agent would ask for."""
        return (await self._recall.answer(query, self._scope)).confidence

    async def aclose(self) -> None:
        await self._recall.aclose()
        await self._router.aclose()


def items_of(route: MemoryRoute, layers: Sequence[str]) -> list[MemoryItem]:
    found = (i for r in route.results if r.layer in layers for i in r.items)
    return list(without_copies(found).values())


Order = Callable[[str], list[str]]


def baselines(conversation: Conversation, encoder: Encoder) -> dict[str, Order]:
    turns = conversation.texts("episodic")
    of_turn = [number for number, _ in turns]
    names = list(dict.fromkeys(of_turn))
    texts = [" ".join(text for number, text in turns if number == name) for name in names]
    by_session = bm25(texts)
    by_turn = bm25([text for _, text in turns])
    vectors = encoder.encode([text for _, text in turns])
    belongs = np.asarray([names.index(number) for number in of_turn])

    def grep(query: str) -> NDArray[np.float64]:
        words = {word for word in tokens(query) if word not in STOPWORDS}
        return np.asarray([float(sum(w in text.lower() for w in words)) for text in texts])

    def best(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        of_session = np.full(len(names), -1.0)
        np.maximum.at(of_session, belongs, scores)
        return of_session

    def turn_words(query: str) -> NDArray[np.float64]:
        return best(by_turn(query))

    def turn_meaning(query: str) -> NDArray[np.float64]:
        return best(np.asarray(vectors @ encoder.encode([query])[0], dtype=np.float64))

    def fused(query: str) -> NDArray[np.float64]:
        sources = (by_session(query), turn_words(query), turn_meaning(query))
        ranks = [np.argsort(np.argsort(-scores, kind="stable")) for scores in sources]
        return np.asarray(sum(1 / (61 + rank) for rank in ranks))

    def ordered(scores: Callable[[str], NDArray[np.float64]]) -> Order:
        return lambda query: [names[n] for n in np.argsort(-scores(query), kind="stable")]

    return {
        "grep": ordered(grep),
        "BM25 over sessions": ordered(by_session),
        "BM25 over turns": ordered(turn_words),
        "encoder over turns": ordered(turn_meaning),
        "rank fusion of the three": ordered(fused),
    }


@dataclass(frozen=True)
class Line:
    """One method over all questions; shares in [0, 1], and intervals of 95%."""

    method: str
    questions: int
    share: float
    share_interval: tuple[float, float]
    any: float
    any_interval: tuple[float, float]


def line(method: str, by_conversation: Sequence[Sequence[Found]]) -> Line:
    shares = [[f.share for f in some] for some in by_conversation]
    anys = [[float(f.any) for f in some] for some in by_conversation]
    return Line(
        method,
        sum(map(len, by_conversation)),
        float(np.mean(np.concatenate(shares))),
        interval(shares),
        float(np.mean(np.concatenate(anys))),
        interval(anys),
    )


def interval(by_conversation: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Percentile bootstrap of the mean, whole conversations drawn: their questions go together."""
    sums = np.asarray([sum(some) for some in by_conversation])
    counts = np.asarray([len(some) for some in by_conversation])
    drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def fill(store: MemoryStore, conversations: Sequence[Conversation]) -> None:
    items = [item for conversation in conversations for item in conversation.items]
    for start in range(0, len(items), BATCH):
        store.save(items[start : start + BATCH])
        say(f"{min(start + BATCH, len(items))} of {len(items)} memories stored")


async def measure(arguments: argparse.Namespace, state: Path) -> tuple[list[Line], dict[str, Any]]:
    conversations = load(arguments.data / "locomo", arguments.limit)
    encoder = encoder_of(arguments)
    judged: dict[str, list[list[Found]]] = {}
    answerable: list[float] = []
    adversarial: list[float] = []
    foreign: list[float] = []
    store = MemoryStore.open(state, encoder=encoder)
    try:
        fill(store, conversations)
        for number, conversation in enumerate(conversations):
            say(f"conversation {number + 1} of {len(conversations)}")
            of_baselines = baselines(conversation, encoder)
            others = conversations[(number + 1) % len(conversations)].questions
            methods = Methods(store, encoder, conversation)
            results: dict[str, list[Found]] = {}
            for question in conversation.questions:
                orders = {name: order(question.text) for name, order in of_baselines.items()}
                orders |= await methods.orders(question.text)
                for name, order in orders.items():
                    results.setdefault(name, []).append(found(order, question))
                confidence = await methods.confidence(question.text)
                (adversarial if question.adversarial else answerable).append(confidence)
            foreign += [await methods.confidence(question.text) for question in others]
            await methods.aclose()
            for name, some in results.items():
                judged.setdefault(name, []).append(some)
    finally:
        store.close()
    abstention = {
        "auroc_adversarial": auroc(answerable, adversarial),
        "auroc_another_conversation": auroc(answerable, foreign),
        "below_half_answerable": float(np.mean(np.asarray(answerable) < 0.5)),
        "below_half_adversarial": float(np.mean(np.asarray(adversarial) < 0.5)),
        "below_half_another_conversation": float(np.mean(np.asarray(foreign) < 0.5)),
    }
    return [line(name, some) for name, some in judged.items()], abstention


def main() -> None:
    parser = with_encoder(parser_of(__doc__))
    parser.add_argument("--limit", type=int, help="about so many questions, of all conversations")
    arguments = parsed(parser)
    with tempfile.TemporaryDirectory() as state:
        lines, abstention = asyncio.run(measure(arguments, Path(state)))
    rows = [*map(vars, lines), {"what": "abstention", **abstention}]
    give(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
