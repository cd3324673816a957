"""The use cases of memory, with their arguments and answers: recall, contexts, saving, status.

A part of the scope that a caller leaves out is taken from the settings. Answers leave out what the
caller knows already, or gets elsewhere in the same answer.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from router.concurrency.breaker import STATE_WORDS
from router.events import Events, OptionalPart, Recalled
from router.memory.contexts.assembler import MAX_BUDGET_TOKENS
from router.memory.layers import WRITABLE
from router.memory.memory import Memory
from router.memory.model import (
    MAX_CONTENT_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    MAX_TAGS,
    LayerStatus,
    Scope,
)
from router.memory.recall.memory_router import MAX_K
from router.memory.recall.recaller import MAX_DEPTH
from router.memory.services.forgetful.client import LAYER as SERVICE
from router.memory.services.unified import MAX_QUERY as MAX_SEARCHED_CHARACTERS
from router.memory.stores.rows import REQUIRED_SCOPE
from router.memory.texts.questions import MAX_QUESTIONS, QUESTIONS
from router.plain_json import plain_json
from router.service.shapes import Arguments, FromAttributes, NoArguments
from router.settings.settings import Settings

if TYPE_CHECKING:
    from router.memory.records import Page

T = TypeVar("T")

MAX_PROBLEMS: Final = 50
"""How many problems with memory files ``memory_status`` spells out."""
_HIDDEN: Final = "What was saved with a project or a session is seen with `project` or `session`."


class ScopedArguments(Arguments):
    user: str | None = Field(None, description="Whose memories; the configured user if left out.")
    project: str | None = Field(None, description="Of which project; likewise.")
    session: str | None = Field(None, description="Of which conversation; likewise.")


class DatedArguments(ScopedArguments):
    time_zone: str | None = Field(
        None,
        description="Of who asks, such as Europe/Berlin: where `yesterday` is a day. Left out, the "
        "configured one.",
    )


class RecallArguments(DatedArguments):
    query: str = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to remember, in words."
    )
    k: int = Field(5, ge=1, le=MAX_K, description="Memories to return at most.")
    cascade: bool = Field(True, description="Whether to turn to further layers if needed.")
    confidence_threshold: float = Field(
        0.5, ge=0, le=1, description="An answer below it turns to further layers."
    )
    max_cascade_depth: int = Field(2, ge=0, le=MAX_DEPTH, description="How often at most.")


class SearchArguments(ScopedArguments):
    query: str = Field(
        min_length=1, max_length=MAX_SEARCHED_CHARACTERS, description="Words to search for."
    )
    limit: int = Field(10, ge=1, le=MAX_K, description="Memories to return at most.")


class ProfileArguments(ScopedArguments):
    limit: int = Field(100, ge=1, le=1000, description="Memories to return at most.")
    after: str | None = Field(None, description="The `next` of the page before.")


class ListArguments(ScopedArguments):
    layers: list[str] | None = Field(None, description="Of these layers alone.")
    limit: int = Field(20, ge=1, le=1000, description="Memories to return at most.")
    after: str | None = Field(None, description="The `next` of the page before.")


class NamedArguments(ScopedArguments):
    name: str = Field(min_length=1, description="Name of a memory file, or the id of an item.")
    layer: str | None = Field(None, description="That holds the item; left out for a file.")


class AssembleArguments(DatedArguments):
    query: str = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What the context is for."
    )
    strategy: Literal["lexical", "episodic", "hybrid", "rag"] = Field(
        "hybrid",
        description="Where to look: memories by words; what was said and done; memories by words, "
        "meaning and time; documents as well.",
    )
    token_budget: int = Field(
        2000, ge=1, le=MAX_BUDGET_TOKENS, description="Tokens that the context may have."
    )
    weights: Literal["balanced", "rag_focused", "memory_focused"] = Field(
        "memory_focused", description="Of documents and memories, with the strategy `rag`."
    )


class SaveArguments(ScopedArguments):
    content: str = Field(
        min_length=1, max_length=MAX_CONTENT_CHARACTERS, description="The text to remember."
    )
    name: str | None = Field(
        None,
        description="Such as `auth/login`. What has this name already is replaced. Left out, one "
        "is made, and nothing is replaced.",
    )
    tags: list[str] = Field([], max_length=MAX_TAGS)
    layer: Annotated[str, WithJsonSchema({"type": "string", "enum": list(WRITABLE)})] | None = (
        Field(
            None,
            description="Left out, a memory file of the project is written, for its people to read "
            "too. The arguments below, and the scope, need a layer.",
        )
    )
    type: str | None = Field(None, description="Such as fact, event, decision, task.")
    created: datetime | None = Field(None, description="When it happened; now if left out.")
    attributes: dict[str, str | int | float | bool | list[str]] | None = Field(
        None, description="What the layer reads beside the text, such as `status`, `due`, `steps`."
    )
    supersede: list[str] = Field(
        [], max_length=100, description="Ids of items of this layer and scope that it replaces."
    )
    questions: list[str] = Field(
        [],
        max_length=MAX_QUESTIONS,
        description="Two to four that it answers, as somebody may ask them later, in other words "
        "than its own: `What am I allergic to?` for `Hazelnuts make my throat swell.` It is found "
        "by them too.",
    )


def _without_questions(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes without the saved questions: they only serve to find the memory, and would
    cost tokens in every answer."""
    return {name: value for name, value in attributes.items() if name != QUESTIONS}


class Stored(BaseModel):
    id: str
    layer: str
    content: str
    type: str
    tags: list[str]
    created: datetime
    scope: dict[str, str]
    provenance: list[str]
    attributes: Annotated[dict[str, Any], AfterValidator(_without_questions)]


Memories: TypeAlias = Annotated[list[Stored], BeforeValidator(plain_json)]


class StoredInFull(Stored):
    attributes: dict[str, Any]


class RecalledMemory(Stored):
    relevance: float = Field(description="Probability that it bears on the query.")
    confidence: dict[str, Any] | None = Field(
        description="The five factors, their weighted mean `overall`, and its `level`."
    )


class SearchedPart(FromAttributes):
    status: str = Field(description="ok, empty, timeout, error or skipped.")
    found: int
    milliseconds: float
    reason: str


class LayerPart(SearchedPart):
    layer: str


class CascadeTurn(FromAttributes):
    layers: list[str]
    before: float = Field(description="Confidence of the answer that was too low.")
    after: float


class RecallAnswer(FromAttributes):
    id: str
    items: Annotated[list[RecalledMemory], BeforeValidator(plain_json)] = Field(
        description="Best first; empty when nothing fits."
    )
    confidence: float = Field(description="Probability that the answer bears on the query.")
    layers: list[LayerPart] = Field(description="What was read.")
    cascade: list[CascadeTurn] = Field(validation_alias="cascade_path")
    conflicts: list[list[str]] = Field(
        description="Ids of two items that contradict each other, where nothing tells which holds."
    )
    reasoning: list[str]


class Piece(FromAttributes):
    id: str = Field(validation_alias="item_id")
    source: str
    created: datetime
    score: float
    tokens: int
    cut: bool = Field(description="Whether only its beginning fitted.")


class Dropped(FromAttributes):
    id: str = Field(validation_alias="item_id")
    source: str
    reason: str


class Context(FromAttributes):
    text: str = Field(description="The context; empty when nothing fits.")
    strategy: str = Field(description="The one that was followed.")
    tokens: int
    budget: int
    pieces: list[Piece] = Field(
        description="What the text is made of, in order.", validation_alias="chunks"
    )
    left_out: list[Dropped]
    notes: list[str]


class Saved(BaseModel):
    name: str = Field(description="Of the file, or the id of the item.")
    layer: str | None = Field(description="Null for a memory file.")
    service: str | None = Field(
        description="Of a file: whether the memory service has been told: delivered, queued, "
        "failed, or off when there is none."
    )
    reason: str = Field(description="Why the service has not been told.")
    supersedes: Memories = Field(
        description="Earlier memories that this one may replace; save it again with `supersede` "
        "to mark them."
    )


class Stock(FromAttributes):
    items: Memories = Field(description="Newest first.")
    next: str | None = Field(description="Give it as `after` for the next page; null at the end.")
    hint: str = Field(
        description="If there are no items: what is missing, and what may hide it. Else empty."
    )


class Searched(FromAttributes):
    items: Memories = Field(description="Best first.")
    layers: SearchedPart
    files: SearchedPart
    service: SearchedPart


class Deleted(BaseModel):
    name: str
    layer: str | None


class LayerNow(BaseModel):
    name: str
    state: Annotated[str, BeforeValidator(STATE_WORDS.__getitem__)] = Field(
        description="ok: it is asked; failing: left alone for a while; on trial: asked once more.",
        validation_alias="breaker",
    )
    late: int = Field(description="Calls past their deadline.")


class CacheNow(BaseModel):
    entries: int
    hits: int
    misses: int


class MemoryNow(BaseModel):
    directory: str
    layers: list[LayerNow]
    weight_factors: dict[str, dict[str, float]] = Field(
        description="By query type and layer, what feedback has made of the layers' weights."
    )
    cache: CacheNow
    files: int = Field(description="Memory files.")
    problems: list[str] = Field(description=f"Files left out; the first {MAX_PROBLEMS}.")
    service: str = Field(description="up, down or off.")
    service_reason: str
    waiting: int = Field(description="Changes that the service has yet to be told of.")


class MemoryService:
    """Every use case of memory is one method. The first one opens the memory."""

    def __init__(self, memory: Memory, events: Events | None = None) -> None:
        """A service over a memory, which the caller closes; ``events`` are told of each recall."""
        self._memory = memory
        self._events = Events() if events is None else events
        self._service = OptionalPart("memory service", self._events)
        self._database = OptionalPart("memory", self._events)

    def _scope(self, arguments: ScopedArguments, layer: str | None = None) -> Scope:
        named = arguments.user, arguments.project, arguments.session
        return scope_of(self._memory.settings, *named, layer=layer)

    def _keywords(
        self,
        arguments: ScopedArguments,
        *,
        scope_name: str = "scope",
        stored_in: str | None = None,
    ) -> dict[str, Any]:
        """The arguments for the method of ``Memory``: under the same names, but for the scope,
        which is one argument of the name ``scope_name``. ``stored_in`` is the layer of an item that
        is stored in exactly this scope."""
        return {
            scope_name: self._scope(arguments, stored_in),
            **{
                name: value for name, value in arguments if name not in ScopedArguments.model_fields
            },
        }

    async def _observed(self, call: Awaitable[T]) -> T:
        """The result of a call of the memory. Events are emitted when its database cannot be
        reached, and when it is reached again."""
        try:
            return await call
        finally:
            if self._memory.away:
                self._database.failed("its database cannot be reached; the log says why")
            else:
                self._database.worked()

    async def recall(self, arguments: RecallArguments) -> RecallAnswer:
        """Answer a query from the memory layers that fit it."""
        found = await self._observed(
            self._memory.recall(**self._keywords(arguments, scope_name="context"))
        )
        if self._events.listening:
            self._events.emit(
                Recalled(
                    found.query,
                    tuple(report.layer for report in found.layers),
                    len(found.items),
                    found.confidence,
                    partial=not found.is_complete,
                    seconds=found.milliseconds / 1000,
                    statuses=tuple(report.status.value for report in found.layers),
                )
            )
        for report in found.layers:
            if report.layer == SERVICE:
                if report.status in (LayerStatus.OK, LayerStatus.EMPTY):
                    self._service.worked()
                else:
                    self._service.failed(report.reason)
        return RecallAnswer.model_validate(found)

    async def search(self, arguments: SearchArguments) -> Searched:
        """Search the layers, the memory files and the memory service at once."""
        return Searched.model_validate(
            await self._observed(self._memory.search(**self._keywords(arguments)))
        )

    async def assemble(self, arguments: AssembleArguments) -> Context:
        """Gather what memories and documents say into a text within a budget."""
        return Context.model_validate(
            await self._observed(self._memory.assemble(**self._keywords(arguments)))
        )

    async def save(self, arguments: SaveArguments) -> Saved:
        """Remember a text."""
        given = self._keywords(arguments, stored_in=arguments.layer)
        keywords = {name: value for name, value in given.items() if value is not None}
        if arguments.attributes is not None:
            keywords["attributes"] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in arguments.attributes.items()
            }
        if (arguments.layer, arguments.user, arguments.project, arguments.session) == (None,) * 4:
            del keywords["scope"]  # a file has no scope; ``save`` refuses one that a caller names
        report = await self._observed(self._memory.save(**keywords))
        return Saved(
            name=report.name,
            layer=report.layer,
            service=report.service if report.layer is None else None,
            reason=report.reason,
            supersedes=[Stored(**item.to_dict()) for item in report.supersedes],
        )

    async def list(self, arguments: ListArguments) -> Stock:
        """What the layers hold, newest first."""
        page = await self._observed(self._memory.list(**self._keywords(arguments)))
        layers = "The layers hold" if arguments.layers is None else "These layers hold"
        return _stock(page, arguments, f"{layers} nothing that this scope sees.")

    async def profile(self, arguments: ProfileArguments) -> Stock:
        """What is known of the user and is not marked as replaced, newest first."""
        page = await self._observed(self._memory.profile(**self._keywords(arguments)))
        return _stock(
            page, arguments, "The layer `user` holds nothing of this user that is valid now."
        )

    async def get(self, arguments: NamedArguments) -> StoredInFull:
        """One memory by its name."""
        return StoredInFull(
            **(await self._observed(self._memory.get(**self._keywords(arguments)))).to_dict()
        )

    async def delete(self, arguments: NamedArguments) -> Deleted:
        """Forget one memory: a file, or an item stored in exactly this scope."""
        keywords = self._keywords(arguments, stored_in=arguments.layer)
        await self._observed(self._memory.delete(**keywords))
        return Deleted(name=arguments.name, layer=arguments.layer)

    async def status(self, _asked: NoArguments) -> MemoryNow:
        """How the layers, the memory files and the memory service are."""
        status = await self._observed(self._memory.status())
        unified = status["unified"]
        problems = unified["problems"][:MAX_PROBLEMS]
        renamed = {"problems": problems, "service_reason": unified["reason"]}
        return MemoryNow(**{**status, **unified, **renamed})


def _stock(page: Page, arguments: ListArguments | ProfileArguments, missing: str) -> Stock:
    """A page, with the hint what is missing where the first one is empty."""
    hint = "" if page.items or arguments.after is not None else _empty(missing, arguments)
    return Stock.model_validate({"items": page.items, "next": page.next, "hint": hint})


def _empty(missing: str, arguments: ScopedArguments) -> str:
    """The hint of an empty answer: what is missing, and what may hide it."""
    names_both = arguments.project is not None and arguments.session is not None
    return missing if names_both else f"{missing} {_HIDDEN}"


def scope_of(
    settings: Settings,
    user: str | None,
    project: str | None,
    session: str | None,
    *,
    layer: str | None = None,
) -> Scope:
    """The scope of the caller; what it leaves out is taken from the settings.

    With ``layer`` it is the scope of something that is stored there. Of the settings, the layer
    ``user`` then takes the user alone and ``project`` the project alone: what is true of a user
    is true in all projects, and what is true of a project is meant for all who work in it.
    """
    needed = REQUIRED_SCOPE.get(layer or "")
    given = {"user": user, "project": project, "session": session}
    for name in given if needed is None else (needed,):
        if given[name] is None:
            given[name] = getattr(settings.memory, name)
    return Scope(**given)
