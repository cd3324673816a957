"""Every screen for everybody: with a keyboard alone, on a phone, in both themes, by axe's rules."""

from __future__ import annotations

import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playground.conftest import HOSTILE, Open, Served
from playwright.sync_api import Page, expect

SCREENS = ("/", "/skills", "/compare", "/caches", "/learning", "/memory")
PHONE = 375


def fill(page: Page, path: str) -> None:
    """Have a screen show what it shows when it is used."""
    if path == "/":
        page.get_by_label("Request", exact=True).fill("squash the last four commits")
        page.keyboard.press("Control+Enter")
        page.locator(".candidates details summary").first.click()
    elif path == "/skills":
        page.get_by_role("link", name="debugging", exact=True).click()
        page.get_by_role("button", name="Check each skill").click()
        expect(page.locator("#findings").get_by_role("status")).to_be_visible()
    elif path == "/compare":
        line = '{"request": "commit this", "skills": ["git"]}'
        page.get_by_label("Requests", exact=True).fill(line)
        page.get_by_label("Settings").last.fill("vector.caution = 1.0")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#figures")).to_be_visible()
    elif path == "/caches":
        page.get_by_label("Request", exact=True).fill("squash the last four commits")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#tested")).to_be_visible()
    elif path == "/memory":
        page.get_by_label("Query").fill("What do we know?")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#read")).to_be_visible()
    expect(page.locator(".htmx-request")).to_have_count(0)


@pytest.mark.parametrize("path", SCREENS)
def test_a_screen_breaks_no_rule_in_either_theme_and_fits_a_phone(
    visit: Open, served: Served, path: str
) -> None:
    for request in ("squash the last four commits", HOSTILE):
        httpx.post(f"{served.url}/v1/route", json={"request": request})
    page = visit(path)
    fill(page, path)
    check(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": PHONE, "height": 800})
    check(page, "color-contrast", "target-size", "scrollable-region-focusable")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check(page: Page, *rules: str) -> None:
    """No rule is broken, of these or of all that axe knows."""
    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else None
    found = Axe().run(page, options=options)
    assert found.violations_count == 0, found.generate_report()


def test_signing_in_breaks_no_rule(visit: Open) -> None:
    check(visit("/sign-in", theme="dark"))


def test_a_request_is_routed_judged_and_looked_at_with_the_keyboard_alone(visit: Open) -> None:
    page = visit("/")
    expect(page.get_by_label("Request", exact=True)).to_be_focused()
    page.keyboard.type("write a unit test for the parser")
    tab_to(page, "Route")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_be_visible()
    tab_to(page, "Right")
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_have_text("Taken in: it was right.")
    page.goto("/skills")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to(page, "")  # the search
    page.keyboard.type("unit tests")
    expect(page.locator("#list tbody th").first).to_have_text("testing")
    tab_to(page, "testing")
    page.keyboard.press("Enter")
    expect(page.locator("#one")).to_have_text("testing")


def tab_to(page: Page, name: str) -> None:
    """Press Tab until something of this text has the focus, which everybody can see."""
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and re.sub(r"\s+", " ", focused.inner_text()).strip() == name:
            break
    else:
        raise AssertionError(f"no way to {name!r} by the keyboard")
    outline = focused.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
