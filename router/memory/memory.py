"""All of memory behind one object: layers, files and service, documents, contexts.

    async with Memory() as memory:
        await memory.save("We chose Postgres for its JSON support", layer="project", scope=mine)
        found = await memory.recall("why Postgres?", mine)

Two kinds of memory are kept apart. The layers are the router's own, in an embedded store. The files
(``.serena/memories``) belong to the project and its people; a Forgetful server may augment them.
The layer ``project`` reads the files as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from router.concurrency.loop_thread import OpenedInBlock, OwnLoop
from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError, InvalidRequest, StoreAway, StoreError, UnknownMemory
from router.memory.contexts.context import PRESETS, AssembledContext, RetrievalWeights, Strategy
from router.memory.model import (
    MAX_CONTENT_CHARACTERS,
    AnyLayer,
    AttributeValue,
    Classification,
    MemoryItem,
    Scope,
    moment_of,
    zone_of,
)
from router.memory.services.unified import SaveReport, ServiceFate
from router.memory.texts.contents import content_key
from router.memory.texts.questions import QUESTIONS, checked_questions
from router.request import check_text

if TYPE_CHECKING:
    from router.llm.protocol import ChatModel
    from router.memory.contexts.documents import IngestReport
    from router.memory.contexts.usage_patterns import ConsolidationCandidate
    from router.memory.curation.extraction import Extracted
    from router.memory.curation.proposals import Proposal
    from router.memory.parts import MemoryParts
    from router.memory.query.routing_table import RoutingTable
    from router.memory.recall.answers import MemoryRoute, RecallResult
    from router.memory.records import ForgetReport, Page
    from router.memory.services.delivery import SyncReport
    from router.memory.services.merge import MergeStrategy
    from router.memory.services.unified import UnifiedAnswer
    from router.retrieval.encoders import Encoder
    from router.settings.settings import Settings

T = TypeVar("T")


class Memory(OpenedInBlock):
    """An agent's memory. Belongs to the event loop that first uses it; ``SyncMemory`` is the same
    without ``await``."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        encoder: Encoder | None = None,
        models: Sequence[ChatModel] = (),
        layers: Iterable[AnyLayer] = (),
        routing_table: RoutingTable | None = None,
        count_tokens: Callable[[str], int] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A memory whose files are not opened yet.

        Args:
            settings: None reads them from the environment and the working directory.
            encoder: in place of the one that the settings name.
            models: LLMs; ``extract`` and ``consolidate`` ask the first one. The caller closes
                them. Layers are chosen and read without an LLM, because that must take
                milliseconds.
            layers: further layers, beside the built-in eleven; one of the same name replaces it.
            routing_table: routes to use instead of the default ones, by type of query.
            count_tokens: tokens of a text as the model counts them that reads the contexts; None
                counts with the tokenizer of the bundled encoder, and characters where it knows no
                token.
            clock: seconds since the epoch.

        Raises:
            ConfigurationError: a setting is malformed.
        """
        from router.settings.settings import Settings

        if settings is None:
            settings = Settings()
        elif not isinstance(settings, Settings):
            raise ConfigurationError(f"settings: expected Settings, not {type(settings).__name__}")
        self.settings = settings
        self._models = models
        self._clock = clock

        self._parts: MemoryParts | None = None

        def build() -> MemoryParts:
            from router.memory.parts import assemble_parts

            # Assigned in the thread: a caller that is cancelled would never get the result.
            self._parts = assemble_parts(
                settings,
                encoder=encoder,
                layers=tuple(layers),
                routing_table=routing_table,
                count_tokens=count_tokens,
                clock=clock,
            )
            return self._parts

        self._build = build
        self._loop = OwnLoop("memory", "SyncMemory")
        self._opening = asyncio.Lock()
        self._closed = False
        self._away = False  # the last attempt to open found the database unreachable
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(self) -> None:
        """Open the stores. The first call of any method does it, too.

        Raises:
            ConfigurationError: a setting cannot be met.
            EncoderError: the encoder cannot be loaded.
            StoreError: a store cannot be opened.
            RuntimeError: the memory is closed, or belongs to another event loop.
        """
        if not self._closed:
            self._loop.check()
        async with self._opening:
            if self._closed:
                raise RuntimeError("this memory is closed")
            if self._parts is None:
                try:
                    parts = await in_thread(self._build)
                except StoreError as error:
                    self._away = isinstance(error, StoreAway)
                    raise
                await parts.unified.resume()

    @property
    def away(self) -> bool:
        """Whether the database of the layers could not be reached when it was last needed. Does not
        ask it now."""
        return self._away if self._parts is None else self._parts.store.away

    async def aclose(self) -> None:
        """Finish what is under way and close all stores. Closing twice is fine."""
        self._loop.check(closing=True)
        self._closed = True
        async with self._opening:
            await self._idle.wait()
            parts, self._parts = self._parts, None
            if parts is not None:
                await parts.aclose()

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[MemoryParts]:
        """The parts, which stay open for as long as the block runs."""
        await self.open()
        parts = self._parts
        assert parts is not None  # noqa: S101 - open has set it, and nothing ran since
        self._calls += 1
        self._idle.clear()
        try:
            yield parts
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _in_thread(self, work: Callable[[MemoryParts], T]) -> T:
        """Do work that blocks, over the parts, in a thread."""
        async with self._in_use() as parts:
            return await in_thread(partial(work, parts))

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[MemoryParts]:
        """As ``_in_use``, after the items whose ``expires_at`` has passed were removed."""
        async with self._in_use() as parts:
            await in_thread(parts.store.expire)
            yield parts

    @asynccontextmanager
    async def _searching(self) -> AsyncIterator[MemoryParts]:
        """As ``_reading``, after the vectors were loaded into memory: that takes longer than the
        deadline of a layer."""
        async with self._reading() as parts:
            await in_thread(parts.store.prepare_search)
            yield parts

    async def classify(self, query: str) -> Classification:
        """What a query of 1 to 2,000 characters asks for, and which layers can answer it."""
        async with self._in_use() as parts:
            return parts.classifier.classify(query)

    async def route(
        self,
        query: str,
        *,
        scope: Scope | Mapping[str, object],
        k: int = 5,
        layers: Sequence[str] | None = None,
        strict: bool = False,
    ) -> MemoryRoute:
        """What the layers that fit a query found for it; see ``MemoryRouter.route``."""
        async with self._searching() as parts:
            return await parts.router.route(
                query, scope=Scope.parse(scope), k=k, layers=layers, strict=strict
            )

    async def recall(
        self,
        query: str,
        context: Scope | Mapping[str, object] | None = None,
        k: int = 5,
        cascade: bool = True,
        confidence_threshold: float = 0.5,
        max_cascade_depth: int = 2,
        include_confidence_scores: bool = True,
        explain_reasoning: bool = True,
        time_zone: str | tzinfo | None = None,
    ) -> RecallResult:
        """What memory has to say on a query; see ``Recaller.answer``.

        ``time_zone`` is that of who asks; None is that of the settings, else of this machine.
        """
        zone = self._zone(time_zone)
        async with self._searching() as parts:
            return await parts.recall.answer(
                query,
                context,
                k=k,
                cascade=cascade,
                confidence_threshold=confidence_threshold,
                max_cascade_depth=max_cascade_depth,
                include_confidence_scores=include_confidence_scores,
                explain_reasoning=explain_reasoning,
                time_zone=zone,
            )

    async def feedback(
        self,
        layer: str,
        *,
        useful: bool,
        route_id: str | None = None,
        query: str | None = None,
    ) -> None:
        """Say whether a layer's part of an answer was useful; later queries of that kind will weigh
        the layer accordingly; see ``MemoryRouter.feedback``."""
        async with self._in_use() as parts:
            await parts.router.feedback(layer, useful=useful, route_id=route_id, query=query)

    async def reset_feedback(self) -> None:
        """Forget all feedback on layers."""
        async with self._in_use() as parts:
            await parts.router.reset_weights()

    async def search(
        self,
        query: str,
        *,
        scope: Scope | Mapping[str, object] | None = None,
        limit: int = 10,
        lexical_only: bool = False,
        semantic_only: bool = False,
        strategy: MergeStrategy | str = "primary_first",
    ) -> UnifiedAnswer:
        """Search all memories at once: what the scope sees of the layers, the memory files, and the
        service; see ``UnifiedMemory.search``. ``lexical_only`` searches the files alone, and
        ``semantic_only`` the service alone."""
        parsed_scope, zone = Scope.parse(scope), self._zone(None)
        async with self._searching() as parts:
            with_layers = not (lexical_only or semantic_only)
            return await parts.unified.search(
                query,
                scope=parsed_scope,
                search_layers=partial(parts.search_layers, query, parsed_scope, limit, zone)
                if with_layers
                else None,
                limit=limit,
                lexical_only=lexical_only,
                semantic_only=semantic_only,
                strategy=strategy,
            )

    async def get(
        self,
        name: str,
        *,
        layer: str | None = None,
        scope: Scope | Mapping[str, object] | None = None,
    ) -> MemoryItem:
        """One memory: of the files by its name, or of a layer by its id. Raises UnknownMemory if
        there is none that the scope sees."""
        parsed_scope, zone = Scope.parse(scope), self._zone(None)
        async with self._in_use() if layer is None else self._reading() as parts:
            if layer is None:
                return (await parts.unified.get(name, scope=parsed_scope)).in_zone(zone)
            from router.memory.records import check_stored

            check_stored(layer, "layer")
            found = await in_thread(lambda: parts.store.get(layer, name, parsed_scope))
            return found.in_zone(zone)

    async def save(
        self,
        content: str,
        *,
        name: str | None = None,
        tags: Sequence[str] = (),
        layer: str | None = None,
        scope: Scope | Mapping[str, object] | None = None,
        type: str = "note",  # noqa: A002 - the item's field
        created: datetime | str | None = None,
        usefulness: float = 0.5,
        provenance: Sequence[str] = (),
        attributes: Mapping[str, AttributeValue] | None = None,
        supersede: Sequence[str | MemoryItem] = (),
        questions: Sequence[str] = (),
    ) -> SaveReport:
        """Remember something, durably before this returns.

        Without a layer it becomes a memory file, and the service is told. With a layer it becomes
        an item of that built-in layer, in the given scope.

        Args:
            content: 1 to 100,000 characters.
            name: of the file, or the item's id; None makes one from the content, so that the same
                text is one item of a layer and scope however often it is saved. What a later call
                with the same text does not name stays as it is. If ``edit`` has changed the text of
                that item, the old text becomes another one.
            tags: free labels.
            layer: one of the built-in layers.
            scope: to whom it belongs; this and all that follow are for layers only.
            type: what kind of thing it is.
            created: when it happened, as a ``datetime`` or in ISO 8601; a date is the beginning of
                that day. None means now. This and the times in ``attributes`` are of the time zone
                in the settings, else of this machine, where they name none.
            usefulness: in [0, 1].
            provenance: where it comes from.
            attributes: what the layer reads beside the text, such as ``status`` and ``due``. At the
                time in ``expires_at``, in ISO 8601, the item is removed.
            supersede: items of the same scope that this one replaces, or their ids. They are kept
                as history. If the layer holds lasting knowledge, they may be of another such layer;
                of two with one id, that of this layer is meant.
            questions: up to five that the item answers, in other words than its own, so that it is
                found by them too; they become its attribute ``questions``.

        Returns:
            Where it is, whether the service knows, and what it may replace.

        Raises:
            InvalidRequest: an argument cannot be used.
            UnknownMemory: there is no item to supersede.
            ReadOnlyMemory: a pattern protects the name.
            StoreError: it cannot be written.
        """
        async with self._in_use() as parts:
            if layer is None:
                for_layers_only = {
                    "the scope (user, project, session)": scope is not None,
                    "type": type != "note",
                    "created": created is not None,
                    "usefulness": usefulness != 0.5,
                    "provenance": bool(provenance),
                    "attributes": bool(attributes),
                    "supersede": bool(supersede),
                    "questions": bool(questions),
                }
                if any(for_layers_only.values()):
                    named = ", ".join(what for what, given in for_layers_only.items() if given)
                    raise InvalidRequest(
                        f"save: a memory file has content, name and tags; name a layer for {named}"
                    )
                return await parts.unified.save(content, name=name, tags=tags)
            zone = self._zone(None)
            from router.memory.layers import WRITABLE
            from router.memory.records import checked_values

            if layer not in WRITABLE:
                raise InvalidRequest(f"layer: {layer!r} is none of {', '.join(WRITABLE)}")
            values = checked_values(
                created=self._now() if created is None else moment_of("created", created, zone),
                type=type,
                tags=tags,
                usefulness=usefulness,
                provenance=provenance,
                attributes=attributes or {},
            )
            check_text("content", content, MAX_CONTENT_CHARACTERS)
            if questions:
                values["attributes"][QUESTIONS] = checked_questions(questions)
            item = MemoryItem(
                content_key(content)[:32] if name is None else name,
                layer,
                content,
                scope=Scope.parse(scope),
                **values,
            )
            given = {
                "created": created is not None,
                "type": type != "note",
                "tags": bool(tags),
                "usefulness": usefulness != 0.5,
                "provenance": bool(provenance),
            }
            unnamed = [field for field, is_given in given.items() if not is_given]
            saved, older = await in_thread(
                lambda: parts.records.save(
                    item, supersede=supersede, unnamed=unnamed, is_named=name is not None
                )
            )
            return SaveReport(
                saved.id,
                ServiceFate.OFF,
                layer=layer,
                item=saved.in_zone(zone),
                supersedes=tuple(item.in_zone(zone) for item in older),
            )

    async def list(
        self,
        *,
        scope: Scope | Mapping[str, object] | None = None,
        layers: Sequence[str] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page:
        """Items of the layers, or of some of them, that a scope sees, newest first: a page of 1 to
        1,000, which begins ``after`` what the page before gave as ``next``."""
        parsed_scope, zone = Scope.parse(scope), self._zone(None)
        async with self._reading() as parts:
            page = await in_thread(
                lambda: parts.records.page(parsed_scope, layers=layers, limit=limit, after=after)
            )
        return replace(page, items=tuple(item.in_zone(zone) for item in page.items))

    async def edit(
        self,
        name: str,
        *,
        layer: str,
        scope: Scope | Mapping[str, object] | None = None,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        attributes: Mapping[str, AttributeValue | None] | None = None,
    ) -> MemoryItem:
        """Change an item that is stored in exactly this scope; see ``Records.edit``."""
        parsed_scope, zone = Scope.parse(scope), self._zone(None)
        async with self._reading() as parts:
            edited = await in_thread(
                lambda: parts.records.edit(
                    layer, name, parsed_scope, content=content, tags=tags, attributes=attributes
                )
            )
        return edited.in_zone(zone)

    async def profile(
        self,
        *,
        scope: Scope | Mapping[str, object],
        limit: int = 1_000,
        after: str | None = None,
    ) -> Page:
        """What is known of a user and is not marked as replaced, newest first: a page of 1 to
        1,000, as ``list`` gives them; see ``Records.profile``."""
        parsed_scope, zone = Scope.parse(scope), self._zone(None)
        async with self._reading() as parts:
            page = await in_thread(
                lambda: parts.records.profile(parsed_scope, limit=limit, after=after)
            )
        return replace(page, items=tuple(item.in_zone(zone) for item in page.items))

    async def export(self, *, owner: Scope | Mapping[str, object] | None = None) -> tuple[str, ...]:
        """All items of an owner, each as a line of JSON; None exports everybody's.

        An owner is a scope whose open dimensions match any value: ``{"user": "ada"}`` owns what was
        saved with that user in any project and session.
        """
        parsed_owner = Scope.parse(owner)
        async with self._reading() as parts:
            return await in_thread(lambda: tuple(parts.records.export(parsed_owner)))

    async def import_lines(
        self,
        lines: Iterable[str],
        *,
        owner: Scope | Mapping[str, object] | None = None,
        progress: Callable[[int, int], None] | None = None,
        left_out: Callable[[str], None] | None = None,
    ) -> int:
        """Store what ``export`` gave, and return how many items; see ``Records.importing``.

        Cancelled, it stops after the batch that is being stored, and what is stored stays.

        Args:
            lines: each the JSON of an item.
            owner: whose items are accepted; None accepts those of everybody.
            progress: called in another thread with (stored, total) items after each batch.
            left_out: called in another thread with the reason why a line is not stored: what it
                holds has expired.
        """
        told = progress or (lambda stored, total: None)  # noqa: ARG005
        complain = left_out or (lambda reason: None)  # noqa: ARG005
        stored = 0
        async with self._in_use() as parts:
            steps = parts.records.importing(lines, Scope.parse(owner), told, complain)
            while (step := await in_thread(lambda: next(steps, None))) is not None:
                stored = step
        return stored

    async def forget(self, owner: Scope | Mapping[str, object]) -> ForgetReport:
        """Remove for good all that an owner has in the layers, and the memory files if the owner is
        the project of ``memory.project``. The service is told of the files.

        Raises:
            InvalidRequest: the owner is everybody.
            ReadOnlyMemory: a file of the project is protected; nothing is forgotten.
        """
        parsed_owner = Scope.parse(owner)
        project_of_files = self.settings.memory.project
        async with self._in_use() as parts:
            files = waiting = 0
            if project_of_files is not None and parsed_owner == Scope(project=project_of_files):
                files, waiting = await parts.unified.forget_files()
            forget = partial(parts.records.forget, parsed_owner, files=files, waiting=waiting)
            report = await in_thread(forget)
            parts.router.clear_cache()
            return report

    async def consolidate(
        self,
        *,
        scope: Scope | Mapping[str, object],
        policy: Callable[[Proposal], bool] = lambda _: False,
    ) -> tuple[Proposal, ...]:
        """Propose what should be tidied up among the memories that a scope sees: copies to merge,
        what a later memory has replaced, contradictions, tasks long overdue. Of the ``models`` of
        this memory the first one drafts the merged texts.

        Args:
            policy: whether to accept a proposal at once; if not, it waits for ``accept`` or
                ``reject``.

        Returns:
            The proposals that were neither waiting nor rejected already.
        """
        from router.memory.curation.consolidation import drafted, proposals_for

        parsed_scope, now, zone = Scope.parse(scope), self._now(), self._zone(None)
        async with self._reading() as parts:
            made = await in_thread(
                lambda: parts.proposals.unknown(
                    proposals_for(
                        (item.in_zone(zone) for item in parts.records.all_of(parsed_scope)), now
                    )
                )
            )
            if self._models:
                made = [await drafted(each, self._models[0]) for each in made]
            new = await in_thread(partial(parts.proposals.add, made, now))
            for proposal in new:
                if policy(proposal):
                    await in_thread(partial(parts.proposals.accept, proposal.id, parsed_scope, now))
            return new

    async def extract(
        self,
        conversation: str,
        *,
        scope: Scope | Mapping[str, object],
        source: str = "conversation",
    ) -> Extracted:
        """Have the first of the ``models`` propose what to remember of a conversation; see
        ``curation/extraction.py``. The proposals wait for ``accept`` or ``reject``.

        Args:
            conversation: JSON Lines or a JSON list of ``{"role", "content"}``, or plain text.
            scope: whose conversation it is.
            source: what to call it, in the provenance of what is accepted.

        Raises:
            ConfigurationError: this memory has no models.
            InvalidRequest: the conversation cannot be read.
            LLMError: the model gave no usable answer.
        """
        from router.memory.curation.extraction import extract, turns_of

        if not self._models:
            raise ConfigurationError(
                "extract: no LLM is configured: for the command set OPENAI_API_KEY, "
                "OPENAI_BASE_URL or OLLAMA_HOST; in Python give Memory models"
            )
        parsed_scope, now, turns = Scope.parse(scope), self._now(), turns_of(conversation)
        async with self._reading() as parts:
            found = await extract(
                turns,
                model=self._models[0],
                store=parts.store,
                scope=parsed_scope,
                source=source,
                now=now,
            )
            new = await in_thread(partial(parts.proposals.add, found.proposals, now))
            return replace(found, proposals=new)

    async def proposals(self, *, scope: Scope | Mapping[str, object]) -> tuple[Proposal, ...]:
        """The waiting proposals that a scope sees, newest first."""
        parsed_scope = Scope.parse(scope)
        return await self._in_thread(lambda parts: parts.proposals.waiting(parsed_scope))

    async def accept(self, proposal: str, *, scope: Scope | Mapping[str, object]) -> Proposal:
        """Make the change of a waiting proposal, given by its id or the beginning of its id. What
        is replaced is marked and kept. Returns the change as it was made: a new memory does not
        replace what has changed since it was proposed.

        Raises:
            UnknownMemory: the scope sees no such proposal, or a memory that it is about is gone.
            InvalidRequest: the ids of several proposals begin so, or a memory that is to be merged,
                marked or cancelled has changed since; the proposal then waits no longer.
        """
        parsed_scope, now = Scope.parse(scope), self._now()
        return await self._in_thread(
            lambda parts: parts.proposals.accept(proposal, parsed_scope, now)
        )

    async def reject(self, proposal: str, *, scope: Scope | Mapping[str, object]) -> Proposal:
        """Leave everything as it is, and do not propose this again. Raises as ``accept``."""
        parsed_scope = Scope.parse(scope)
        return await self._in_thread(lambda parts: parts.proposals.reject(proposal, parsed_scope))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    async def clear_cache(self) -> int:
        """Drop all cached answers; returns how many there were."""
        async with self._in_use() as parts:
            return parts.router.clear_cache()

    async def delete(
        self,
        name: str,
        *,
        layer: str | None = None,
        scope: Scope | Mapping[str, object] | None = None,
    ) -> None:
        """Forget one memory: a file that the scope sees by its name, or an item of a layer that is
        stored in exactly this scope. What an item had replaced is valid again. Raises UnknownMemory
        if there is none."""
        parsed_scope = Scope.parse(scope)
        async with self._in_use() as parts:
            if layer is None:
                await parts.unified.delete(name, scope=parsed_scope)
                return
            from router.memory.records import check_stored

            check_stored(layer, "layer")
            if not await in_thread(lambda: parts.store.delete(layer, [name], parsed_scope)):
                raise UnknownMemory(name)

    async def sync(self, *, dry_run: bool = False) -> SyncReport:
        """Bring the service to the state of the files; see ``UnifiedMemory.sync``."""
        async with self._in_use() as parts:
            return await parts.unified.sync(dry_run=dry_run)

    async def assemble(
        self,
        query: str,
        strategy: Strategy | str = Strategy.HYBRID,
        token_budget: int = 2000,
        session: str | None = None,
        *,
        scope: Scope | Mapping[str, object] | None = None,
        weights: RetrievalWeights | str = PRESETS["memory_focused"],
        time_zone: str | tzinfo | None = None,
    ) -> AssembledContext:
        """A context for a query; see ``ContextAssembler.assemble``, and ``recall`` for
        ``time_zone``."""
        zone = self._zone(time_zone)
        async with self._searching() as parts:
            return await parts.assembler.assemble(
                query,
                strategy,
                token_budget,
                session,
                scope=scope,
                weights=weights,
                time_zone=zone,
            )

    def _zone(self, time_zone: str | tzinfo | None) -> tzinfo:
        return zone_of(self.settings.memory.time_zone if time_zone is None else time_zone)

    async def ingest(
        self,
        folder: str | Path,
        *,
        scope: Scope | Mapping[str, object] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> IngestReport:
        """Make the documents of a folder part of contexts; see ``DocumentIndex.ingest``."""
        async with self._in_use() as parts:
            return await parts.documents.ingest(folder, scope=Scope.parse(scope), progress=progress)

    async def get_consolidation_candidates(
        self, min_retrievals: int, *, scope: Scope | Mapping[str, object] | None = None
    ) -> tuple[ConsolidationCandidate, ...]:
        """Memories that contexts use often; see ``QueryPatternTracker``."""
        parsed_scope = Scope.parse(scope)
        return await self._in_thread(
            lambda parts: parts.tracker.get_consolidation_candidates(
                min_retrievals, scope=parsed_scope
            )
        )

    async def status(self) -> dict[str, Any]:
        """The state of all parts: layers with their weights and breakers, caches, files,
        service."""
        async with self._in_use() as parts:
            unified = await parts.unified.status()
            return {
                "directory": str(self.settings.memory.directory),
                "database": "SQLite" if self.settings.memory.url is None else "PostgreSQL",
                **parts.router.status().to_dict(),
                "unified": unified.to_dict(),
            }
