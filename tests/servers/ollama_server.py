"""An Ollama server: ``POST /api/chat``, not streaming, with a JSON schema as format, and
``POST /api/embed``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from servers.loopback import LoopbackServer, Recorded, Reply, pieces

_PARAMETERS: Final = {
    "model",
    "messages",
    "stream",
    "format",
    "options",
    "logprobs",
    "tools",
}
_OPTIONS: Final = {"temperature": (int, float), "num_predict": (int,), "num_ctx": (int,)}


class OllamaServer(LoopbackServer):
    """Serves ``POST /api/chat`` and ``POST /api/embed``."""

    @property
    def url(self) -> str:
        return self.address

    def respond(self, request: Recorded) -> Reply:
        check = _ENDPOINTS.get((request.method, request.path))
        if check is None:
            self.violation(f"{request.method} {request.path}")
            return error(404, "not found")
        faults = list(check(request.body))
        self.violations.extend(faults)
        return error(400, faults[0]) if faults else self.next_reply()


def chat(
    content: str,
    *,
    probabilities: Mapping[str, float] | None = None,
    done_reason: str = "stop",
) -> Reply:
    """A whole answer; with ``probabilities`` (as in ``pieces``) it has log probabilities."""
    response: dict[str, object] = {
        "model": "test-model",
        "created_at": "2026-11-21T00:00:00.000000Z",
        "message": {"role": "assistant", "content": content},
        "done": True,
        "done_reason": done_reason,
        "total_duration": 1_000_000,
        "prompt_eval_count": 130,
        "eval_count": 45,
    }
    if probabilities is not None:
        response["logprobs"] = pieces(content, probabilities)
    return Reply.json(response)


def embeddings(rows: Sequence[Sequence[float]]) -> Reply:
    """Vectors in the order of their texts."""
    return Reply.json({"model": "test-model", "embeddings": [list(row) for row in rows]})


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Reply:
    """An error in Ollama's form."""
    return Reply.json({"error": message}, status=status, headers=headers or {})


def _faults(body: object) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "the body is not an object"
        return
    for name in body.keys() - _PARAMETERS:
        yield f"unexpected field {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is required"
    if body.get("stream") is not False:
        yield "stream must be off; the server's default is on"
    if body.get("tools"):
        yield "no tools were to be offered"
    roles = [message.get("role") for message in body.get("messages", [])]
    if roles != ["system", "user"]:
        yield "expected one system and one user message"
    form = body.get("format")
    if not isinstance(form, dict) or form.get("type") != "object":
        yield "format is not a JSON schema"
    for name, value in body.get("options", {}).items():
        if name not in _OPTIONS or not isinstance(value, _OPTIONS[name]):
            yield f"option {name}={value!r}"


def _embedding_faults(body: object) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "the body is not an object"
        return
    for name in body.keys() - {"model", "input"}:
        yield f"unexpected field {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is required"
    texts = body.get("input")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        yield "input is not a list of texts"


_ENDPOINTS: Final[Mapping[tuple[str, str], Callable[[object], Iterator[str]]]] = {
    ("POST", "/api/chat"): _faults,
    ("POST", "/api/embed"): _embedding_faults,
}
