"""Makes the pictures of docs/playground.md: ``PYTHONPATH=tests python -m playground.screenshots``.

It serves the shipped skills, does on each screen what a person does there, and writes PNG files to
``docs/playground/``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx
from cascade import SHIPPED
from playground.conftest import ARGUMENTS, CHROMIUM, WAIT_SECONDS, serving
from playwright.sync_api import Page, expect, sync_playwright

PICTURES: Final = Path(__file__).parents[2] / "docs" / "playground"
MAX_BYTES: Final = 150_000
LABELLED: Final = "\n".join(
    (
        '{"request": "squash the last four commits on this branch", "skills": ["git"]}',
        '{"request": "the totals are off by one cent", "skills": ["debugging"]}',
        '{"request": "write a unit test for the parser", "skills": ["testing"]}',
        '{"request": "plot the columns of this csv", "skills": ["data-analysis"]}',
        '{"request": "rename this everywhere", "skills": ["refactoring"]}',
        '{"request": "explain the queue in the readme", "skills": ["documentation"]}',
        '{"request": "what is slow in here", "skills": ["debugging"]}',
        '{"request": "make the numbers of this sheet add up", "skills": ["data-analysis"]}',
        '{"request": "tidy up", "skills": []}',
        '{"request": "book me a flight", "skills": []}',
    )
)
ASKED: Final = (
    "commit my changes",
    "why does this crash",
    "write a unit test",
    "plot this csv",
    "tidy up",
    "rename this everywhere",
    "is this form open to injection?",
    "bisect the failing commit",
    "bisect the failing commits",
    "draft an announcement email",
)
ON_A_PHONE: Final = ("try", "memory")
MEMORIES: Final = (
    "We chose Postgres for its JSON support",
    "The Postgres database of the shop moved to version 17 on Monday",
)


def try_it(page: Page) -> None:
    page.get_by_label("Request", exact=True).fill("squash the last four commits on this branch")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#candidates")).to_be_visible()


def skills(page: Page) -> None:
    page.get_by_label("Search the skills").fill("the login page is slow")
    expect(page.locator("#list")).to_contain_text("matches on")


def compare(page: Page) -> None:
    page.get_by_label("Requests", exact=True).fill(LABELLED)
    page.get_by_label("Settings").last.fill('vector.caution = "bold"')
    page.get_by_role("button", name="Compare").click()
    page.locator("#moved").evaluate("element => element.scrollIntoView()")


def caches(page: Page) -> None:
    page.get_by_label("Request", exact=True).fill("please bisect the failing commit")
    page.get_by_role("button", name="Would it hit?").click()
    expect(page.locator("#tested")).to_be_visible()


def learning(page: Page) -> None:
    expect(page.locator("#judge")).to_be_visible()


def memory(page: Page) -> None:
    page.get_by_label("Query").fill("Why did we choose Postgres?")
    page.get_by_text("Scope, number, strategy and budget").click()
    page.get_by_label("User").fill("ada")
    page.get_by_label("Project").fill("shop")
    page.get_by_role("button", name="Recall").click()
    expect(page.locator("#read")).to_be_visible()


SCREENS: Final[tuple[tuple[str, str, Callable[[Page], None]], ...]] = (
    ("try", "/", try_it),
    ("skills", "/skills", skills),
    ("compare", "/compare", compare),
    ("caches", "/caches", caches),
    ("learning", "/learning", learning),
    ("memory", "/memory", memory),
)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        shutil.copytree(SHIPPED, Path(folder) / "skills")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        with serving(Path(folder)) as served, httpx.Client(base_url=served.url) as client:
            client.timeout = httpx.Timeout(WAIT_SECONDS)
            for request in ASKED:
                client.post("/v1/route", json={"request": request}).raise_for_status()
            for text in MEMORIES:
                body = {"content": text, "layer": "project", "user": "ada", "project": "shop"}
                client.post("/v1/memory/save", json=body).raise_for_status()
            for name, path, act in SCREENS:
                for kind, theme, size in (
                    ("", "light", {"width": 1120, "height": 1420 if name == "try" else 860}),
                    ("-phone", "dark", {"width": 390, "height": 780}),
                ):
                    if kind and name not in ON_A_PHONE:
                        continue
                    context = browser.new_context(
                        base_url=served.url,
                        viewport={"width": size["width"], "height": size["height"]},
                        color_scheme="dark" if theme == "dark" else "light",
                    )
                    page = context.new_page()
                    page.goto(path)
                    act(page)
                    expect(page.locator(".htmx-request")).to_have_count(0)
                    picture = page.screenshot(path=PICTURES / f"{name}{kind}.png")
                    context.close()
                    if len(picture) > MAX_BYTES:
                        raise SystemExit(f"{name}{kind}: {len(picture):,} bytes are too many")
        browser.close()


if __name__ == "__main__":
    main()
