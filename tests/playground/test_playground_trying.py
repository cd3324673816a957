"""Try: what a person does to find out why a request was routed as it was."""

from __future__ import annotations

import re

import httpx
from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import Page, expect

SQUASH = "squash the last four commits on this branch"


def ask(page: Page, request: str, **more: str) -> None:
    page.get_by_label("Request", exact=True).fill(request)
    if more:
        page.get_by_text("History, available skills and scope").click()
        for label, text in more.items():
            page.get_by_label(label.replace("_", " ").capitalize(), exact=True).fill(text)
    page.get_by_role("button", name="Route", exact=True).click()


def test_a_request_is_answered_explained_and_corrected_with_one_click(visit: Open) -> None:
    page = visit("/")
    ask(page, SQUASH)
    answer = page.get_by_role("region", name=re.compile("^route git"))
    expect(answer).to_contain_text("git matches on")
    stages = page.get_by_role("region", name="What each stage said").locator("tbody th")
    expect(stages).to_have_text(["fuzzy", "exact", "llm", "vector"])
    why = page.get_by_role("region", name=re.compile("^Why git and not "))
    expect(why).to_contain_text(re.compile(r"git is \d\.\d{3} ahead of .*only it has: squash"))
    expect(why).to_contain_text("nearest example")
    candidates = page.get_by_role("region", name="Candidates").get_by_role("listitem")
    expect(candidates.locator("svg.stacked").first).to_have_attribute(
        "aria-label", re.compile(r"^wording \d\.\d+, meaning \d\.\d+, examples \d\.\d+$")
    )
    answer.get_by_role("button", name="Right").click()
    expect(page.get_by_role("status")).to_have_text("Taken in: it was right.")


def test_a_correction_is_answered_from_then_on_and_an_earlier_answer_can_be_opened(
    visit: Open, served: Served
) -> None:
    routed = httpx.post(f"{served.url}/v1/route", json={"request": "tidy these numbers"}).json()
    page = visit(f"/decisions/{routed['id']}")
    expect(page.locator(".asked")).to_have_text("tidy these numbers")
    candidates = page.get_by_role("region", name="Candidates")
    candidates.locator("details", has_text="It should have been data-analysis").locator(
        "summary"
    ).click()
    candidates.get_by_role("button", name="It should have been data-analysis").click()
    expect(page.get_by_role("status")).to_contain_text("it should have been data-analysis")
    page.goto("/")
    ask(page, "tidy these numbers")
    expect(page.get_by_role("heading", name="route data-analysis")).to_be_visible()
    expect(page.get_by_text("from the exact cache")).to_be_visible()


def test_history_available_skills_and_scope_count(visit: Open) -> None:
    page = visit("/")
    ask(
        page,
        "and now push it",
        history="user: commit my changes\nassistant: done",
        available_skills="git, testing",
        scope="tenant-7",
    )
    expect(page.get_by_role("heading", name="route git")).to_be_visible()
    expect(page.locator(".candidates > li")).to_have_count(2)


def test_hostile_texts_are_shown_and_do_nothing(visit: Open) -> None:
    page = visit("/")
    ask(page, HOSTILE + "gruesome payload", scope=HOSTILE[:100], history=HOSTILE)
    expect(page.locator("#answer")).to_be_visible()
    expect(page.locator(".candidates")).to_contain_text("<script>window.broken=1</script>")
    expect(page.locator(".candidates")).to_contain_text("\u2423U+202E\u2423evil")
    page.goto("/")
    expect(page.get_by_role("region", name="Latest answers")).to_contain_text("<script>")
    ask(page, "x" * 20_000)
    expect(page.locator("#answer")).to_be_visible()


def test_what_cannot_be_asked_is_said(visit: Open) -> None:
    page = visit("/", allowed="status of 422")
    ask(page, "\u0007\u001b[0m")
    expect(page.get_by_role("alert")).to_contain_text("empty")


def test_an_answer_shows_at_once_among_the_latest(visit: Open) -> None:
    page = visit("/")
    ask(page, "undo the newest commit of this branch")
    latest = page.get_by_role("region", name="Latest answers")
    expect(latest).to_contain_text("undo the newest commit of this branch")
    ask(page, "undo the two newest commits of this branch")
    expect(latest).to_contain_text("undo the two newest commits")
    expect(page.locator("#latest-answers")).to_have_count(1)


def test_a_server_that_does_not_answer_is_told_in_place_of_the_earlier_answer(visit: Open) -> None:
    page = visit("/", allowed="ERR_INTERNET_DISCONNECTED|htmx:error")
    ask(page, SQUASH)
    page.context.set_offline(True)
    page.get_by_role("button", name="Right", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer")
    expect(page.get_by_role("button", name="Right", exact=True)).to_be_visible()
    ask(page, "write a letter")
    expect(page.locator("#answer")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer")
    page.context.set_offline(False)
    ask(page, "write a letter")
    expect(page.locator("#answer")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_without_scripts_the_same_page_comes_whole(served: Served) -> None:
    done = httpx.post(f"{served.url}/try", data={"request": SQUASH}, headers={"Origin": served.url})
    assert done.status_code == 200
    assert "<!doctype html>" in done.text
    assert "What each stage said" in done.text
