"""One served router and one browser for all tests of the playground.

The browser is Debian's Chromium. Where there is none the tests are left out, and say so loudly;
under ``ROUTER_TEST_ALL=1`` they fail instead.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from cascade import SHIPPED
from served import environment_of, launched
from servers.openai_server import OpenAIServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

CHROMIUM: Final = shutil.which("chromium")
ARGUMENTS: Final = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WAIT_SECONDS: Final = 60
"""Longest that a test waits for a page; reached only when it fails."""
SERVED: Final = ("git", "debugging", "testing", "data-analysis", "writer")
HOSTILE: Final = (
    "<script>window.broken=1</script><img src=x onerror=window.broken=1>\"'><svg/onload=broken=1>"
    " [x](javascript:alert(1)) {{7*7}} \u202eevil\u202c\u200b &amp; hx-get=/ "
)
"""A text that would run a script, break out of its place, or turn its line around."""


@dataclass(frozen=True)
class Served:
    """A running server.

    Attributes:
        url: where it is.
        home: the folder that it works in; its skills lie in ``home / "skills"``.
    """

    url: str
    home: Path


def write_skill(skills: Path, folder: str, name: str, description: str, body: str = "") -> Path:
    """Write a skill whose texts may be anything; gives its file."""
    place = skills / folder
    place.mkdir(parents=True, exist_ok=True)
    quoted = ["'" + text.replace("'", "''") + "'" for text in (name, description)]
    file = place / "SKILL.md"
    file.write_text(
        f"---\nname: {quoted[0]}\ndescription: {quoted[1]}\n---\n\n{body or name}\n",
        encoding="utf-8",
    )
    return file


@contextmanager
def serving(home: Path, llm: OpenAIServer | None = None) -> Iterator[Served]:
    """``router serve`` over ``home / "skills"`` and with ``llm``, if any, and nothing else of this
    machine."""
    environment = environment_of(home) | {
        "XDG_DATA_HOME": str(home / "data"),
        "ROUTER_MEMORY__DIRECTORY": str(home / "memory"),
        # On a busy machine the usual deadlines would leave layers out.
        "ROUTER_MEMORY__DEADLINE_SECONDS": "60",
        "ROUTER_MEMORY__LAYER_DEADLINE_SECONDS": "30",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if llm is not None:
        environment["ROUTER_LLM__OPENAI__BASE_URL"] = llm.url
        environment["ROUTER_LLM__OPENAI__API_KEY"] = "sk-test"
        environment["ROUTER_LLM__TIMEOUT_SECONDS"] = str(WAIT_SECONDS)
    options = ["--skills", str(home / "skills"), *(["--no-llm"] if llm is None else [])]
    with launched(home, environment, *options) as (process, url):
        yield Served(url, home)
        process.terminate()
        _, errors = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, errors) == (0, "")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("served")
    for name in SERVED:
        shutil.copytree(SHIPPED / name, home / "skills" / name)
    write_skill(home / "skills", "hostile", HOSTILE[:190], HOSTILE + "gruesome payload. " * 20)
    write_skill(home / "skills", "long", "n" * 200, "d" * 20_000)
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, for no longer than a module: while it runs, playwright keeps an event loop running
    in this thread, and no asynchronous test could have one."""
    if CHROMIUM is None:
        if os.environ.get("ROUTER_TEST_ALL") == "1":
            pytest.fail("there is no chromium: apt-get install chromium")
        pytest.skip("NO CHROMIUM: the playground is not tested (apt-get install chromium)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_SECONDS * 1000)
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


Open = Callable[..., "Page"]


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Open]:
    """Opens a screen in a window of its own. At the end no page may have had an error, refused
    anything by its policy, run a hostile script, or asked another server for anything."""
    faults: list[str] = []
    pages: list[Page] = []

    def opened(
        path: str = "/",
        *,
        theme: str = "light",
        width: int = 1280,
        base: str = served.url,
        allowed: str = "",
    ) -> Page:
        context = browser.new_context(
            base_url=base,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",  # colours change at once, and are checked as they stay
        )
        page = context.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)

        def heard(text: str) -> None:
            if not allowed or not re.search(allowed, text):
                faults.append(text)

        def logged(message: ConsoleMessage) -> None:
            if message.type == "error":
                heard(message.text)

        def asked(request: Request) -> None:
            if not request.url.startswith(base):
                heard(f"asked for {request.url}")

        page.on("console", logged)
        page.on("pageerror", lambda error: heard(str(error)))
        page.on("request", asked)
        page.on("dialog", lambda dialog: heard(f"dialog: {dialog.message}"))
        page.goto(path)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        if page.evaluate("typeof window.broken") != "undefined":
            faults.append(f"a hostile script ran on {page.url}")
        page.context.close()
    assert faults == []
