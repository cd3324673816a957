"""Memory: what a query finds and why, and a context within its budget."""

from __future__ import annotations

import re

import httpx
import pytest
from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import Page, expect

ADA = {"user": "ada", "project": "shop"}


@pytest.fixture(scope="module", autouse=True)
def _remembered(served: Served) -> None:
    for text in ("We chose Postgres for its JSON support", HOSTILE + "gruesome memory"):
        body = {"content": text, "layer": "project", **ADA}
        httpx.post(f"{served.url}/v1/memory/save", json=body, timeout=60).raise_for_status()


def ask(page: Page, query: str, button: str, **fields: str) -> None:
    page.get_by_label("Query").fill(query)
    if not page.get_by_label("User").is_visible():
        page.get_by_text("Scope, number, strategy and budget").click()
    for label, text in {"User": "ada", "Project": "shop", **fields}.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(text)
    page.get_by_role("button", name=button).click()


def test_a_query_is_answered_with_layers_times_and_reasons(visit: Open) -> None:
    page = visit("/memory")
    expect(page.get_by_role("region", name="Layers")).to_contain_text("procedural")
    ask(page, "Why did we choose Postgres?", "Recall")
    found = page.get_by_role("region", name=re.compile("memor(y|ies) found"))
    expect(found.get_by_role("listitem").first).to_contain_text("for its JSON support")
    found.get_by_text("why").first.click()
    expect(found.locator(".evidence").first).to_contain_text("overall")
    read = page.get_by_role("region", name="What was read").get_by_role("row")
    expect(read.filter(has_text="project")).to_contain_text(re.compile("ms|µs"))


def test_a_context_keeps_its_budget_and_says_what_was_left_out(visit: Open) -> None:
    page = visit("/memory")
    ask(page, "Why did we choose Postgres?", "Make a context")
    expect(page.get_by_label("Text of the context")).to_contain_text("for its JSON support")
    expect(page.get_by_text("of 2000 tokens")).to_be_visible()
    budget = {"Budget_of_the_context_in_tokens": "5"}
    ask(page, "Why did we choose Postgres?", "Make a context", **budget)
    expect(page.locator("#part")).to_contain_text("left out")


def test_hostile_memories_are_shown_and_do_nothing(visit: Open) -> None:
    page = visit("/memory")
    ask(page, "window.broken gruesome memory", "Recall")
    expect(page.locator("#part")).to_contain_text("<script>window.broken=1</script>")
    ask(page, "gruesome memory " + "y" * 1_500, "Make a context")
    expect(page.locator("#context")).to_be_visible()
