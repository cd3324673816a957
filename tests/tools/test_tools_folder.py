"""The source of tools that are kept as files: what one process puts, every process reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from router.errors import SourceError
from router.tools import folder as folder_module
from router.tools.folder import ToolFolder, namespace_of


def tool(name: str, description: str = "Pays money back.") -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": {"type": "object"}}


def test_a_tool_is_routed_to_by_its_namespace_and_name(tmp_path: Path) -> None:
    source, other = ToolFolder(tmp_path), ToolFolder(tmp_path)
    assert source.put("shop", "refund", tool("refund"))
    assert not source.put("shop", "refund", tool("refund", "Gives money back."))
    assert source.put("bank", "refund", tool("refund"))
    found = other.read().skills
    assert [(namespace_of(s), s.name) for s in found] == [
        ("bank", "bank__refund"),
        ("shop", "shop__refund"),
    ]
    assert found[1].payload == tool("refund", "Gives money back.")
    assert source.delete("bank", "refund")
    assert not source.delete("bank", "refund")
    assert [s.name for s in other.read().skills] == ["shop__refund"]


def test_a_quick_look_reads_what_changed_and_nothing_else(tmp_path: Path) -> None:
    source = ToolFolder(tmp_path)
    source.put("shop", "refund", tool("refund"))
    source.put("shop", "order", tool("order", "Orders goods."))
    first = source.read()
    source.put("shop", "order", tool("order", "Orders many goods."))
    again = source.read(first, quick=True)
    assert again.skills[1] is first.skills[1]
    assert again.skills[0].description == "Orders many goods."


@pytest.mark.parametrize(
    ("namespace", "name", "definition"),
    [
        ("../up", "x", tool("x")),
        ("Shop", "x", tool("x")),
        ("a--b", "x", tool("x")),
        ("skills", "x", tool("x")),  # the namespace of the skills of folders
        ("", "x", tool("x")),
        ("shop", "../x", tool("../x")),
        ("shop", "x/y", tool("x/y")),
        ("shop", "", tool("")),
        ("shop", "x", tool("y")),
        ("shop", "x", {"description": "no name"}),
        ("shop", "x", tool("x", "y" * 300_000)),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_written(
    tmp_path: Path, namespace: str, name: str, definition: dict[str, Any]
) -> None:
    with pytest.raises(SourceError):
        ToolFolder(tmp_path / "tools").put(namespace, name, definition)
    assert list(tmp_path.rglob("*.json")) == []


def test_the_number_of_tools_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MAX_TOOLS", 1)
    source = ToolFolder(tmp_path)
    source.put("shop", "refund", tool("refund"))
    source.put("shop", "refund", tool("refund"))
    with pytest.raises(SourceError, match="1 tools already"):
        source.put("shop", "order", tool("order"))


def test_a_namespace_whose_tools_were_dropped_makes_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "MAX_NAMESPACES", 1)
    source = ToolFolder(tmp_path)
    source.put("bank", "loan", tool("loan"))
    with pytest.raises(SourceError, match="1 namespaces"):
        source.put("shop", "refund", tool("refund"))
    source.delete("bank", "loan")
    source.put("shop", "refund", tool("refund"))
    assert [skill.name for skill in source.read().skills] == ["shop__refund"]


def test_a_file_that_is_no_tool_is_a_failure_of_its_own(tmp_path: Path) -> None:
    source = ToolFolder(tmp_path)
    source.put("shop", "refund", tool("refund"))
    (tmp_path / "shop" / "bad.json").write_text("{")
    (tmp_path / "shop" / "other.json").write_text(json.dumps(tool("another")))
    (tmp_path / "shop" / "link.json").symlink_to("/etc/passwd")
    snapshot = source.read()
    assert [skill.name for skill in snapshot.skills] == ["shop__refund"]
    assert {fault.path.name for fault in snapshot.failures} == {
        "bad.json", "other.json", "link.json",
    }  # fmt: skip
