"""What a tool is, and what travels in its calls: arguments, answers, and the JSON schemas that
describe them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from router.request import MAX_HISTORY_TURNS, MAX_REQUEST_CHARACTERS, MAX_SCOPE_CHARACTERS

MAX_FOUND: Final = 50
MAX_FAILURES: Final = 50
"""Failures that ``router_status`` spells out; it always gives their number."""


class Arguments(BaseModel):
    """Of any tool; what the schema does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TurnArguments(Arguments):
    role: Literal["user", "assistant"]
    text: str


class RouteArguments(Arguments):
    request: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What the user asks, verbatim."
    )
    available_skills: list[str] | None = Field(
        None, description="Names that may be chosen; leave out for every installed skill."
    )
    history: Annotated[
        list[TurnArguments | str],
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
    ] = Field([], description="Earlier turns of the conversation, oldest first.")
    scope: str | None = Field(
        None,
        max_length=MAX_SCOPE_CHARACTERS,
        description="Whose request it is (a tenant, user or session); answers never cross scopes.",
    )


class FindArguments(Arguments):
    query: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What to look for."
    )
    limit: int = Field(10, ge=1, le=MAX_FOUND, description="Skills to return at most.")
    installed_only: bool = Field(
        True, description="False also suggests skills of the configured catalogues."
    )


class LoadArguments(Arguments):
    name: str = Field(description="Name of the skill.")


class StatusArguments(Arguments):
    pass


class Why(BaseModel):
    """What a score is made of."""

    terms: list[str] = Field(description="Words of the query found in the skill, strongest first.")
    lexical: float = Field(description="Match of words, BM25F, in [0, 1].")
    latent: float = Field(description="Cosine by the words that skills share.")
    cosine: float = Field(description="Cosine of the encoder's vectors.")


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
    skills: list[FoundSkill]


class LoadedSkill(BaseModel):
    name: str
    description: str
    instructions: str = Field(description="The text of SKILL.md after its frontmatter.")
    folder: str = Field(description="Where the skill lies on the server's machine.")
    uri: str = Field(description="The folder as a resource; add a resource's path to read it.")
    resources: list[str] = Field(description="Paths of its other files, relative to the folder.")
    note: str | None = Field(description="Why its files are not listed, if they are not.")


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


class Model(BaseModel):
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
    models: list[Model] = Field(description="LLMs in the order in which they are asked.")


class _Lean(GenerateJsonSchema):
    """JSON schemas without a title for every field: models read them, and titles repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


@cache
def input_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The schema of a tool's arguments. It is shared: copy it to change it."""
    schema = arguments.model_json_schema(schema_generator=_Lean)
    del schema["title"]
    return schema


def output_schema(output: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of a tool's structured answer."""
    return output.json_schema(schema_generator=_Lean, mode="serialization")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what is advertised of it, and what it does with checked arguments."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: TypeAdapter[Any]
    run: Callable[[Any], Awaitable[types.CallToolResult]]
    read_only: bool = True
    open_world: bool = False

    def advertised(self, input_schema: dict[str, Any]) -> types.Tool:
        """The tool as clients see it. One that writes may replace what there was."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema,
            output_schema=output_schema(self.output),
            annotations=types.ToolAnnotations(
                read_only_hint=self.read_only,
                destructive_hint=not self.read_only,
                idempotent_hint=self.read_only,
                open_world_hint=self.open_world,
            ),
        )


def answer(structured: Mapping[str, Any], text: str | None = None) -> types.CallToolResult:
    """A tool's answer; without a text of its own, the text is the structured answer as JSON."""
    if text is None:
        text = json.dumps(structured, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=dict(structured)
    )
