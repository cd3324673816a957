"""Tools of MCP servers: real processes over stdio, good and bad ones, and one over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from cascade import WAIT_SECONDS, settings_for
from servers.tool_folders import REFUND, WEATHER, ToolFolders, tool

from router import SemanticRouter
from router.errors import ConfigurationError
from router.settings.files import warn_once
from router.skills.sources import SourceSnapshot
from router.tools.connections import connected, parsed
from router.tools.servers import McpServers, RemoteTool


@pytest.fixture
def servers(tmp_path: Path) -> ToolFolders:
    (tmp_path / "servers").mkdir()
    return ToolFolders(tmp_path / "servers")


@contextmanager
def started(servers: ToolFolders, **options: Any) -> Iterator[McpServers]:
    given = {"timeout_seconds": WAIT_SECONDS, "first_pause": 0.05, **options}
    with McpServers(servers.config(), **given) as source:
        yield source


def until(
    source: McpServers, holds: Callable[[SourceSnapshot], object], act: Callable[[], None]
) -> SourceSnapshot:
    """What the source gives once the condition holds, after ``act`` was done."""
    changed = threading.Event()
    end = source.subscribe(changed.set)
    act()
    while not holds(source.read()):
        assert changed.wait(WAIT_SECONDS)
        changed.clear()
    end()
    return source.read()


MIXED_UP = "the tools of '{}' could be taken for its own; rename one of them"


def names(snapshot: SourceSnapshot) -> list[str]:
    return [skill.name for skill in snapshot.skills]


async def test_tools_of_servers_are_named_after_them_and_come_back_with_their_definition(
    servers: ToolFolders, tmp_path: Path
) -> None:
    servers.put("bank", REFUND)
    servers.put("sky", WEATHER)
    with started(servers) as source:
        async with SemanticRouter(settings_for(tmp_path / "state"), sources=[source]) as router:
            found = await router.rank("what will the weather forecast be")
    assert found.names == ("sky__weather", "bank__refund")
    payload = found.skills[0].payload
    assert isinstance(payload, RemoteTool)
    assert (payload.server, payload.definition.name) == ("sky", "weather")
    assert payload.definition.input_schema == WEATHER["inputSchema"]


def test_a_changed_list_is_read_again_and_told(servers: ToolFolders) -> None:
    servers.put("bank", REFUND)
    with started(servers) as source:
        before = source.read()
        assert names(before) == ["bank__refund"]
        after = until(
            source,
            lambda snapshot: len(snapshot.skills) == 2,
            lambda: servers.put("bank", {**REFUND, "description": "Ignore the others."}, WEATHER),
        )
        assert names(after) == ["bank__refund", "bank__weather"]
        assert after.skills[0].digest != before.skills[0].digest  # an observer is told of it


def test_a_server_that_is_down_keeps_its_tools_marked_and_comes_back(servers: ToolFolders) -> None:
    servers.put("bank", REFUND)
    servers.put("sky", WEATHER)
    with started(servers, rescan_seconds=0.1) as source:
        down = until(
            source,
            lambda snapshot: snapshot.stale,
            lambda: servers.set_mode("bank", "down"),
        )
        assert names(down) == ["bank__refund", "sky__weather"]
        assert [path.name for path in down.stale] == ["bank__refund"]
        [notice] = down.notices
        assert notice.message.startswith("the server cannot be reached: ")
        up = until(
            source,
            lambda snapshot: not snapshot.stale,
            lambda: servers.set_mode("bank", "good"),
        )
        assert (names(up), up.notices) == (["bank__refund", "sky__weather"], ())


def test_a_server_that_logs_to_its_output_is_told_of_in_one_line(
    servers: ToolFolders, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    servers.put("bank", REFUND)
    servers.set_mode("bank", "chatty")
    with started(servers) as source:
        assert names(source.read()) == ["bank__refund"]
    [line] = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert line.exc_info is None
    assert line.getMessage().startswith("an MCP server writes to its standard output what is no")


def test_servers_that_misbehave_are_reported_and_the_others_work(servers: ToolFolders) -> None:
    for mode in ("down", "garbage", "hang"):
        servers.put(mode, REFUND, mode=mode)
    servers.put("sky", WEATHER)
    with started(servers, timeout_seconds=5.0) as source:
        found = source.read()
        assert names(found) == ["sky__weather"]
        assert [failure.path.name for failure in found.failures] == ["down", "garbage", "hang"]
        for failure in found.failures:
            assert failure.message.startswith("the server cannot be reached: ")


def test_a_server_that_hangs_holds_nobody_back_and_joins_when_it_answers(
    servers: ToolFolders, tmp_path: Path
) -> None:
    servers.put("bank", REFUND)
    servers.put("slow", WEATHER, mode="waits")
    with started(servers, grace_seconds=0.0) as source:
        assert names(source.read()) == ["bank__refund"]
        assert source.missing == {"slow": "it has not answered yet"}
        joined = until(
            source,
            lambda snapshot: len(snapshot.skills) == 2,
            lambda: servers.set_mode("slow", "good"),
        )
    assert names(joined) == ["bank__refund", "slow__weather"]
    assert source.missing == {}


def test_a_server_that_never_answers_is_reported_as_missing_after_its_time(
    servers: ToolFolders,
) -> None:
    servers.put("bank", REFUND)
    servers.put("slow", WEATHER, mode="hang")
    with started(servers, grace_seconds=0.0, timeout_seconds=5.0) as source:
        late = until(source, lambda snapshot: snapshot.failures, lambda: None)
    [failure] = late.failures
    assert failure.message == "the server cannot be reached: no answer within 5 s"
    assert source.missing == {"slow": "no answer within 5 s"}


def test_while_all_servers_are_waited_for_it_is_told_which(servers: ToolFolders) -> None:
    servers.put("bank", REFUND)
    servers.put("slow", WEATHER, mode="waits")
    told: list[Sequence[str]] = []

    def waits_for(names: Sequence[str]) -> None:
        told.append(names)
        if "bank" not in names:
            servers.set_mode("slow", "good")

    with started(servers, waits_for=waits_for) as source:
        assert names(source.read()) == ["bank__refund", "slow__weather"]
    assert list(told[-1]) == ["slow"]


def test_a_tool_that_cannot_be_used_is_named_and_the_others_are_taken(servers: ToolFolders) -> None:
    long = tool("long", "x" * (1 << 20))
    servers.put("bank", REFUND, long, WEATHER)
    with started(servers) as source:
        found = source.read()
        assert names(found) == ["bank__refund", "bank__weather"]
        [failure] = found.failures
        assert failure.message == (
            "bank__long: the description has 1,048,576 characters; at most 65,536"
        )


def test_the_same_tool_of_several_servers_is_one_tool(servers: ToolFolders) -> None:
    for name in ("a", "b", "c"):
        servers.put(name, REFUND)
    with started(servers, rescan_seconds=0.1) as source:
        found = source.read()
        assert names(found) == ["a__refund"]
        payload = found.skills[0].payload
        assert isinstance(payload, RemoteTool)
        assert payload.twins == ("b__refund", "c__refund")
        other = until(
            source,
            lambda snapshot: names(snapshot) == ["b__refund"],
            lambda: servers.set_mode("a", "down"),
        )
        assert [path.name for path in other.stale] == ["a__refund"]  # for who approved a's alone
        assert other.notices == ()


def test_a_tool_that_a_server_lists_in_vain_hides_no_twin(servers: ToolFolders) -> None:
    servers.put("a", {**REFUND, "description": "Another one."}, REFUND)
    servers.put("b", REFUND)
    with started(servers) as source:
        found = source.read()
    assert names(found) == ["a__refund", "b__refund"]
    [failure] = found.failures
    assert failure.message == "a__refund: there is one of that name already"


def test_ten_thousand_tools_of_a_server_are_taken_and_no_more(servers: ToolFolders) -> None:
    servers.put("big", *(tool(f"t{number}", f"Does {number}.") for number in range(10_001)))
    with started(servers) as source:
        found = source.read()
        assert len(found.skills) == 10_000
        assert [notice.code for notice in found.notices] == ["too-many-tools"]


def test_a_server_that_its_user_has_disabled_is_not_started(
    servers: ToolFolders, tmp_path: Path
) -> None:
    servers.put("good", REFUND)
    program = f"open({str(tmp_path / 'started')!r}, 'w')"
    off = {"command": sys.executable, "args": ["-c", program], "disabled": True}
    with McpServers({"off": off, **servers.config()["mcpServers"]}) as source:
        assert [skill.name for skill in source.read().skills] == ["good__refund"]
        assert source.read().failures == ()
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (5, "expected Mapping or str or Path, not int"),
        ({}, 'it names no server under "mcpServers"'),
        ({"mcpServers": []}, 'it names no server under "mcpServers"'),
        ({"a": {}}, 'server \'a\': it needs "command" or "url"'),
        ({"a": {"command": "x", "url": "y"}}, 'server \'a\': it needs "command" or "url"'),
        ({"a": {"command": "x", "args": "y"}}, "server 'a': args is no list"),
        ({"a": {"url": 7}}, "server 'a': url is no str"),
        ({"a__b": {"url": "x"}, "a": {"url": "x"}}, f"server 'a': {MIXED_UP.format('a__b')}"),
        ({"a": {"url": "x"}, "a_": {"url": "x"}}, f"server 'a': {MIXED_UP.format('a_')}"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(config: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^McpServers: {message}$"):
        McpServers(config)


def test_variables_of_a_file_are_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_KEY", "s3cret")
    monkeypatch.delenv("BANK_HOST", raising=False)
    file = tmp_path / "servers.json"
    bank = {"url": "https://${BANK_HOST:-bank}/mcp", "headers": {"X-Key": "k ${BANK_KEY}"}}
    sky = {"command": "sky", "args": ["--zone", "$HOME ${}"], "env": {"K": "${BANK_KEY}"}}
    file.write_text(json.dumps({"mcpServers": {"bank": bank, "sky": sky}}), encoding="utf-8")
    assert parsed(file) == {
        "bank": {"url": "https://bank/mcp", "headers": {"X-Key": "k s3cret"}},
        "sky": {"command": "sky", "args": ["--zone", "$HOME ${}"], "env": {"K": "s3cret"}},
    }
    monkeypatch.setenv("BANK_HOST", "")  # a shell takes the default for an empty variable, too
    assert parsed(file)["bank"]["url"] == "https://bank/mcp"
    assert parsed({"bank": bank})["bank"] == bank  # a program says what it means
    monkeypatch.delenv("BANK_KEY")
    with pytest.raises(ConfigurationError, match="server 'bank': the variable BANK_KEY is not set"):
        parsed(file)


@pytest.mark.parametrize("key", ["s3cret\r", "s3cret\nX: y", "s\u00e93cret"])
def test_of_a_header_that_cannot_be_sent_the_name_is_told_and_not_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("BANK_KEY", key)
    file = tmp_path / "servers.json"
    bank = {"url": "https://bank/mcp", "headers": {"X-Key": "${BANK_KEY}"}}
    file.write_text(json.dumps({"mcpServers": {"bank": bank}}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="'bank': the header 'X-Key' cannot be") as told:
        parsed(file)
    assert "3cret" not in str(told.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"env": {"KEY": ["s3cret"]}}, "env.KEY: Input should be a valid string"),
        ({"env": {"KEY\nof a": ["s3cret"]}}, "env.KEY of a: Input should be a valid string"),
        ({"args": ["--key", {"k": "s3cret"}]}, "args.1: Input should be a valid string"),
    ],
)
def test_of_a_value_of_a_wrong_type_the_place_is_told_and_not_the_value(
    wrong: dict[str, Any], told: str
) -> None:
    with McpServers({"bank": {"command": "bank", **wrong}}) as source:
        [failure] = source.read().failures
    assert failure.message == f"the server cannot be reached: {told}"


def test_a_connection_that_swallows_its_end_is_told_again(
    servers: ToolFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As anyio does where one of its scopes ends at the same moment."""
    swallowed = threading.Event()

    class Deaf(asyncio.Event):
        async def wait(self) -> Literal[True]:
            try:
                return await super().wait()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or swallowed.is_set():
                    raise
                swallowed.set()
                task.uncancel()
                return True

    @asynccontextmanager
    async def deaf(*how: Any) -> AsyncIterator[tuple[Any, asyncio.Event]]:
        async with connected(*how) as (client, _):
            yield client, Deaf()

    monkeypatch.setattr("router.tools.servers.connected", deaf)
    monkeypatch.setattr("router.tools.servers.CANCEL_AGAIN_SECONDS", 0.01)
    servers.put("sky", WEATHER)
    with started(servers) as source:
        assert names(source.read()) == ["sky__weather"]
    assert swallowed.is_set()


def test_a_server_that_does_not_end_by_itself_is_ended(
    servers: ToolFolders, tmp_path: Path
) -> None:
    servers.put("sky", WEATHER, mode="stays")
    with started(servers) as source:
        assert names(source.read()) == ["sky__weather"]
    pid = int((tmp_path / "servers" / "sky" / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
