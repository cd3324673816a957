"""Skills: what a person who writes skills looks for, and what shows while files are saved."""

from __future__ import annotations

import re

from playground.conftest import Open, Served, write_skill
from playwright.sync_api import expect


def test_a_search_finds_a_skill_and_all_about_it(visit: Open) -> None:
    page = visit("/skills")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(7)
    page.get_by_label("Search the skills").fill("tracebacks and crashes")
    expect(rows.first.get_by_role("rowheader")).to_have_text("debugging")
    expect(page.locator("#list")).to_contain_text("matches on")
    page.get_by_role("link", name="debugging", exact=True).click()
    one = page.get_by_role("region", name="debugging")
    expect(one).to_contain_text("fix the bug in the date picker")
    expect(one.get_by_role("heading", name="Written by an LLM")).to_be_visible()


def test_what_is_saved_shows_at_once(visit: Open, served: Served) -> None:
    page = visit("/skills")
    changes = page.locator("#changes")
    with page.expect_response("**/skills/live"):  # from here on it listens
        page.reload()
    file = write_skill(served.home / "skills", "new-one", "new-one", "Says <b>hello</b>. Use when.")
    expect(changes).to_contain_text("added new-one")
    expect(page.locator("#list")).to_contain_text("Says <b>hello</b>. Use when.")
    file.write_text("---\nname: [broken\n---\n", encoding="utf-8")
    expect(changes).to_contain_text("broken new-one")
    file.unlink()
    file.parent.rmdir()
    expect(changes).to_contain_text("removed new-one")
    expect(page.locator("#list")).not_to_contain_text("new-one")


def test_hostile_and_endless_skills_are_shown_linted_and_do_nothing(visit: Open) -> None:
    page = visit("/skills")
    page.get_by_role("button", name="Check each skill").click()
    findings = page.locator("#findings")
    expect(findings.get_by_role("status")).to_have_text(re.compile(r"^One by one: [1-9]"))
    expect(findings).to_contain_text("hidden-character")
    page.get_by_role("button", name="Find collisions").click()
    expect(findings.get_by_role("status")).to_have_text(re.compile("^Together: "))
    page.locator("#list").get_by_role("link", name=re.compile("^<script>")).click()
    expect(page.locator("#one")).to_contain_text("<script>window.broken=1</script>")
    page.goto("/skills/show?name=" + "n" * 200)
    expect(page.locator("#one")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
