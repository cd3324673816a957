"""The Skills extension: entries with digests, folders, and who is published."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from router.mcp import skills_extension
from router.mcp.hello import SKILLS_EXTENSION
from router.mcp.server import SkillServer
from router.mcp.skills_extension import skill_entry
from router.retrieval.encoders import Encoder
from router.router import SemanticRouter
from router.settings.settings import Settings
from router.skills.catalog import load_catalog
from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.sources import SkillSource

SaveSkill = Callable[..., Path]


class Parameters(types.RequestParams, extra="allow"):
    """Any parameters."""


class Answer(types.Result, extra="allow"):
    """Any result, as the wire has it."""


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    request = types.Request[Parameters, str](method=method, params=Parameters(**params))
    answer = await client.session.send_request(request, Answer)
    return dict(answer.model_extra or {})


async def refusal(client: Client, method: str, **params: Any) -> int:
    with pytest.raises(MCPError) as caught:
        await ask(client, method, **params)
    return caught.value.code


def entry_of(root: Path, name: str) -> dict[str, Any]:
    return skill_entry(load_catalog([root]).skills[name])


async def test_the_extension_is_announced(shared: Any) -> None:
    async with Client(shared.url) as client:
        discovered = await client.session.send_discover("2026-07-28")
    assert discovered["capabilities"]["extensions"] == {SKILLS_EXTENSION: {"directoryRead": True}}


async def test_every_file_of_a_skill_is_listed_with_its_digest(shared: Any) -> None:
    async with Client(shared.url) as client:
        answer = await ask(client, "skills/list")
        git, testing = answer["skills"]
        assert git["uri"] == "skill://git/SKILL.md"
        assert git["frontmatter"] == {
            "name": "git",
            "description": "Commits, merges and rebases Git branches. Use for version control.",
            "license": "MIT",
            "metadata": {"routing-keywords": "commit, push"},
        }
        assert testing["uri"] == "skill://testing/SKILL.md"
        assert answer["cacheScope"] == "private"
        assert answer["ttlMs"] == skills_extension.FRESH_MS
        read = {}
        for resource in git["resources"]:
            [content] = (await client.read_resource(resource["uri"])).contents
            assert isinstance(content, types.TextResourceContents)
            read[resource["uri"]] = content.text.encode()
    assert list(read) == [
        "skill://git/SKILL.md",
        "skill://git/references/hooks/list.md",
        "skill://git/scripts/undo.sh",
    ]
    for resource in git["resources"]:
        data = read[resource["uri"]]
        assert resource["size"] == len(data)
        assert resource["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


async def test_an_entry_follows_its_files_without_a_reload(
    server: SkillServer, skills: Path
) -> None:
    async with Client(server.protocol) as client:
        before = await ask(client, "skills/get", uri="skill://git/SKILL.md")
        (skills / "git" / "scripts" / "undo.sh").write_bytes(b"git reset --hard\n")
        after = await ask(client, "skills/get", uri="skill://git/SKILL.md")
    assert before["skill"]["resources"][2]["digest"] != after["skill"]["resources"][2]["digest"]
    assert after["skill"]["resources"][2]["size"] == 17


async def test_a_folder_lists_its_direct_children(shared: Any) -> None:
    async with Client(shared.url) as client:
        top = await ask(client, "resources/directory/read", uri="skill://git")
        below = await ask(client, "resources/directory/read", uri="skill://git/references/hooks")
    assert [(r["uri"], r["mimeType"]) for r in top["resources"]] == [
        ("skill://git/SKILL.md", "text/markdown"),
        ("skill://git/references", "inode/directory"),
        ("skill://git/scripts", "inode/directory"),
    ]
    assert [r["uri"] for r in below["resources"]] == ["skill://git/references/hooks/list.md"]


@pytest.mark.parametrize(
    ("method", "uri"),
    [
        ("skills/get", "skill://nothing/SKILL.md"),
        ("skills/get", "skill://git"),
        ("skills/get", "skill://git/scripts/undo.sh"),
        ("skills/get", "skill://secret/SKILL.md"),
        ("resources/directory/read", "skill://git/SKILL.md"),
        ("resources/directory/read", "skill://git/nothing"),
        ("resources/read", "skill://git/../testing/SKILL.md"),
        ("resources/read", "skill://git/scripts"),
        ("resources/read", "skill://git"),
        ("resources/read", "skill://secret/SKILL.md"),
        ("resources/read", "file:///etc/passwd"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_not_served_is_an_error_of_the_protocol(
    shared: Any, mode: str, method: str, uri: str
) -> None:
    async with Client(shared.url, mode=mode) as client:
        code = await refusal(client, method, uri=uri)
    known = mode == "auto" or method == "resources/read"
    assert code == (types.INVALID_PARAMS if known else types.METHOD_NOT_FOUND)


async def test_bytes_that_are_no_text_come_as_base64(server: SkillServer, skills: Path) -> None:
    (skills / "git" / "logo.png").write_bytes(b"\x89PNG\xff")
    async with Client(server.protocol) as client:
        [content] = (await client.read_resource("skill://git/logo.png")).contents
    assert isinstance(content, types.BlobResourceContents)
    assert content.mime_type == "image/png"
    assert base64.b64decode(content.blob) == b"\x89PNG\xff"


async def test_what_is_listed_can_be_read(skills: Path, encoder: Encoder, tmp_path: Path) -> None:
    """A tool has no file, and neither has a skill of a program."""
    held = MemorySource([SkillManifest.in_memory("greet", "Says hello to a person.")])
    settings = Settings(state_dir=tmp_path / "state")
    sources: list[SkillSource] = [FolderSource([skills]), held]
    async with (
        SemanticRouter(settings, sources=sources, encoder=encoder) as router,
        Client(SkillServer(router).protocol) as client,
    ):
        listed = (await client.list_resources()).resources
        for resource in listed:
            await client.read_resource(resource.uri)
        called = await client.call_tool("load_skill", {"name": "greet"})
    assert [resource.name for resource in listed] == ["git", "testing"]
    assert not called.is_error


async def test_pages_give_every_skill_once(
    server: SkillServer,
    opened: SemanticRouter,
    save: SaveSkill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(skills_extension, "RESOURCES_A_PAGE", 2)
    monkeypatch.setattr(skills_extension, "ENTRIES_A_PAGE", 2)
    for name in ("a", "b", "z"):
        save(name, f"Does {name}.")
    await opened.reload()
    async with Client(server.protocol) as client:
        listed, entries = [], []
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            listed += [resource.name for resource in page.resources]
            if (cursor := page.next_cursor) is None:
                break
        more: dict[str, str] = {}
        while True:
            answer = await ask(client, "skills/list", **more)
            entries += [entry["frontmatter"]["name"] for entry in answer["skills"]]
            if "nextCursor" not in answer:
                break
            more = {"cursor": answer["nextCursor"]}
    assert listed == entries == ["a", "b", "git", "testing", "z"]


@pytest.mark.parametrize(
    "head",
    [
        "metadata:\n  version: 1.0\n",
        "metadata: [a, b]\n",
        "license: [MIT]\n",
        "compatibility: ''\n",
        "allowed-tools: [Read]\n",
        "note: a: b\n",
        "license: MIT\nlicense: BSD\n",
    ],
)
async def test_a_skill_that_breaks_the_format_is_served_but_not_published(
    server: SkillServer, opened: SemanticRouter, save: SaveSkill, head: str
) -> None:
    save("odd", "Is odd.", head=head)
    await opened.reload()
    async with Client(server.protocol) as client:
        entries = (await ask(client, "skills/list"))["skills"]
        assert "odd" not in [entry["frontmatter"]["name"] for entry in entries]
        assert await refusal(client, "skills/get", uri="skill://odd/SKILL.md") == -32602
        assert (await client.read_resource("skill://odd/SKILL.md")).contents
        assert not (await client.call_tool("load_skill", {"name": "odd"})).is_error


def test_a_name_against_the_rule_is_not_published(root: Path, save: SaveSkill) -> None:
    save("My Skill", "Is mine.")
    with pytest.raises(LookupError, match="rule for names"):
        entry_of(root, "My Skill")


def test_values_of_unknown_keys_keep_their_types(root: Path, save: SaveSkill) -> None:
    save("typed", "Has types.", head="n: 3\nx: 1.5\nyes: true\nnone:\nday: 2026-02-31\nl: [a, 1]\n")
    frontmatter = entry_of(root, "typed")["frontmatter"]
    del frontmatter["name"], frontmatter["description"]
    assert frontmatter == {
        "n": 3,
        "x": 1.5,
        "yes": True,
        "none": None,
        "day": "2026-02-31",
        "l": ["a", 1],
    }


def test_a_skill_whose_file_is_a_link_is_not_published(root: Path, save: SaveSkill) -> None:
    folder = save("linked", "Is linked.")
    (folder / "SKILL.md").rename(root / "text.md")
    (folder / "SKILL.md").symlink_to("../text.md")
    with pytest.raises(LookupError, match="is a link"):
        entry_of(root, "linked")


def test_files_that_are_too_large_together_are_not_published(
    root: Path, save: SaveSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("large", "Is large.", files={"a.bin": b"x" * 60, "b.bin": b"x" * 60})
    monkeypatch.setattr(skills_extension, "MAX_BYTES", 150)
    with pytest.raises(LookupError, match="larger than 150 bytes"):
        entry_of(root, "large")
