"""The arguments of the use cases and their answers, as MCP, HTTP and ``--json`` carry them.

The MCP tools, the HTTP API and ``--json`` on the command line all take and give these shapes, so a
description of a field is written once and read by people and by models.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from router.errors import InvalidTurn
from router.request import (
    MAX_HISTORY_TURNS,
    MAX_LIMIT,
    MAX_REQUEST_CHARACTERS,
    MAX_SCOPE_CHARACTERS,
    kept_turns,
)
from router.result import Decision

MAX_FOUND: Final = 50
"""How many skills one search gives at most."""
MAX_MESSAGES: Final = 1_000
"""How many messages a history may hold, those that say nothing included. A body has room for a
million, which would take seconds to read."""
MAX_TOOLS: Final = 2_000
"""How many tools one request may bring along."""
MAX_FAILURES: Final = 50
"""How many failures a status spells out; it always gives their number."""
MAX_NAMES: Final = 10_000
"""How many names of skills one argument may hold."""


class Arguments(BaseModel):
    """Arguments of a use case. Unknown ones are refused.

    A null counts as left out: models that must give every argument have no other way to leave one
    out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict) or None not in given.values():
            return given
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: v for k, v in given.items() if v is not None or k not in optional}


class FromAttributes(BaseModel):
    """An answer whose fields are read off the attributes of an object of the router, by
    ``model_validate``."""

    model_config = ConfigDict(from_attributes=True)


def _read_history(given: list[Any]) -> list[Any]:
    try:
        return list(kept_turns(given))
    except InvalidTurn as error:
        fault = InitErrorDetails(
            type=PydanticCustomError("turn", "{reason}", {"reason": error.reason}),
            loc=(error.position,),
            input=given[error.position],
        )
        # Pydantic puts the place of the history in front of that of the turn.
        raise ValidationError.from_exception_data("history", [fault]) from None


History: TypeAlias = Annotated[
    list[Any],
    Field(max_length=MAX_MESSAGES),
    AfterValidator(_read_history),
    WithJsonSchema(
        {
            "type": "array",
            "maxItems": MAX_HISTORY_TURNS,
            "items": {
                "type": "object",
                "properties": {
                    "role": {"type": "string", "enum": ["user", "assistant"]},
                    "text": {"type": "string"},
                },
                "required": ["role", "text"],
            },
        }
    ),
]
"""Earlier turns, in every form that ``Request`` takes; read, they are the ``Turn`` objects that are
kept. The schema names the one form that all models can write."""


class RouteArguments(Arguments):
    request: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What the user asks, verbatim."
    )
    available_skills: list[str] | None = Field(
        None,
        max_length=MAX_NAMES,
        description="Names that may be chosen; leave out for every installed skill.",
    )
    history: History = Field([], description="Earlier turns of the conversation, oldest first.")
    scope: str | None = Field(
        None,
        max_length=MAX_SCOPE_CHARACTERS,
        description="Whose request it is (a tenant, user or session); answers never cross scopes.",
    )
    use_semantic_cache: bool = Field(
        True, description="False: no answer to a similar request is given, nor this one kept."
    )
    trace: bool = Field(
        False, description="Whether to add what each stage did and why; for programs and debugging."
    )


class Constraints(Arguments):
    """Which skills a ranking may give, and for whom."""

    available_skills: list[str] | None = Field(
        None, max_length=MAX_NAMES, description="Names that may be ranked; left out: all."
    )
    always_include: list[str] = Field(
        [], max_length=MAX_NAMES, description="Names to return in any case."
    )
    history: History = Field([], description="Earlier turns of the conversation, oldest first.")
    scope: str | None = Field(
        None, max_length=MAX_SCOPE_CHARACTERS, description="Whose request it is."
    )


class FindArguments(Constraints):
    query: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What to look for."
    )
    limit: int = Field(10, ge=1, le=MAX_FOUND, description="Skills to return at most.")
    installed_only: bool = Field(
        True, description="False also suggests skills of the configured listings."
    )


class RankArguments(Constraints):
    request: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What the user asks, verbatim."
    )
    limit: int = Field(10, ge=1, le=MAX_LIMIT, description="Skills to return at most.")
    tools: list[dict[str, Any]] | None = Field(
        None,
        min_length=1,
        max_length=MAX_TOOLS,
        description="Definitions of tools (OpenAI, Anthropic or MCP), to be ranked in place of the "
        "skills; each comes back as it was given.",
    )


class LoadArguments(Arguments):
    name: str = Field(description="Name of the skill.")


class FeedbackArguments(Arguments):
    id: str = Field(max_length=200, description="The `id` of the answer that this is about.")
    skills: list[str] | None = Field(
        None,
        max_length=MAX_NAMES,
        description="The skills that would have been right; an empty list says that none fits. "
        "Give either this or `right`.",
    )
    right: bool | None = Field(None, description="Whether the answer was right.")
    scope: str | None = Field(
        None,
        max_length=MAX_SCOPE_CHARACTERS,
        description="The scope that the request was routed in, if it had one.",
    )


class EnrichArguments(Arguments):
    skills: list[str] | None = Field(
        None,
        max_length=MAX_NAMES,
        description="Names of the skills to ask about; left out: all that need it.",
    )
    dry_run: bool = Field(
        False, description="True: nothing is asked; says who would be, and estimates the tokens."
    )
    input_price: float | None = Field(
        None, ge=0, description="Dollars for a million tokens of questions; give both prices."
    )
    output_price: float | None = Field(
        None, ge=0, description="Dollars for a million tokens of answers."
    )
    max_cost: float | None = Field(
        None, ge=0, description="Dollars; a call that might overrun them is not made. Needs prices."
    )
    concurrency: int = Field(4, ge=1, le=64, description="Questions at the same time.")


class NoArguments(Arguments):
    """The arguments of a use case that takes none."""


class Why(BaseModel):
    """What a score is made of."""

    terms: list[str] = Field(description="Words of the query found in the skill, strongest first.")
    lexical: float = Field(description="Match of words, BM25F, in [0, 1].")
    cosine: float = Field(description="Cosine of the encoder's vectors.")
    examples: float | None = Field(description="Nearness of its examples; null without any.")


class FoundSkill(BaseModel):
    name: str
    description: str
    installed: bool = Field(description="Whether it can be loaded; otherwise it is a suggestion.")
    url: str | None = Field(description="Where to get a suggested skill, unverified.")
    score: float = Field(description="Comparable among equal `installed` of this answer only.")
    reason: str
    why: Why


class FoundSkills(BaseModel):
    catalog_version: str
    left_out: int = Field(description="Skills that were not ranked because they may not be used.")
    skills: list[FoundSkill]


class CacheSays(BaseModel):
    cache: str = Field(description="fuzzy or exact.")
    outcome: str = Field(description="answered, declined or skipped.")
    reason: str


class CacheTested(BaseModel):
    hit: bool = Field(description="Whether a cache would answer.")
    skills: list[str] = Field(description="What it would select.")
    caches: list[CacheSays]


class Forgotten(BaseModel):
    """The cached answer to this request has been dropped."""

    request: str


class RankedName(FromAttributes):
    name: str
    score: float | None = Field(description="Null for one that is included without a rank.")
    reason: str
    description: str
    tool: Annotated[
        dict[str, Any] | None,
        BeforeValidator(lambda payload: payload if isinstance(payload, dict) else None),
    ] = Field(
        description="The definition as it was given; null for a skill.", validation_alias="payload"
    )


class Ranked(FromAttributes):
    catalog_version: str
    decision: Decision = Field(description="What retrieval alone would decide.")
    selected: list[str] = Field(description="What it would load.")
    confidence: float = Field(description="Probability that this decision is right.")
    reasoning: str
    left_out: int = Field(description="Skills that were not ranked because they may not be used.")
    skills: list[RankedName] = Field(description="Best first.")


class LoadedSkill(BaseModel):
    name: str
    description: str
    instructions: str = Field(description="The text of SKILL.md after its frontmatter.")
    tool: dict[str, Any] | None = Field(
        description="Of a tool, the definition as it was given, with the schema of its arguments."
    )
    folder: str = Field(description="Where the skill lies on the server's machine.")
    uri: str = Field(description="The folder as a resource; add a resource's path to read it.")
    resources: list[str] = Field(description="Paths of its other files, relative to the folder.")
    note: str | None = Field(description="Why its files are not listed, if they are not.")


class Noted(BaseModel):
    """The feedback has been recorded."""

    id: str = Field(description="Of the answer that it was about.")


class Enriched(FromAttributes):
    written: list[str] = Field(description="Skills that requests were written for.")
    requests: int = Field(description="How many were kept in all.")
    failed: Annotated[dict[str, str], BeforeValidator(dict)] = Field(
        description="Skills whose question failed, with the reason."
    )
    left: list[str] = Field(description="Skills that are still to be asked about.")
    planned: list[str] = Field([], description="Of `dry_run`: skills that would be asked about.")
    input_tokens: int
    output_tokens: int
    cost: float | None = Field(None, description="Dollars, with prices; of `dry_run` likely.")
    most: float | None = Field(None, description="Of `dry_run`: what it costs at most.")
    ended: str = Field(description="Why it ended early; empty when it did not.")


class SkillCounts(BaseModel):
    routable: int
    hidden: int = Field(description="Loaded, but never offered.")
    shadowed: int = Field(description="Not offered: a stronger skill has the name.")
    not_loaded: int


class Failure(BaseModel):
    path: str
    line: int = Field(description="1-based; 0 when it is about the whole file.")
    reason: str


class CacheStatus(BaseModel):
    entries: int
    hits: int
    misses: int
    evictions: int
    expirations: int


class LLMModel(BaseModel):
    provider: str
    model: str


class RouterStatus(BaseModel):
    version: str = Field(description="Of cascade-router.")
    catalog_version: str
    skills: SkillCounts
    watching: str = Field(description="How changes on disk are noticed: native, polling or off.")
    failures: list[Failure] = Field(description=f"The first {MAX_FAILURES}.")
    caches: dict[str, CacheStatus]
    encoder: str
    models: list[LLMModel] = Field(description="LLMs in the order in which they are asked.")
