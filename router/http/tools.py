"""The tools that clients put into namespaces: kept as files, and routable when the call returns.

What cannot be used raises SourceError; what cannot be written or removed, StoreError.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from router.http.problems import Refused
from router.service.shapes import Arguments
from router.tools.folder import ToolFolder, routed_name

if TYPE_CHECKING:
    from router.router import SemanticRouter


class ToolPlace(Arguments):
    namespace: str = Field(description="Lower-case letters, digits and hyphens, at most 64.")
    name: str = Field(description="The tool's own name, at most 80 characters.")


class PutToolArguments(ToolPlace):
    definition: dict[str, Any] = Field(
        description="The tool as OpenAI, Anthropic or MCP define it; its name is that of the path."
    )


class ToolDeleted(BaseModel):
    """The tool is not routed to any more."""

    skill: str
    catalog_version: str


class ToolPut(BaseModel):
    """The tool is routable from now on."""

    skill: str = Field(description="The name that answers use: `namespace__name`.")
    new: bool = Field(description="Whether there was none of that name.")
    catalog_version: str


async def put_tool(router: SemanticRouter, asked: PutToolArguments) -> ToolPut:
    """Keep a tool. Raises Refused when a skill from elsewhere has its name."""
    folder, routed = await _folder(router), routed_name(asked.namespace, asked.name)
    new = await asyncio.to_thread(folder.put, asked.namespace, asked.name, asked.definition)
    await router.reload()
    skill = router.catalog.skills.get(routed)
    if skill is None or skill.payload != asked.definition:
        raise Refused(
            409,
            "the tool is not routable",
            "another source has its name, or it was changed again meanwhile",
        )
    return ToolPut(skill=routed, new=new, catalog_version=router.catalog.version)


async def delete_tool(router: SemanticRouter, asked: ToolPlace) -> ToolDeleted:
    """Drop a tool. Raises Refused when there is no such tool."""
    folder = await _folder(router)
    if not await asyncio.to_thread(folder.delete, asked.namespace, asked.name):
        raise Refused(404, "there is no such tool", f"none in the namespace {asked.namespace}")
    await router.reload()
    routed = routed_name(asked.namespace, asked.name)
    return ToolDeleted(skill=routed, catalog_version=router.catalog.version)


async def _folder(router: SemanticRouter) -> ToolFolder:
    await router.open()
    for source in router.manager.registry.sources:
        if isinstance(source, ToolFolder):
            return source
    raise Refused(409, "the server is not set up for that", "it keeps no tools")
