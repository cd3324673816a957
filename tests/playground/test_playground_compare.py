"""Compare: what moves between two settings or two catalogs, and how good each is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import expect

LABELLED: Final[tuple[tuple[str, list[str]], ...]] = (
    ("squash the last four commits on this branch", ["git"]),
    ("why does this crash with a traceback", ["debugging"]),
    ("write a unit test for the parser", ["testing"]),
    ("plot the columns of this csv", ["data-analysis"]),
    ("what should I cook tonight", []),
    (HOSTILE, []),
)


def test_two_settings_over_a_file_of_labelled_requests(visit: Open, tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    lines = [json.dumps({"request": text, "skills": skills}) for text, skills in LABELLED]
    file.write_text("\n".join(lines), encoding="utf-8")
    page = visit("/compare")
    page.get_by_label("or a file of them").set_input_files(file)
    page.get_by_role("group", name="B").get_by_label("Settings").fill("vector.caution = 1.0")
    page.get_by_role("button", name="Compare").click()
    moved = page.get_by_role("region", name=re.compile("of 6 requests moved"))
    expect(moved).to_contain_text("squash the last four commits")
    expect(moved).to_contain_text("route → clarify")
    for chart in ("Risk and coverage.", "Reliability."):
        expect(page.get_by_role("img", name=chart)).to_be_visible()
    routed = page.get_by_role("row", name=re.compile("^routed of the requests"))
    expect(routed).to_contain_text(re.compile(r"-\d\.\d{3}"))


def test_two_catalogs_over_plain_lines(visit: Open, served: Served) -> None:
    page = visit("/compare")
    page.get_by_label("Requests", exact=True).fill("commit this\nwrite a unit test\n")
    page.get_by_role("group", name="B").get_by_label("Folders of skills").fill(
        str(served.home / "skills" / "git")
    )
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name=re.compile("of 2 requests moved"))).to_be_visible()
    expect(page.get_by_role("img")).to_have_count(0)


def test_what_decides_where_data_goes_is_not_compared(visit: Open) -> None:
    page = visit("/compare", allowed="status of 409")
    page.get_by_label("Requests", exact=True).fill("anything")
    page.get_by_role("group", name="A").get_by_label("Settings").fill(
        'encoder.kind = "openai"\nllm.openai.base_url = "http://192.0.2.1"'
    )
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("encoder.kind")
