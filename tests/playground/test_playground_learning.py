"""Learning: the account, who answers, and judging the answers that are least sure."""

from __future__ import annotations

import re

import httpx
from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import expect

VAGUE = "do something about the parser"


def test_the_least_sure_answers_are_judged_and_leave_the_queue(visit: Open, served: Served) -> None:
    for request in (VAGUE, f"vague {HOSTILE}"):
        httpx.post(f"{served.url}/v1/route", json={"request": request})
    page = visit("/learning")
    account = page.get_by_role("region", name="Account of the error bound")
    expect(account).to_contain_text(re.compile(r"Used\s*0\.00% of 1\.00%"))
    course = page.get_by_role("img", name=re.compile("^Answers a minute, from "))
    expect(course).to_be_visible()
    queue = page.get_by_role("region", name="Answers to judge").get_by_role("listitem")
    hostile = queue.filter(has_text="vague <script>")
    expect(hostile).to_have_count(1)
    waiting = queue.filter(has_text=VAGUE)
    waiting.get_by_role("button", name="Wrong").click()
    expect(waiting.get_by_role("status")).to_contain_text("it was wrong")
    page.reload()
    expect(hostile).to_have_count(1)
    expect(waiting).to_have_count(0)


def test_what_was_learnt_is_listed(visit: Open, served: Served) -> None:
    routed = httpx.post(f"{served.url}/v1/route", json={"request": "and now what?"}).json()
    said = {"skills": ["writer"]}
    httpx.post(f"{served.url}/v1/decisions/{routed['id']}/feedback", json=said).raise_for_status()
    page = visit("/learning")
    row = page.get_by_role("row").filter(has_text="and now what?")
    expect(row).to_contain_text("feedback")
    expect(row).to_contain_text("writer")
