"""Caches: would a request be answered from one, why not, and forgetting an answer."""

from __future__ import annotations

import httpx
from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import expect

BISECT = "bisect to the commit that broke it"


def test_a_kept_answer_is_found_explained_and_forgotten(visit: Open, served: Served) -> None:
    httpx.post(f"{served.url}/v1/route", json={"request": BISECT})
    page = visit("/caches")
    entries = page.get_by_role("region", name="Kept answers")
    expect(entries).to_contain_text(BISECT)
    looks = page.get_by_role("region", name="Latest looks")
    expect(looks).to_contain_text("no identical request is stored")
    page.get_by_label("Request", exact=True).fill(f"please {BISECT}")
    page.get_by_role("button", name="Would it hit?").click()
    tested = page.locator("#part")
    expect(tested.get_by_role("heading")).to_have_text("hit git")
    expect(tested).to_contain_text(f"close to an earlier request: {BISECT}")
    entries.get_by_role("button", name=f"Forget {BISECT}").click()
    expect(entries.get_by_role("status")).to_have_text("forgotten")
    page.get_by_role("button", name="Would it hit?").click()
    expect(tested.get_by_role("heading")).to_have_text("no hit it would be decided anew")
    expect(tested).to_contain_text("no similar request is stored")


def test_hostile_requests_are_shown_and_forgotten(visit: Open, served: Served) -> None:
    request = f"use the git skill {HOSTILE}"
    httpx.post(f"{served.url}/v1/route", json={"request": request, "scope": HOSTILE[:100]})
    page = visit("/caches")
    entries = page.locator("tr", has_text="use the git skill <script>window.broken=1</script>")
    expect(entries).to_have_count(1)
    page.get_by_label("Request", exact=True).fill(request)
    page.get_by_label("Scope").fill(HOSTILE[:100])
    page.get_by_role("button", name="Would it hit?").click()
    page.get_by_role("button", name="Forget the answer to this very request").click()
    expect(page.locator("#part").get_by_role("status")).to_have_text("forgotten")
    page.reload()
    expect(entries).to_have_count(0)
