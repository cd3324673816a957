"""The tools themselves: what they advertise, and what they say to a faulty call."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cascade import settings_for
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from numpy.typing import NDArray
from servers.openai_server import OpenAIServer, completion

from router.errors import EncoderError
from router.mcp.server import SkillServer
from router.mcp.tool import MAX_FAULT_CHARACTERS
from router.plain_json import MAX_PLACE
from router.result import RoutingResult
from router.retrieval.encoders import Encoder
from router.router import SemanticRouter
from router.settings.settings import Settings

SaveSkill = Callable[..., Path]


async def call(at: str | SkillServer, tool: str, **arguments: Any) -> CallToolResult:
    async with Client(at if isinstance(at, str) else at.protocol) as client:
        await client.list_tools()  # so that the client checks the answer against the schema
        return await client.call_tool(tool, arguments)


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def result_of(answer: CallToolResult) -> RoutingResult:
    assert answer.structured_content is not None
    return RoutingResult.from_dict({**answer.structured_content, "trace": []})


async def test_route_gives_the_result_without_its_trace(shared: Any) -> None:
    answer = await call(shared.url, "route", request="commit and push my branch")
    result = result_of(answer)
    assert result.selected_skills == ("git",)
    assert "trace" not in answer.structured_content
    assert json.loads(text_of(answer)) == answer.structured_content


async def test_route_gives_the_trace_to_those_who_ask_for_it(shared: Any) -> None:
    answer = await call(shared.url, "route", request="commit and push my branch", trace=True)
    assert len(RoutingResult.from_dict(answer.structured_content).trace) == 4


async def test_the_schema_of_an_answer_says_nothing_of_what_a_trace_is_made_of(shared: Any) -> None:
    async with Client(shared.url) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    schema = tools["route"].output_schema or {}
    said = json.dumps(schema)
    assert "StageTrace" not in schema["$defs"]
    assert len(said) < 3_500
    assert all(f"#/$defs/{name}" in said for name in schema["$defs"])


async def test_find_skills_says_why(shared: Any) -> None:
    answer = await call(shared.url, "find_skills", query="flaky tests", limit=2)
    best, other = answer.structured_content["skills"]
    assert best["name"] == "testing"
    assert best["description"].startswith("Writes unit tests")
    assert best["score"] > other["score"]
    assert set(best["why"]["terms"]) == {"flaky", "tests"}


async def test_find_skills_suggests_skills_of_the_listings_when_asked_to(
    skills: Path, encoder: Encoder, tmp_path: Path
) -> None:
    shop = tmp_path / "shop" / "quilting"
    shop.mkdir(parents=True)
    (shop / "SKILL.md").write_text(
        "---\nname: quilting\ndescription: Sews patchwork quilts.\n---\n", encoding="utf-8"
    )
    settings = Settings(
        state_dir=tmp_path / "state-here", llm={"enabled": False}, listings=[shop.parent]
    )
    async with SemanticRouter(settings, roots=[skills], encoder=encoder) as router:
        server = SkillServer(router)
        answer = await call(server, "find_skills", query="sew quilts", installed_only=False)
        only = await call(server, "find_skills", query="sew quilts")
    [quilting] = [s for s in answer.structured_content["skills"] if not s["installed"]]
    assert quilting["name"] == "quilting"
    assert quilting["reason"].startswith("matches on ")
    assert all(skill["installed"] for skill in only.structured_content["skills"])


async def test_load_skill_gives_instructions_and_the_paths_of_the_files(shared: Any) -> None:
    answer = await call(shared.url, "load_skill", name="git")
    loaded = answer.structured_content
    assert loaded["instructions"] == "Do it well."
    assert loaded["tool"] is None
    assert loaded["folder"] == str(shared.skills / "git")
    assert loaded["uri"] == "skill://git"
    assert loaded["resources"] == ["references/hooks/list.md", "scripts/undo.sh"]
    assert "Do it well." in text_of(answer)
    assert "- scripts/undo.sh" in text_of(answer)


async def test_a_skill_being_saved_is_loaded_as_it_was(server: SkillServer, skills: Path) -> None:
    (skills / "git" / "SKILL.md").write_text("---\nname: g", encoding="utf-8")
    answer = await call(server, "load_skill", name="git")
    assert answer.structured_content["instructions"] == "Do it well."


async def test_a_skill_with_too_many_files_is_loaded_without_their_paths(
    server: SkillServer, skills: Path
) -> None:
    for number in range(600):
        (skills / "git" / f"{number}.txt").touch()
    answer = await call(server, "load_skill", name="git")
    assert answer.structured_content["resources"] == []
    assert "more than 512 files" in answer.structured_content["note"]


async def test_the_enum_names_the_routable_skills(shared: Any) -> None:
    async with Client(shared.url) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["load_skill"].input_schema["properties"]["name"]["enum"] == ["git", "testing"]
    assert "$defs" not in json.dumps([tool.input_schema for tool in tools.values()])


async def test_the_enum_is_left_out_when_there_are_many_skills(
    opened: SemanticRouter, server: SkillServer, save: SaveSkill
) -> None:
    for number in range(48):
        save(f"skill-{number}", f"Does the task {number}.")
    await opened.reload()
    assert len(opened.catalog.routable) == 50
    for more in (False, True):
        if more:
            save("one-more", "Does another task.")
            await opened.reload()
        async with Client(server.protocol) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        name = tools["load_skill"].input_schema["properties"]["name"]
        assert ("enum" in name) is not more


async def test_feedback_corrects_an_answer(server: SkillServer) -> None:
    asked = "commit and push my branch"
    routed = await call(server, "route", request=asked)
    noted = await call(
        server, "give_feedback", id=routed.structured_content["id"], skills=["testing"]
    )
    assert noted.structured_content == {"id": routed.structured_content["id"]}
    corrected = await call(server, "route", request=asked)
    assert corrected.structured_content["selected_skills"] == ["testing"]


async def test_skills_are_enriched_after_a_look_at_what_it_takes(
    skills: Path, encoder: Encoder, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    written = {"requests": ["stash my work for later"], "near_misses": []}
    openai_server.queue(completion(json.dumps(written)))
    settings = settings_for(tmp_path / "state-here", openai_server)
    async with SemanticRouter(settings, roots=[skills], encoder=encoder) as router:
        server = SkillServer(router)
        planned = (await call(server, "enrich_skills", dry_run=True)).structured_content
        assert planned["planned"] == ["git", "testing"]
        assert (planned["left"], planned["written"]) == ([], [])
        assert planned["input_tokens"] > 0
        assert openai_server.requests == []
        done = (await call(server, "enrich_skills", skills=["git"])).structured_content
        assert (done["written"], done["requests"], done["left"]) == (["git"], 1, [])
        assert done["planned"] == []
        enrichment = router.catalog.get("git").enrichment
    assert enrichment is not None
    assert enrichment.requests == ("stash my work for later",)


async def test_enriching_keeps_to_a_budget_and_says_what_it_costs(
    skills: Path, encoder: Encoder, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    written = {"requests": ["stash my work for later"], "near_misses": []}
    openai_server.always = completion(json.dumps(written))
    settings = settings_for(tmp_path / "state-here", openai_server)
    prices = {"input_price": 1, "output_price": 10}
    async with SemanticRouter(settings, roots=[skills], encoder=encoder) as router:
        server = SkillServer(router)
        plan = (await call(server, "enrich_skills", dry_run=True, **prices)).structured_content
        assert 0 < plan["cost"] < plan["most"]
        refused = await call(server, "enrich_skills", max_cost=1, input_price=1)
        assert (refused.is_error, "needs the price" in text_of(refused)) == (True, True)
        budget = {"max_cost": 0.01, **prices}
        ended = (await call(server, "enrich_skills", **budget)).structured_content
        assert (ended["left"], ended["cost"]) == (["git", "testing"], 0)
        assert ended["ended"] == "the budget of 0.010 dollars allows no further call"
        done = await call(server, "enrich_skills", skills=["git"], concurrency=1, **prices)
        assert done.structured_content["cost"] == pytest.approx((120 + 10 * 40) / 1e6)


async def test_the_status_counts_skills_and_reports_failures(
    server: SkillServer, opened: SemanticRouter, skills: Path
) -> None:
    (skills / "broken").mkdir()
    (skills / "broken" / "SKILL.md").write_text("no frontmatter", encoding="utf-8")
    await opened.reload()
    await opened.route("commit and push my branch")
    status = (await call(server, "router_status")).structured_content
    assert status["catalog_version"] == opened.catalog.version
    assert status["skills"] == {"routable": 2, "hidden": 1, "shadowed": 0, "not_loaded": 1}
    [failure] = status["failures"]
    assert failure["path"] == str(skills / "broken" / "SKILL.md")
    assert failure["reason"]
    assert status["watching"] == "off"
    assert status["caches"]["exact"]["misses"] == 1
    assert status["encoder"] == "bundled 3"
    assert status["models"] == []


async def test_the_status_names_the_encoder_that_runs_and_no_address_of_it(
    skills: Path, encoder: Encoder, tmp_path: Path
) -> None:
    given = FailingEncoder(encoder)
    given.identity = "openai/http://hidden:hidden@127.0.0.1:9/v1/?key=hidden/small"
    settings = Settings(state_dir=tmp_path / "state-here", llm={"enabled": False})
    async with SemanticRouter(settings, roots=[skills], encoder=given) as router:
        answer = await call(SkillServer(router), "router_status")
    assert answer.structured_content["encoder"] == "openai small"


async def test_the_status_names_the_models_and_shows_no_secret(
    skills: Path, encoder: Encoder, tmp_path: Path
) -> None:
    settings = Settings(
        state_dir=tmp_path / "state-here",
        llm={
            "openai": {
                "api_key": "sk-hidden",
                "base_url": "http://hidden:hidden@127.0.0.1:9/v1",
                "model": "small",
            }
        },
    )
    async with SemanticRouter(settings, roots=[skills], encoder=encoder) as router:
        assert [model.model for model in router.models] == ["small"]
        answer = await call(SkillServer(router), "router_status")
    assert answer.structured_content["models"] == [{"provider": "openai", "model": "small"}]
    assert "hidden" not in json.dumps(
        {k: v for k, v in answer.structured_content.items() if k != "skills"}
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("route", {}, "request: Field required"),
        ("route", {"request": ""}, "request: String should have at least 1 character"),
        ("route", {"request": "\x1b[0m"}, "request: empty"),
        ("route", {"request": "x" * 20_001}, "request: String should have at most 20000"),
        ("route", {"request": "x", "wrong": 1}, "wrong: Extra inputs are not permitted"),
        ("route", {"request": "x", "history": [{"role": "nobody", "text": "y"}]}, "history.0"),
        ("route", {"request": "x", "history": ["y", 5, "z"]}, "history.1: a turn is"),
        ("find_skills", {"query": "x", "limit": 0}, "limit: Input should be greater than"),
        ("load_skill", {"name": "gti"}, "no skill named 'gti'; did you mean git?"),
        ("load_skill", {"name": "secret"}, "no skill named 'secret'"),
        ("load_skill", {"name": "secre"}, "no skill named 'secre'"),
        ("load_skill", {"name": "../git"}, "no skill named '../git'"),
        ("give_feedback", {"id": "no-such-answer", "right": True}, "feedback: "),
        (
            "router_status",
            {"x" * 9_999: True},
            "x" * MAX_PLACE + ": Extra inputs are not permitted",
        ),
    ],
)
async def test_a_faulty_call_is_a_result_that_says_what_is_wrong(
    shared: Any, tool: str, arguments: dict[str, Any], said: str
) -> None:
    answer = await call(shared.url, tool, **arguments)
    assert answer.is_error
    assert text_of(answer).startswith(said)
    assert len(text_of(answer)) <= MAX_FAULT_CHARACTERS
    assert "secret;" not in text_of(answer)
    assert "did you mean secret" not in text_of(answer)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_unknown_tool_is_an_error_of_the_protocol(shared: Any, mode: str) -> None:
    async with Client(shared.url, mode=mode) as client:
        with pytest.raises(MCPError, match="unknown tool: 'rout'") as caught:
            await client.call_tool("rout", {})
    assert caught.value.code == -32602


class FailingEncoder:
    """The real encoder until it is told to fail."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity, self.static = encoder.identity, encoder.static
        self.error: Exception | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.error is not None:
            raise self.error
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self._encoder.encode_documents(documents)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_fault_in_a_tool_is_told_without_its_details_when_it_is_a_bug(
    skills: Path, encoder: Encoder, tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingEncoder(encoder)
    settings = Settings(state_dir=tmp_path / "state-here")
    async with (
        SemanticRouter(settings, roots=[skills], encoder=failing) as router,
        Client(SkillServer(router).protocol, mode=mode) as client,
    ):
        failing.error = EncoderError("the encoder is down")
        down = await client.call_tool("find_skills", {"query": "flaky tests"})
        failing.error = ValueError("password=1234")
        with caplog.at_level(logging.CRITICAL, logger="router"):
            bug = await client.call_tool("find_skills", {"query": "flaky tests"})
        failing.error = None
        well = await client.call_tool("find_skills", {"query": "flaky tests"})
    assert (down.is_error, text_of(down)) == (True, "the encoder is down")
    assert bug.is_error
    assert text_of(bug) == "an internal error; the server's log has the details"
    assert not well.is_error
