"""``router serve``: the service over HTTP, with MCP under ``/mcp``."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from router.cli.keys import who_may_call
from router.cli.logs import LogFormat, announce, log_to_standard_error
from router.cli.mcp import beside, serving
from router.cli.options import AllowedHosts, NoLLM, SkillFolders, read_secret, read_settings
from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError
from router.version import install_extra

if TYPE_CHECKING:
    from router.http.caller import Callers
    from router.http.siblings import Siblings
    from router.router import SemanticRouter
    from router.settings.settings import Settings

DEFAULT_PORT: Final = 8017
_OF_REQUESTS: Final = (
    "numpy.random",
    "router.decision",
    "router.enrichment.asking",
    "router.memory.curation.consolidation",
    "router.memory.curation.extraction",
    "router.memory.layers.project",
    "router.memory.parts",
    "router.memory.records",
    "router.ranking",
)
"""Modules that the library imports when something first needs them."""


def serve(
    folders: SkillFolders = None,
    no_llm: NoLLM = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Variable that holds a key with all rights, beside those of router keys.",
        ),
    ] = None,
    allow_host: AllowedHosts = None,
    drain_seconds: Annotated[
        float,
        typer.Option(min=1, help="Time for requests under way when the server is told to stop."),
    ] = 10,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve the address together.")
    ] = 1,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log a line for each request, without its text.")
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="How the log on standard error is written.")
    ] = LogFormat.TEXT,
    worker: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve routing, skills and memory over HTTP, and MCP under /mcp.

    On this machine's own addresses no key is needed, unless there are keys. Any other address needs
    keys: make some with router keys new. /openapi.json describes the API.
    """
    missing = [name for name in ("mcp", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"the server is an extra: {install_extra('serve')}")
    log_to_standard_error(log_format, access=access_log)
    settings = read_settings(no_llm=no_llm, serves=folders or ())
    secret = None if key_env is None else read_secret(key_env)
    names, callers = who_may_call(host, allowed=allow_host or (), secret=secret)
    server = _Serving(folders, settings, names, callers, drain_seconds, log_format)
    from router.web.running import listen, run_loop

    if worker is not None:
        number, descriptor, folder = worker.split(":", 2)
        run_loop(server.as_worker(int(number), workers, int(descriptor), Path(folder)))
        return
    with listen(host, port) as listening:
        if workers == 1:
            run_loop(server.alone(listening))
        elif os.name != "posix":
            raise ConfigurationError("--workers needs a system on which processes share a socket")
        else:
            run_loop(server.with_workers(workers, listening))


_BY_COMMAND: Final = getattr(sys.modules["__main__"], "__spec__", None) is None
_PYTHON: Final = (sys.executable, *(("-P",) if _BY_COMMAND else ()))
"""Python for workers. The command ``router`` has no working directory on its path, from which a
cloned folder could have its own ``http.py`` imported; ``python -m router`` has, unless told so."""


@dataclass(frozen=True, slots=True)
class _Serving:
    """What is served, and to whom."""

    folders: Sequence[Path] | None
    settings: Settings
    names: Sequence[str]
    callers: Callers
    drain_seconds: float
    log_format: LogFormat

    async def alone(self, listening: socket.socket) -> None:
        from router.web.running import address_of

        said = f"serving at {address_of(listening)}"
        await self._serve(listening, started=lambda: announce(said, self.log_format))

    async def with_workers(self, number: int, listening: socket.socket) -> None:
        """Serve in several worker processes, which this process starts and watches."""
        from router.http.siblings import make_ready
        from router.web.running import address_of
        from router.web.workers import run_workers

        said = f"serving at {address_of(listening)} with {number} workers"
        with tempfile.TemporaryDirectory(prefix="router-") as name:
            folder = Path(name)
            make_ready(folder)

            def command(worker: int) -> list[str]:
                place = f"{worker}:{listening.fileno()}:{folder}"
                return [*_PYTHON, "-m", "router", *sys.argv[1:], "--worker", place]

            def died(worker: int) -> None:
                """Delete the gauges of a worker that has died: its present state is over."""
                for file in (folder / "metrics").glob(f"gauge_live*_{worker}.db"):
                    file.unlink(missing_ok=True)

            await run_workers(
                command,
                number,
                listening=listening,
                environment={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics")},
                drain_seconds=self.drain_seconds,
                started=lambda: announce(said, self.log_format),
                died=died,
            )

    async def as_worker(self, number: int, workers: int, descriptor: int, folder: Path) -> None:
        from prometheus_client import values

        from router.http.siblings import Siblings
        from router.web.workers import stop_with_the_first

        # Who is started in the place of a worker that died goes on with its counts and its files.
        values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
        stop_with_the_first(folder)
        siblings = Siblings(folder, number, workers)
        with socket.socket(fileno=descriptor) as listening, siblings.listen() as private:
            await self._serve(listening, private, siblings=siblings)

    async def _serve(
        self,
        *sockets: socket.socket,
        siblings: Siblings | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        from opentelemetry import trace

        from router.http.api import Api
        from router.http.app import http_app
        from router.mcp.http import mcp_app
        from router.tools.folder import ToolFolder
        from router.web.running import run

        tools = ToolFolder(self.settings.evidence_directory / "tools")
        async with (
            serving(self.folders, self.settings, more=[tools]) as served,
            beside(load_rest(served.router)),
        ):
            provider = trace.get_tracer_provider()  # such as opentelemetry-instrument sets up
            configured = not isinstance(provider, trace.ProxyTracerProvider)
            api = Api(
                served.router,
                served.memory,
                self.callers,
                spans=provider if configured else None,
                siblings=siblings,
            )

            def stop() -> None:
                api.stop()
                served.server.close()

            mcp = mcp_app(served.server, sessions=siblings is None)
            await run(
                http_app(api, names=self.names, mcp=mcp),
                *sockets,
                drain_seconds=self.drain_seconds,
                started=started,
                stopping=stop,
            )


async def load_rest(router: SemanticRouter) -> None:
    """Load what a request would be the first to need, also the libraries of the configured LLMs:
    later there may be no file descriptor left, or another version of the package in its folder."""
    from router.retrieval.background import is_foreign
    from router.retrieval.bundled_encoder import bundled_words

    parts = (await router.open()).parts
    sdks = {model.provider for model in parts.llm.models} & {"openai", "ollama"}
    with suppress(Exception):  # the request that needs it tells it
        bundled_words()
        is_foreign(("these", "read", "files", "once"))
        parts.classifier.layers("so does this")
        for name in (*_OF_REQUESTS, *sdks):
            await in_thread(partial(import_module, name))
