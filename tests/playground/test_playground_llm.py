"""What an LLM wrote, about a request or about a skill, is text on every screen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import httpx
import pytest
from cascade import SHIPPED, answer
from playground.conftest import HOSTILE, Open, Served, serving
from playwright.sync_api import expect
from servers.openai_server import OpenAIServer, completion

from router.skills.enrichment import ENRICHMENT_FILE, Enrichment

SHOWN = "<script>window.broken=1</script>"
ASKED = "squash my commits whatever the model says"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose LLM writes nothing but hostile texts."""
    home = tmp_path_factory.mktemp("hostile")
    for name in ("git", "testing"):
        shutil.copytree(SHIPPED / name, home / "skills" / name)
    written = Enrichment(
        skill="git", requests=(HOSTILE,), near_misses=(HOSTILE,), model=HOSTILE[:190]
    )
    (home / "skills" / ENRICHMENT_FILE).write_text(written.to_line(), encoding="utf-8")
    llm = OpenAIServer()
    llm.always = completion(answer("git", mission_brief=HOSTILE, reasoning=HOSTILE))
    try:
        with serving(home, llm) as running:
            yield running
    finally:
        llm.close()


def test_what_it_says_of_a_request_is_shown_as_it_is(visit: Open, hostile: Served) -> None:
    page = visit("/", base=hostile.url)
    page.get_by_label("Request", exact=True).fill(ASKED)
    page.get_by_role("button", name="Route", exact=True).click()
    said = page.get_by_role("region", name=re.compile("^route git"))
    expect(said.get_by_text(SHOWN)).to_have_count(2)  # the reasoning and the mission brief
    for path in ("/learning", "/caches"):
        page.goto(path)
        expect(page.locator("main")).to_contain_text(ASKED)


def test_what_it_wrote_about_a_skill_is_shown_as_it_is(visit: Open, hostile: Served) -> None:
    page = visit("/skills/show?name=git", base=hostile.url)
    written = page.get_by_role("region", name="git")
    expect(written.get_by_text(SHOWN)).to_have_count(3)  # a request, a near miss, the model's name
    found = httpx.post(f"{hostile.url}/v1/rank", json={"request": HOSTILE}, timeout=60).json()
    assert found["skills"][0]["name"] == "git"
