"""The cascade: fuzzy cache, exact cache, LLM, vector fallback.

``SemanticRouter.route`` and ``_decide`` read top to bottom. What one request runs against is one
immutable ``Installed`` snapshot, taken at its start: a reload in the middle changes nothing for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from router.errors import ConfigurationError, InvalidRequest
from router.flight import SingleFlight
from router.request import Request, Turn
from router.result import Decision, Outcome, RoutingResult, Stage, StageTrace
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache
from router.text import normalise

if TYPE_CHECKING:
    from router.llm.protocol import ChatModel, OfferedSkill
    from router.retrieval.encoders import Encoder
    from router.retrieval.index import SkillIndex
    from router.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.registry import CatalogDiff, SkillRegistry
    from router.stages.llm import LLMStage
    from router.stages.verdict import Verdict

T = TypeVar("T")

ANSWERS: Final = 1
"""Generation of answers, part of every cache context. Raise it when new code must not replay what
older code decided."""

ENCODING_BATCH: Final = 256
"""Requests that ``route_many`` encodes at once."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The skills that one request runs against, from start to end.

    Attributes:
        catalog: the skills.
        index: retrieval over exactly these skills.
        base: digest of what else changes answers: the catalog's version and the settings.
    """

    catalog: Catalog
    index: SkillIndex
    base: str

    def context_of(self, asked: Request) -> str:
        """Digest of everything but the text that changes the answer to a request. Two requests
        share cache entries only when it is equal."""
        if asked.is_plain:
            return self.base
        turns = [[turn.role, turn.text] for turn in asked.history]
        return _digest([self.base, asked.available, turns, asked.scope])


class SemanticRouter:
    """Routes requests to skills. Belongs to the event loop that first uses it.

        async with SemanticRouter() as router:
            result = await router.route("commit my changes")

    ``SyncSemanticRouter`` is the same for code that has no event loop, or sits inside one that it
    cannot await in.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        roots: Sequence[Path] | None = None,
        encoder: Encoder | None = None,
        models: Sequence[ChatModel] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """A router over the configured roots and the shipped skills; no skill is read yet.

        Args:
            settings: None reads them from the environment and the working directory.
            roots: folders of skills in place of the configured ones, strongest first.
            encoder: in place of the one that the settings name.
            models: LLMs to ask, in fall-back order, in place of the configured ones.
            progress: called with (done, total) while skills are encoded.

        Raises:
            ConfigurationError: a setting is malformed.
        """
        if settings is None:
            from router.settings import Settings

            settings = Settings()
        self.settings = settings
        self._roots = roots
        self._encoder = encoder
        self._models = models
        self._progress = progress
        self.exact = ExactCache(
            max_entries=settings.exact.max_entries, ttl_seconds=settings.exact.ttl_seconds
        )
        self.fuzzy = FuzzyCache(
            similarity_threshold=settings.fuzzy.similarity_threshold,
            ttl_seconds=settings.fuzzy.ttl_seconds,
            max_entries=settings.fuzzy.max_entries,
            path=settings.state_dir / "fuzzy.sqlite3",
        )
        self._registry: SkillRegistry
        self._llm: LLMStage
        self._fingerprint: str
        self._installed: Installed | None = None
        self._closed = False
        self._changing = asyncio.Lock()
        self._flights: SingleFlight[RoutingResult] = SingleFlight()
        self._ids = _ids()

    @classmethod
    def from_skills(
        cls,
        *folders: str | Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """A router over exactly these folders, strongest first.

        Raises:
            ConfigurationError: no folder is given, or a setting is malformed.
        """
        if not folders:
            raise ConfigurationError("from_skills: name at least one folder of skills")
        return cls(settings, roots=[Path(folder) for folder in folders], progress=progress)

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self) -> Installed:
        """Read the skills and bring the index up to date; ``route`` does it when first called.

        Raises:
            ConfigurationError: a root does not exist, or a setting cannot be met.
            EncoderError: the encoder cannot be loaded.
            StoreError: the index or the cache cannot be opened.
            RuntimeError: the router is closed.
        """
        async with self._changing:
            self._check_open()
            if self._installed is None:
                return await _in_thread(self._build)
            return self._installed

    @property
    def catalog(self) -> Catalog:
        """The skills that the next request is routed over.

        Raises:
            RuntimeError: the router is not open yet.
        """
        if self._installed is None:
            raise RuntimeError("the router is not open; use `async with` or call open() first")
        return self._installed.catalog

    async def aclose(self) -> None:
        """Answer the requests under way, then close stores and connections.

        New requests are refused from now on: a closed router stays closed. Closing twice is fine.
        """
        self._closed = True
        async with self._changing:
            await self._flights.landed()
            installed, self._installed = self._installed, None
            self.fuzzy.close()
            if installed is not None:
                installed.index.close()
                await self._llm.aclose()

    async def reload(self) -> CatalogDiff:
        """Read the skills again and swap to the new snapshot; says what changed.

        Requests under way finish on the snapshot that they started with. Cached answers of
        another snapshot are never served: the catalog's version is part of their context.

        Raises:
            ConfigurationError: a root does not exist any more.
            EncoderError: a changed skill cannot be encoded; the old snapshot stays.
            RuntimeError: the router is closed.
        """
        async with self._changing:
            self._check_open()
            return await _in_thread(self._rebuild)

    async def route(
        self,
        request: str,
        available_skills: Iterable[str] | None = None,
        history: Sequence[Turn | str] = (),
        scope: str | None = None,
        use_semantic_cache: bool = True,
    ) -> RoutingResult:
        """Pick the skills to load for a request.

        Args:
            request: what the user asks, at most 20,000 characters.
            available_skills: names that may be chosen; None means every installed skill. Names
                that are not installed are ignored.
            history: earlier turns of the conversation, oldest first.
            scope: whose request it is; cached answers never cross scopes.
            use_semantic_cache: False leaves the fuzzy cache out: it is neither asked nor taught.

        Raises:
            InvalidRequest: the request or one of its parts cannot be routed.
            RouterError: the skills cannot be read or indexed at first use. An LLM that fails is
                no error: the trace says so and the vector stage decides.
            RuntimeError: the router is closed.
        """
        began = perf_counter_ns()
        self._check_open()
        installed = self._installed or await self.open()
        asked = Request.parse(request, available=available_skills, history=history, scope=scope)
        context = installed.context_of(asked)

        # Looked up first, so that an identical request is never answered by a neighbour.
        own = self.exact.get(asked.text, context)
        if own is not None:
            hit = _EXACT_HIT.copy_with(microseconds=_microseconds(began))
            return self._replay(own, Stage.EXACT, (_IDENTICAL, hit, *_NOT_NEEDED))
        exact = _EXACT_MISS.copy_with(microseconds=_microseconds(began))
        fuzzy = _FUZZY_LEFT_OUT
        if use_semantic_cache:
            began = perf_counter_ns()
            recall = self.fuzzy.find(asked.text, context)
            fuzzy = recall.trace(_microseconds(began))
            if recall.result is not None:
                return self._replay(recall.result, Stage.FUZZY, (fuzzy, _EARLIER, *_NOT_NEEDED))

        answer = await self._flights.do(
            (normalise(asked.text), context, use_semantic_cache),
            lambda: self._decide(asked, installed, context, fuzzy, exact),
        )
        return answer.copy_with(id=next(self._ids))  # others may have been given the same answer

    async def route_many(
        self,
        requests: Iterable[str],
        available_skills: Iterable[str] | None = None,
        scope: str | None = None,
    ) -> list[RoutingResult]:
        """Route many requests, in the given order; the encoder works in batches.

        Raises:
            InvalidRequest: one of them cannot be routed; nothing is routed then. The message says
                which one.
            RouterError, RuntimeError: as for ``route``.
        """
        texts = list(requests)
        available = available_skills
        if available is not None and not isinstance(available, str):
            available = list(available)  # it is read once for each request
        for number, text in enumerate(texts, start=1):
            try:
                Request.parse(text, available=available, scope=scope)
            except InvalidRequest as error:
                raise InvalidRequest(f"request {number} of {len(texts)}: {error}") from None
        gate = asyncio.Semaphore(self.settings.max_concurrency)

        async def one(text: str) -> RoutingResult:
            async with gate:
                return await self.route(text, available, scope=scope)

        installed = await self.open()
        results: list[RoutingResult] = []
        for start in range(0, len(texts), ENCODING_BATCH):
            batch = texts[start : start + ENCODING_BATCH]
            await installed.index.prepare(batch)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(text)) for text in batch]
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None  # what route itself would have raised
            results.extend(task.result() for task in tasks)
        return results

    async def _decide(
        self,
        asked: Request,
        installed: Installed,
        context: str,
        fuzzy: StageTrace,
        exact: StageTrace,
    ) -> RoutingResult:
        """Stages 3 and 4, for a request that no cache knows. A strong answer is learnt."""
        from router.stages.vector import decide
        from router.stages.verdict import is_generic, of_llm, of_retrieval, weakness, weigh

        skills, settings = installed.catalog.skills, self.settings.vector
        answer = await self._llm.choose(asked, await self._offer(asked, installed))
        weak = None if answer.choice is None else weakness(answer.choice, skills, settings)
        if answer.choice is not None and weak is None:
            verdict = of_llm(answer.choice)
            vector = _NOT_WEAK
            strong = True
        else:
            local = await decide(asked.text, installed.index, among=asked.available)
            if answer.choice is not None and weak is not None:
                verdict, vector = weigh(answer.choice, weak, local, settings)
                strong = False
            else:
                verdict = of_retrieval(asked, local, settings)
                routed = local.decision is Decision.ROUTE
                vector = local.trace(Outcome.ANSWERED if routed else Outcome.DECLINED)
                # An answer that stands in for a failed LLM call must not outlive the failure.
                strong = (
                    routed
                    and answer.outcome is Outcome.SKIPPED
                    and local.confidence >= settings.confidence_threshold
                    and not is_generic(local.selected, skills, settings)
                )
        trace = (fuzzy, exact, answer.trace(), vector)
        result = self._result(verdict, installed.catalog.version, trace)
        if strong:
            self.exact.set(asked.text, result, context)
            if fuzzy is not _FUZZY_LEFT_OUT:
                await self.fuzzy.learn(asked.text, result, context)
        return result

    async def _offer(self, asked: Request, installed: Installed) -> list[OfferedSkill]:
        """What the LLM may choose from: every skill, or the pinned ones and a shortlist."""
        from router.llm.protocol import OfferedSkill

        if not self._llm.has_models:
            return []
        allowed = None if asked.available is None else frozenset(asked.available)
        skills = {
            skill.name: skill
            for skill in installed.catalog.routable
            if allowed is None or skill.name in allowed
        }
        limit = self.settings.llm.max_offered
        names = list(skills)
        if len(names) > limit:
            pinned = [name for name in self.settings.pinned_skills if name in skills]
            ranking = await installed.index.rank(asked.text, among=asked.available, limit=limit)
            ranked = (match.name for match in ranking.matches)
            names = list(dict.fromkeys((*pinned, *ranked)))[: max(limit, len(pinned))]
        return [OfferedSkill(name, skills[name].description) for name in names]

    def _result(
        self, verdict: Verdict, catalog_version: str, trace: tuple[StageTrace, ...]
    ) -> RoutingResult:
        return RoutingResult(
            decision=verdict.decision,
            selected_skills=verdict.selected_skills,
            suggested_skills=verdict.suggested_skills,
            memory_layers=verdict.memory_layers,
            mission_brief=verdict.mission_brief,
            reasoning=verdict.reasoning,
            confidence=verdict.confidence,
            calibrated=False,
            stage=verdict.stage,
            from_cache=False,
            catalog_version=catalog_version,
            trace=trace,
            id=next(self._ids),
        )

    def _replay(
        self, kept: RoutingResult, stage: Stage, trace: tuple[StageTrace, ...]
    ) -> RoutingResult:
        """An earlier answer, given again."""
        return kept.copy_with(stage=stage, from_cache=True, trace=trace, id=next(self._ids))

    def _build(self) -> Installed:
        """Read the skills, load the encoder, bring the index up to date. Takes seconds."""
        from router.retrieval.encoders import build_encoder
        from router.retrieval.index import SkillIndex
        from router.retrieval.vectors import VectorStore
        from router.skills.discovery import configured_roots
        from router.skills.registry import SkillRegistry
        from router.stages.llm import LLMStage, models_from_settings

        settings = self.settings
        roots = configured_roots(settings) if self._roots is None else self._roots
        self._registry = SkillRegistry(roots)
        encoder = build_encoder(settings) if self._encoder is None else self._encoder
        models = models_from_settings(settings.llm) if self._models is None else self._models
        self._llm = LLMStage(models, settings=settings.llm)
        store = VectorStore.open(
            settings.state_dir / "index" / _digest([str(root) for root in self._registry.roots]),
            identity=encoder.identity,
        )
        try:
            catalog = self._registry.catalog
            index = SkillIndex.build(catalog, encoder=encoder, store=store, progress=self._progress)
        except BaseException:
            store.close()
            raise
        self._fingerprint = _digest(
            [
                ANSWERS,
                encoder.identity,
                [[model.provider, model.model] for model in models],
                settings.vector.model_dump(mode="json"),
                settings.llm.max_offered,
                settings.pinned_skills,
            ]
        )
        return self._install(catalog, index)

    def _rebuild(self) -> CatalogDiff:
        """Read the skills again, and exchange the snapshot."""
        from router.skills.registry import CatalogDiff

        before = self._installed or self._build()
        # Not the registry's own diff: after a failure the registry may be ahead of the snapshot.
        diff = CatalogDiff.between(before.catalog, self._registry.reload().after)
        same = diff.after.version == before.catalog.version  # but files may have moved
        self._install(diff.after, before.index if same else before.index.updated(diff.after))
        return diff

    def _install(self, catalog: Catalog, index: SkillIndex) -> Installed:
        base = _digest([self._fingerprint, catalog.version])
        self._installed = Installed(catalog, index, base)
        return self._installed

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this router is closed")


async def _in_thread(work: Callable[[], T]) -> T:
    """``asyncio.to_thread`` that never returns before the thread has finished.

    A thread cannot be cancelled. Were it left behind, it would go on writing to the index while
    the next caller does the same, and nobody would close what it opens.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _digest(value: object) -> str:
    """32 hex digits that are equal for equal JSON values."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _ids() -> Iterator[str]:
    """Identifiers of answers: unique across processes, and cheap to make."""
    prefix = secrets.token_hex(6)
    return (f"{prefix}-{number:x}" for number in itertools.count(1))


def _microseconds(since: int) -> float:
    return (perf_counter_ns() - since) / 1000


_IDENTICAL: Final = StageTrace(
    Stage.FUZZY, Outcome.SKIPPED, "the exact cache holds this very request"
)
_FUZZY_LEFT_OUT: Final = StageTrace(
    Stage.FUZZY, Outcome.SKIPPED, "the caller left the fuzzy cache out"
)
_EARLIER: Final = StageTrace(Stage.EXACT, Outcome.SKIPPED, "the fuzzy cache answered")
_EXACT_HIT: Final = StageTrace(Stage.EXACT, Outcome.ANSWERED, "an identical request")
_EXACT_MISS: Final = StageTrace(Stage.EXACT, Outcome.DECLINED, "no identical request is stored")
_NOT_WEAK: Final = StageTrace(Stage.VECTOR, Outcome.SKIPPED, "the LLM's route is strong")
_NOT_NEEDED: Final = (
    StageTrace(Stage.LLM, Outcome.SKIPPED, "a cache answered"),
    StageTrace(Stage.VECTOR, Outcome.SKIPPED, "a cache answered"),
)
