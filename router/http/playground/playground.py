"""The playground: its screens as routes of the server, behind the keys and bounds of the API."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from router.http.api import Api, Handler
from router.http.caller import asking
from router.http.limits import read_form, read_json
from router.http.playground import caches, compare, learning, memory, skills, trying
from router.http.playground.journal import Journal
from router.http.playground.rendering import Assets, templates
from router.http.playground.screens import Action, Part, Screen, Visit
from router.http.playground.session import COOKIE, Sessions, from_this_site
from router.http.problems import Refused, problem_of
from router.web.problems import Problem

SCREENS: Final = (
    trying.SCREEN,
    skills.SCREEN,
    compare.SCREEN,
    caches.SCREEN,
    learning.SCREEN,
    memory.SCREEN,
)
SIGN_IN: Final = "/sign-in"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Vary": "HX-Request",
}
"""Every page has these headers: nothing runs and nothing is loaded but the files of this server."""


def playground(api: Api, *, secret: bytes | None = None) -> list[Route]:
    """The routes of the playground. ``secret`` signs sessions; processes that serve one address
    share it. None makes one."""
    pages = _Pages(api, Sessions(api.callers, secret=secret or secrets.token_bytes(32)))
    routes = [
        Route("/playground/{name}", Assets().serve),
        Route(SIGN_IN, api.guarded(pages.sign_in), methods=["GET", "POST"]),
        Route("/sign-out", api.guarded(pages.sign_out), methods=["POST"]),
    ]
    for screen in SCREENS:
        routes.append(Route(screen.path, pages.of(screen), methods=["GET"]))
        routes += [
            Route(action.path, pages.of(screen, action), methods=[action.method])
            for action in screen.actions
        ]
    return routes


class _Pages:
    """Renders screens for those who may see them."""

    def __init__(self, api: Api, sessions: Sessions) -> None:
        self._api = api
        self._sessions = sessions
        self._journal = Journal()
        api.happened.subscribe(self._journal)
        self._templates = templates()

    def of(self, screen: Screen, action: Action | None = None) -> Handler:
        """The page of a screen, or one of its actions."""
        answer = partial(self._answer, screen=screen, action=action)
        return self._api.guarded(answer, partial(self._problem, screen))

    async def _answer(self, request: Request, screen: Screen, action: Action | None) -> Response:
        identify = partial(self._sessions.identify, request)
        caller = identify()
        asking.set(caller)
        caller.require(screen.right)
        caller.require_all_namespaces()  # the screens show names of the whole catalog
        given = dict(request.query_params)
        if self._api.is_from_sibling(request):
            given |= await read_json(request)
        elif request.method == "POST":
            from_this_site(request)
            given = await read_form(request)
        if (decision := request.path_params.get("id")) is not None:
            told = await self._api.answer_of_sibling(request, decision, given)
            if told is not None:
                told.headers.update(_HEADERS)
                return told
        given |= request.path_params
        visit = Visit(self._api, self._journal, caller, identify, given)
        if action is None:
            return await self._page(request, screen, visit, None)
        caller.require(action.right)
        async with self._api.places.take(caller.id):
            part = await action.run(visit)
        if isinstance(part, Response):
            return part
        if _by_htmx(request):
            return self._rendered(part.template, part.values)
        return await self._page(request, screen, visit, part)

    async def _page(
        self, request: Request, screen: Screen, visit: Visit, part: Part | None
    ) -> Response:
        values: dict[str, Any] = {**await screen.values(visit)}
        if part is not None:
            values |= part.values
        return self._rendered(
            screen.template,
            {
                **values,
                **self._frame(request, screen),
                "part": None if part is None else part.template,
                "given": visit.given,
                "may": {right.value for right in visit.caller.rights},
            },
        )

    def _frame(self, request: Request, screen: Screen | None) -> dict[str, Any]:
        """What every page shows around its own."""
        _, state = self._api.ready()
        return {
            "screen": screen,
            "screens": SCREENS,
            "state": state,
            "has_session": COOKIE in request.cookies,
        }

    def _problem(self, screen: Screen, error: Exception, request: Request) -> Response:
        if isinstance(error, Refused) and error.status == 401:
            if _by_htmx(request):
                return Response(status_code=401, headers={**_HEADERS, "HX-Redirect": SIGN_IN})
            return RedirectResponse(SIGN_IN, 303, headers=_HEADERS)
        told = problem_of(error, request)
        found = Problem.model_validate_json(bytes(told.body))
        values = {"problem": found}
        headers = {"Retry-After": told.headers["retry-after"]} if found.status == 503 else {}
        if _by_htmx(request):
            return self._rendered("problem.html", values, found.status, headers)
        values |= self._frame(request, screen)
        return self._rendered("fault.html", values, found.status, headers)

    def _rendered(
        self,
        template: str,
        values: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        text = self._templates.get_template(template).render(values)
        return Response(
            text.encode("utf-8", "replace"),
            status,
            {**_HEADERS, **(headers or {})},
            "text/html; charset=utf-8",
        )

    async def sign_in(self, request: Request) -> Response:
        """The form for a key, and what it sends."""
        values = {**self._frame(request, None), "refused": ""}
        if request.method == "GET":
            return self._rendered("sign-in.html", values)
        done = RedirectResponse("/", 303, headers=_HEADERS)
        try:
            from_this_site(request)
            key = (await read_form(request)).get("key", "").strip()
            self._sessions.sign_in(done, key, secure=request.url.scheme == "https")
        except Refused as error:
            values["refused"] = f"{error.title}: {error}"
            return self._rendered("sign-in.html", values, error.status)
        return done

    async def sign_out(self, request: Request) -> Response:
        from_this_site(request)
        done = RedirectResponse(SIGN_IN, 303, headers=_HEADERS)
        self._sessions.sign_out(done)
        return done


def _by_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"
