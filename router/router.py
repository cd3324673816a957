"""The cascade: fuzzy cache, exact cache, LLM, vector fallback.

``SemanticRouter.route`` reads top to bottom: stages 1 and 2 are in ``router/stages/caches.py``, 3
and 4 in ``router/decision.py``. A request runs on one immutable ``Snapshot``, taken at its start: a
reload in the middle changes nothing for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, Self, TypedDict, Unpack

from router.concurrency.admission import Admission
from router.concurrency.loop_thread import OpenedInBlock
from router.concurrency.single_flight import SingleFlight
from router.concurrency.tasks import give_way
from router.errors import ConfigurationError, EncoderError, InvalidRequest, StoreError
from router.events import Events, Routed
from router.given import check_kind, check_list, check_part, checked_parts
from router.request import AnyTurn, Request, listed, names_in
from router.result import RoutingResult, StageTrace, answer_ids
from router.runtime import Runtime
from router.stages.answers import AnswerCache, LocalAnswers, configured_cache
from router.stages.caches import CacheStages, PreparedRequest
from router.stages.validation import Basis, DecidedBy, KeptAnswer, cache_context_of
from router.text import normalise

if TYPE_CHECKING:
    from router.cluster.cluster import Cluster
    from router.components import Snapshot
    from router.concurrency.breaker import BreakerState
    from router.decision import Decider
    from router.enrichment.asking import EnrichmentReport
    from router.learning.learner import AnsweredRequest, EvidenceCheck, Learner
    from router.llm.protocol import ChatModel, Price
    from router.ranking import RankedSkills
    from router.retrieval.discover import Discovered
    from router.retrieval.encoders import Encoder
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.changes import CatalogChange
    from router.skills.manager import SkillManager
    from router.skills.observers import CatalogObserver
    from router.skills.sources import SkillSource
    from router.stages.exact import ExactCache
    from router.stages.fuzzy import FuzzyCache

RECENT_ANSWERS: Final = 2_000
"""Answers that feedback can be given on while the router is open."""
ENCODING_BATCH: Final = 256
"""``route_many`` encodes this many requests at once."""
CHECKED_AT_ONCE: Final = 16
"""``route_many`` checks this many requests before it lets other tasks of the event loop run."""


class RouterParts(TypedDict, total=False):
    """What ``from_skills`` and ``from_tools`` hand on to the constructor of ``SemanticRouter``."""

    enrichment: str | Path | None
    encoder: Encoder | None
    models: Sequence[ChatModel] | None
    cache: AnswerCache | None
    use_semantic_cache: bool
    observers: Sequence[CatalogObserver]
    progress: Callable[[int, int], None] | None


class SemanticRouter(OpenedInBlock):
    """Routes requests to skills. Belongs to the event loop that first uses it.

        async with SemanticRouter() as router:
            result = await router.route("commit my changes")

    Callables that are subscribed to ``events`` are called with what happens (``router/events.py``):

        router.events.subscribe(my_sink)

    ``SyncSemanticRouter`` is the same for code that has no event loop, or sits inside one that it
    cannot await in.

    Methods that need an open router raise ``RuntimeError`` where it is closed or belongs to another
    event loop. Properties that give its parts, such as ``catalog``, also raise it where the router
    is not open yet."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        roots: Sequence[Path | str] | None = None,
        sources: Sequence[SkillSource | Path | str] | None = None,
        enrichment: str | Path | None = None,
        encoder: Encoder | None = None,
        models: Sequence[ChatModel] | None = None,
        cache: AnswerCache | None = None,
        use_semantic_cache: bool = True,
        observers: Sequence[CatalogObserver] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """A router over the configured roots and the shipped skills. Nothing is read or opened yet.

        Args:
            settings: None reads them from the environment and the working directory.
            roots: folders of skills in place of the configured ones, strongest first.
            sources: what skills come from, in place of ``roots``: ``SkillSource`` objects, and
                folders among them; strongest first.
            enrichment: a file of requests that an LLM has written for the skills, in place of the
                one that the settings name.
            encoder: in place of the one that the settings name.
            models: LLMs to ask, in fall-back order, in place of the configured ones.
            cache: where answers are kept, in place of this machine's memory and ``state_dir``;
                closed with the router.
            use_semantic_cache: False leaves the fuzzy cache out of every request.
            observers: called after every change of the catalog, once the change is effective.
            progress: called with (done, total) while skills are encoded.

        Raises:
            ConfigurationError: a setting is malformed, both ``roots`` and ``sources`` are given, or
                an argument is something else than it must be.
        """
        if roots is not None and sources is not None:
            raise ConfigurationError(
                "roots and sources: give one of them; sources may hold folders"
            )
        what, given = ("sources", sources) if roots is None else ("roots", roots)
        settings = _checked_settings(settings)
        models, observers = _checked_parts(encoder, models, cache, observers)
        check_kind("use_semantic_cache", use_semantic_cache, bool)
        if enrichment is not None:
            check_kind("enrichment", enrichment, str, Path)
            settings = settings.model_copy(update={"enrichment": Path(enrichment).expanduser()})
        self.settings = settings
        self.events = Events()
        self._use_semantic_cache = use_semantic_cache
        self.cluster: Cluster | None = None
        if settings.cluster.url is not None and cache is None:
            from router.cluster.cluster import Cluster

            self.cluster = Cluster(settings, self.events)
            cache, observers = self.cluster.answers, (*observers, self.cluster)
        self.cache: AnswerCache = configured_cache(settings) if cache is None else cache
        self._ids = answer_ids()
        self._caches = CacheStages(self.cache, self.events, self._ids)
        if settings.enrichment_on_save:
            from router.enrichment.asking import EnrichOnSave

            observers = (*observers, EnrichOnSave(self.enrich))
        sources_or_roots = None if given is None else _with_paths(what, given)

        def build() -> Snapshot:
            from router.components import assemble

            return assemble(
                settings,
                sources=sources_or_roots,
                encoder=encoder,
                models=models,
                progress=progress,
                events=self.events,
                peers=None if self.cluster is None else self.cluster.learning,
            )

        self._runtime = Runtime(
            build,
            self.cache,
            self.events,
            cluster=self.cluster,
            observers=observers,
            polling=settings.watch.polling,
        )
        self._flights: SingleFlight[RoutingResult] = SingleFlight()
        self._searches: SingleFlight[tuple[Discovered, ...]] = SingleFlight()
        self._admission = Admission(settings.max_pending)
        self._forget_count = 0
        self._answered: deque[AnsweredRequest] = deque(maxlen=RECENT_ANSWERS)

    @classmethod
    def from_skills(
        cls,
        *folders: str | Path,
        settings: Settings | None = None,
        **parts: Unpack[RouterParts],
    ) -> Self:
        """A router over exactly these folders, strongest first. ``parts`` are what the constructor
        takes besides, such as ``models``.

        Raises:
            ConfigurationError: no folder is given, or a setting is malformed.
        """
        if not folders:
            raise ConfigurationError("from_skills: name at least one folder of skills")
        return cls(settings, roots=folders, **parts)

    @classmethod
    def from_tools(
        cls,
        tools: Iterable[object],
        settings: Settings | None = None,
        *,
        name: str = "tools",
        **parts: Unpack[RouterParts],
    ) -> Self:
        """A router over exactly these tools.

        Args:
            tools: definitions of OpenAI, Anthropic or MCP, typed functions, or ``Tool`` objects.
                What comes back (``rank``, ``payload``) is the same object.
            settings: None reads them from the environment and the working directory.
            name: of the source, for errors and reports.
            parts: what the constructor takes besides, such as ``models``.

        Raises:
            SourceError: a tool cannot be used, or two have one name; the message names it.
            ConfigurationError: a setting is malformed.
        """
        from router.tools.source import ToolSource

        return cls(settings, sources=[ToolSource(tools, name=name)], **parts)

    async def open(self, *, to_decide: bool = True) -> Snapshot:
        """Read the skills and bring the index up to date; ``route`` does it when first called.

        Args:
            to_decide: False leaves it to the first request that no cache answers to load what only
                decisions need. That takes a tenth of a second on the event loop.

        Raises:
            ConfigurationError: a root does not exist, or a setting cannot be met.
            EncoderError: the encoder cannot be loaded.
            StoreError: the index or the cache cannot be opened.
        """
        return await self._runtime.open(to_decide=to_decide)

    @property
    def catalog(self) -> Catalog:
        """The skills that the next request is routed over."""
        return self._runtime.current.catalog

    @property
    def models(self) -> tuple[ChatModel, ...]:
        """The LLMs, in the order in which they are asked; empty when none is configured."""
        return self._runtime.current.parts.llm.models

    @property
    def breakers(self) -> tuple[tuple[ChatModel, BreakerState], ...]:
        """The LLMs, and whether the circuit breaker of each lets calls through."""
        return self._runtime.current.parts.llm.breakers

    @property
    def manager(self) -> SkillManager:
        """Loads, reloads, unloads and watches skills, and tells observers."""
        return self._runtime.manager

    async def aclose(self) -> None:
        """Answer the requests under way, then close stores and connections.

        New requests are refused from now on: a closed router stays closed. Closing twice is fine.
        """
        await self._runtime.aclose(after=self._finish_requests)

    async def _finish_requests(self) -> None:
        await self._flights.finish()
        while not self._admission.empty:  # some requests still wait for their turn
            await asyncio.sleep(0)
            await self._flights.finish()
        await self._searches.finish()
        last = self._runtime.snapshot
        if last is not None and last.parts.learner is not None:
            await last.parts.learner.keep_records(self._answered)

    async def reload(self) -> CatalogChange:
        """Look at the disk now, and exchange the snapshot if anything changed; says what.

        Requests under way finish on the snapshot that they started with. Cached answers are checked
        against the new skills when they are next asked for.

        Raises:
            EncoderError: a changed skill cannot be encoded; the old snapshot stays.
        """
        await self.open()
        return await self.manager.reload()

    async def route(
        self,
        request: str,
        *,
        available_skills: Iterable[str] | None = None,
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
        use_semantic_cache: bool = True,
    ) -> RoutingResult:
        """Pick the skills to load for a request.

        Args:
            request: what the user asks, at most 20,000 characters.
            available_skills: names that may be chosen; None means every installed skill. Names
                that are not installed are ignored.
            history: earlier turns of the conversation, oldest first, also as messages of a chat
                API. The LLM reads them; without it, a request that cannot stand alone is read with
                the user's latest turn and the beginning of the assistant's answer, and the trace
                says so.
            scope: whose request it is; cached answers never cross scopes.
            use_semantic_cache: False leaves the fuzzy cache out: it neither answers nor stores.

        Raises:
            InvalidRequest: the request or one of its parts cannot be routed.
            RouterError: the skills cannot be read or indexed at first use. An LLM that fails is
                no error: the trace says so and the vector stage decides. Nor is an encoder that
                fails or is late: retrieval then goes by words alone, says so, and keeps nothing.
            Overloaded: ``max_pending`` requests are under way already.
            ForkedProcess: the router was opened before this process was forked.
        """

        def read() -> Request:
            return Request.parse(request, available=available_skills, history=history, scope=scope)

        return await self._route(read, use_semantic_cache)

    async def _route(
        self, read: Callable[[], Request], use_semantic_cache: bool = True
    ) -> RoutingResult:
        """Answer the request that ``read`` gives once it is the request's turn."""
        began = perf_counter()
        snapshot = self._runtime.ready or await self._runtime.open()
        await self._admission.turn()
        parsed = read()
        prepared = self._prepare(snapshot, parsed, use_semantic_cache)
        answer, cache_trace = await self._caches.answer(prepared)
        if answer is None:
            with self._admission:
                answer = await self._shared_decision(snapshot, prepared, cache_trace)
            answer = answer.copy_with(id=next(self._ids))  # others may have been given the same
        if (learner := snapshot.parts.learner) is not None:  # for feedback
            self._answered.append(learner.record_of(answer, parsed, prepared.cache_context))
        if self.events.listening:
            self.events.emit(Routed(parsed.text, parsed.scope, answer, perf_counter() - began))
        return answer

    def _prepare(
        self, snapshot: Snapshot, parsed: Request, use_semantic_cache: bool
    ) -> PreparedRequest:
        """The request with its cache context, over the current skills and labels.

        Raises:
            InvalidRequest: ``use_semantic_cache`` is no boolean; a text would count as true.
        """
        check_kind("use_semantic_cache", use_semantic_cache, bool, error=InvalidRequest)
        learner = snapshot.parts.learner
        return PreparedRequest(
            parsed,
            cache_context_of(snapshot.base_context, parsed),
            snapshot.index,
            "" if learner is None else learner.evidence_digest,
            use_semantic_cache and self._use_semantic_cache,
        )

    async def _shared_decision(
        self, snapshot: Snapshot, prepared: PreparedRequest, cache_trace: tuple[StageTrace, ...]
    ) -> RoutingResult:
        """Decide a request that no cache answers, together with identical requests that come
        meanwhile. Where the decision may wait for an LLM or an encoder, those of this process share
        it; where it asks an LLM, so do those of other processes of the cluster. A request that
        comes after ``forget`` or feedback does not share a decision that began before."""

        async def decide() -> RoutingResult:
            return await self._decide_and_keep(snapshot, prepared, cache_trace)

        if not snapshot.waits:
            return await decide()
        text, context = prepared.request.text, prepared.cache_context
        version, cluster = snapshot.catalog.version, self.cluster
        epoch = self._forget_count if cluster is None else cluster.answers.epoch()
        key = normalise(text), context, prepared.use_fuzzy, version, epoch
        if cluster is None or not snapshot.parts.llm.models:
            return await self._flights.do(key, decide)
        flight = cluster.flight

        async def look() -> RoutingResult | None:
            cached, _ = await self._caches.answer(prepared, emit_events=False)
            return cached

        return await self._flights.do(
            key, lambda: flight.once(text, context, version, look=look, decide=decide)
        )

    async def _decide_and_keep(
        self, snapshot: Snapshot, prepared: PreparedRequest, cache_trace: tuple[StageTrace, ...]
    ) -> RoutingResult:
        """Run stages 3 and 4, and store a sure answer in the caches."""
        from router.decision import Decider

        # Requests take turns: all that began in one round of the event loop would otherwise compute
        # together in the next one, and block it.
        await self._admission.turn(is_inside=True)
        parsed, digest = prepared.request, prepared.evidence_digest
        forget_count, decider = self._forget_count, Decider(snapshot, self.settings, digest)
        decided = await decider.decide(parsed, cache_trace)
        # Do not store the answer where the skills were reloaded meanwhile (it could replace a newer
        # answer) or where somebody has meanwhile had an answer forgotten.
        now = self._runtime.snapshot
        is_current = now is not None and prepared.skill_index is now.index
        if decided.cache_as is not None and is_current and forget_count == self._forget_count:
            result, catalog = decided.result, prepared.skill_index.catalog
            basis = Basis.of(decided.cache_as, result.selected_skills, catalog, digest)
            use_fuzzy = prepared.use_fuzzy and decided.for_similar
            await self._caches.keep(
                parsed.text, prepared.cache_context, result, basis, catalog, use_fuzzy=use_fuzzy
            )
        if decided.audit is not None:
            audit = self._audit(decider, prepared, decided.audit)
            self._runtime.background.run(audit)
        return decided.result

    async def _audit(
        self, decider: Decider, prepared: PreparedRequest, check: EvidenceCheck
    ) -> None:
        """Ask the LLM about a request that the local model has answered. Where it disagrees, the
        answer is dropped from the caches."""
        if await decider.agrees(prepared.request, check) is False:
            await self._forget(prepared.request.text, prepared.cache_context)

    async def _forget(self, text: str, context: str) -> None:
        """Drop an answer from the caches. Decisions under way are not cached, and later requests do
        not share them: they may be the wrong answer once more."""
        self._forget_count += 1
        await self.cache.forget(text, context)

    async def look_up(
        self,
        request: str,
        *,
        available_skills: Iterable[str] | None = None,
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
        use_semantic_cache: bool = True,
    ) -> tuple[RoutingResult | None, tuple[StageTrace, ...]]:
        """What the caches would answer now, and the trace entries of both. Nothing is decided.

        Takes and raises what ``route`` does.
        """
        await self.open()
        parsed = Request.parse(request, available=available_skills, history=history, scope=scope)
        prepared = self._prepare(self._runtime.current, parsed, use_semantic_cache)
        return await self._caches.answer(prepared, emit_events=False)

    async def forget(
        self,
        request: str,
        *,
        available_skills: Iterable[str] | None = None,
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
    ) -> None:
        """Drop the cached answer to this request, for every process that shares the cache.

        Takes and raises what ``route`` does. It is no error where nothing is cached.
        """
        snapshot = await self.open()
        parsed = Request.parse(request, available=available_skills, history=history, scope=scope)
        await self._forget(parsed.text, cache_context_of(snapshot.base_context, parsed))

    async def route_many(
        self,
        requests: Iterable[str],
        *,
        available_skills: Iterable[str] | None = None,
        scope: str | None = None,
    ) -> list[RoutingResult]:
        """Route many requests, in the given order; the encoder works in batches.

        Raises:
            InvalidRequest: one of them cannot be routed; nothing is routed then. The message says
                which one.
            RouterError: as for ``route``.
        """
        if isinstance(requests, str):
            raise InvalidRequest("requests: expected a list of requests, not one string")
        texts = listed("requests", requests)
        parsed: list[Request] = []
        available = available_skills
        if available is not None:
            available = names_in("available skills", available)  # an iterator is read once only
        for number, text in enumerate(texts, start=1):
            if number % CHECKED_AT_ONCE == 0:
                await give_way()
            try:
                parsed.append(Request.parse(text, available=available, scope=scope))
            except InvalidRequest as error:
                raise InvalidRequest(f"request {number} of {len(texts)}: {error}") from None
        # More at a time than may be under way would be refused, and the results of all be lost.
        at_once = min(self.settings.max_concurrency, self.settings.max_pending)
        slots = asyncio.Semaphore(at_once)

        async def one(request: Request) -> RoutingResult:
            async with slots:
                return await self._route(lambda: request)

        snapshot = await self.open()
        results: list[RoutingResult] = []
        for start in range(0, len(parsed), ENCODING_BATCH):
            batch = parsed[start : start + ENCODING_BATCH]
            with suppress(EncoderError):  # each is then encoded by itself, or read without
                await snapshot.index.reader.remember([request.text for request in batch])
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(request)) for request in batch]
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None  # as ``route`` would have raised it
            results.extend(task.result() for task in tasks)
        return results

    async def rank(
        self,
        request: str,
        *,
        limit: int = 10,
        available: Iterable[str] | None = None,
        always_include: Iterable[str] = (),
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
    ) -> RankedSkills:
        """Rank the skills for a request; never refuses, asks no LLM, caches nothing. While an
        encoder on a server is down, words alone rank, and ``reasoning`` says so.

        What retrieval would decide stands beside the ranking. It is meant for programs that show a
        model the best tools in any case, and for those that decide for themselves.

        Args:
            request, history, scope: as for ``route``, but no LLM reads the history.
            limit: how many to give, in [1, 1000].
            available: names that may be ranked; None means every installed skill. The others are
                left out before anything is ranked, and ``left_out`` says how many there were.
            always_include: names to give in any case, as far as they are there and available.

        Raises:
            InvalidRequest: the request or one of its parts cannot be ranked.
            Overloaded: ``max_pending`` requests are under way already.
            RouterError: the skills cannot be read or indexed at first use.
        """
        from router.ranking import rank

        await self._runtime.open()
        await self._admission.turn()
        snapshot = self._runtime.current
        return await rank(
            Request.parse(request, available=available, history=history, scope=scope),
            catalog=snapshot.catalog,
            index=snapshot.index,
            limit=limit,
            always_include=always_include,
            caution=self.settings.vector.least_right,
        )

    def payload(self, name: str) -> object:
        """The program's own object for a tool or skill that it gave; None for one with a file.

        Raises:
            UnknownSkill: there is none of that name.
        """
        return self.catalog.get(name).payload

    async def discover(
        self,
        query: str,
        *,
        limit: int = 10,
        installed_only: bool = True,
        available: Iterable[str] | None = None,
        always_include: Iterable[str] = (),
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
    ) -> tuple[Discovered, ...]:
        """The best skills for a query, best first, each with the reason. Decides and caches
        nothing.

        Args:
            query: what is needed, at most 20,000 characters.
            limit, available, always_include, history, scope: as for ``rank``; the names are of
                installed skills.
            installed_only: False also searches the setting ``listings`` for skills that are not
                installed. They are suggestions, interleaved with the installed ones by rank, since
                their scores do not compare; no request is ever routed to them.

        Raises:
            InvalidRequest: the query or one of its parts cannot be used.
            Overloaded: ``max_pending`` requests are under way already.
            RouterError: skills cannot be read or indexed. A listing that cannot be read is no
                error: it is logged and left out.
        """
        from router.retrieval.discover import discover
        from router.stages.followup import in_context

        snapshot = self._runtime.ready or await self.open()
        parsed = Request.parse(query, available=available, history=history, scope=scope)
        context = in_context(parsed, snapshot.index.skill_names).context
        included = tuple(names_in("always_include", always_include))
        version = snapshot.catalog.version

        async def search() -> tuple[Discovered, ...]:
            await self._admission.turn()
            return await discover(
                parsed.text,
                context=context,
                available=parsed.available,
                always_include=included,
                catalog=snapshot.catalog,
                index=snapshot.index,
                limit=limit,
                listings=None if installed_only else snapshot.parts.listings,
            )

        key = parsed.text, context, parsed.available, included, limit, installed_only, version
        return await self._searches.do(key, search)

    async def enrich(
        self,
        skills: Iterable[str] | None = None,
        *,
        price: Price | None = None,
        max_cost: float | None = None,
        concurrency: int = 4,
        progress: Callable[[int, int], None] | None = None,
    ) -> EnrichmentReport:
        """Have the first LLM write requests for skills that have none, or have changed since, and
        route with them from then on.

        They go to ``enrichment.jsonl`` in the folder of each skill's root, or to the file that the
        setting ``enrichment`` names, as they come: when this is cancelled, they are kept.

        Args:
            skills: names of skills to ask about; None means all that need it.
            price: what the model costs.
            max_cost: dollars that this may cost, at least 0; needs ``price``.
            concurrency: questions under way at the same time, at least 1.
            progress: called with (done, total).

        Raises:
            ConfigurationError: no LLM is configured, a skill has no place to be written to,
                there is a budget and no price, or ``concurrency`` is below 1.
            UnknownSkill: there is no skill of one of the names.
            StoreError: a file cannot be written, or another run is writing.
        """
        from router.enrichment.asking import Asker, to_ask
        from router.enrichment.files import one_writer

        catalog = (await self.open()).catalog
        if not self.models:
            raise ConfigurationError("enrich: no LLM is configured")
        if max_cost is not None and price is None:
            raise ConfigurationError("enrich: max_cost needs the price of the model")
        if concurrency < 1:
            raise ConfigurationError("enrich: concurrency must be at least 1")
        asker = Asker(
            self.models[0],
            catalog,
            file=self.settings.enrichment,
            price=price,
            max_cost=max_cost,
            concurrency=concurrency,
            progress=progress,
            events=self.events,
        )
        with one_writer(self.settings.state_dir):
            report = await asker.run(to_ask(catalog, skills))
        await self.reload()
        return report

    async def feedback(
        self,
        result_id: str,
        skills: Iterable[str] | None = None,
        *,
        right: bool | None = None,
        scope: str | None = None,
    ) -> None:
        """Correct or confirm an earlier answer. This becomes a label at once: the same request gets
        the corrected answer from then on, and a wrong answer is dropped from the caches.

        Args:
            result_id: the ``id`` of one of the latest 2,000 answers of this router, or of the
                latest 10,000 of those that are closed and had the same ``state_dir``.
            skills: the skills that are right; an empty list says that none is.
            right: in place of ``skills``, whether the answer was right. Of a wrong one, each
                selected skill counts as wrong, and nothing is known about others.
            scope: of the request that was answered. An answer of another scope cannot be corrected.

        Raises:
            UnknownAnswer: it is not remembered, or is of another scope.
            InvalidRequest: a skill is not installed, or not exactly one of ``skills`` and
                ``right`` is given.
            StoreError: the evidence cannot be written.
            RuntimeError: learning is switched off.
        """
        await self.open()
        named = None if skills is None else [*dict.fromkeys(names_in("feedback: skills", skills))]
        past = await self.learner.feedback(
            result_id, named, right=right, scope=scope, recent=self._answered
        )
        if right is False or (named is not None and set(named) != set(past.skills)):
            await self._forget(past.text, past.context)
        snapshot = self._runtime.current
        if named is None or not all(map(snapshot.catalog.offers, named)):
            return  # no correction to cache, or one of its skills was removed meanwhile
        from router.decision import Decider

        result = Decider(snapshot, self.settings).corrected(past.text, named)
        catalog = snapshot.catalog
        basis = Basis.of(DecidedBy.PERSON, named, catalog)
        await self._caches.keep(
            past.text, past.context, result, basis, catalog, use_fuzzy=self._use_semantic_cache
        )

    async def learned(self) -> None:
        """Wait until the local model is fitted to all labels. Routing does not need this: it uses
        the latest model, and new ones are fitted in the background."""
        learner = (await self.open()).parts.learner
        if learner is not None:
            await learner.trainer.trained()

    @property
    def learner(self) -> Learner:
        """The labels, the local model, the error bound and the calibrations.

        Raises:
            ConfigurationError: learning is switched off.
            StoreError: the evidence cannot be opened.
        """
        learner = self._runtime.current.parts.learner
        if learner is not None:
            return learner
        if not self.settings.learning.enabled:
            raise ConfigurationError("setting learning.enabled: learning is switched off")
        from router.learning.evidence import evidence_file

        file = evidence_file(self.settings.evidence_directory)
        raise StoreError(file, "cannot be opened (the log says why)")

    @property
    def exact(self) -> ExactCache[KeptAnswer]:
        """The exact cache of this machine.

        Raises:
            ConfigurationError: answers are kept elsewhere.
        """
        return self._local_answers().exact

    @property
    def fuzzy(self) -> FuzzyCache:
        """The fuzzy cache of this machine.

        Raises:
            ConfigurationError: answers are kept elsewhere.
        """
        return self._local_answers().fuzzy

    def _local_answers(self) -> LocalAnswers:
        if not isinstance(self.cache, LocalAnswers):
            raise ConfigurationError("cache: this router keeps its answers elsewhere")
        return self.cache


def _checked_settings(settings: Settings | None) -> Settings:
    """The settings; those of the environment and the working directory where none are given."""
    from router.settings.settings import Settings

    if settings is None:
        return Settings()
    takes = "; from_tools takes tools, and from_skills folders"
    check_kind("settings", settings, Settings, way_out=takes)
    return settings


def _checked_parts(
    encoder: Encoder | None,
    models: Sequence[ChatModel] | None,
    cache: AnswerCache | None,
    observers: Sequence[CatalogObserver],
) -> tuple[Sequence[ChatModel] | None, Sequence[CatalogObserver]]:
    """The models and the observers as tuples, after a check of all four. The protocol of a part
    that is not given is not imported."""
    if encoder is not None:
        from router.retrieval.encoders import Encoder

        check_part("encoder", encoder, Encoder, "; the setting encoder.kind takes a name")
    if models is not None:
        from router.llm.protocol import ChatModel

        models = checked_parts(
            "models", models, ChatModel, "; the setting llm.providers takes names"
        )
    if cache is not None:
        check_part("cache", cache, AnswerCache, "; the setting cluster.url takes an address")
    if observers != ():
        from router.skills.observers import CatalogObserver

        observers = checked_parts("observers", observers, CatalogObserver)
    return models, observers


def _with_paths(what: str, sources: Sequence[SkillSource | Path | str]) -> list[SkillSource | Path]:
    check_list(what, sources)
    made = [Path(source) if isinstance(source, str) else source for source in sources]
    for source in made:
        if not isinstance(source, Path) and not hasattr(source, "read"):
            kind = type(source).__name__
            raise ConfigurationError(
                f"{what}: {kind} is neither a folder nor a source; from_tools takes tools"
            )
    return made
