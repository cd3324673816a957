"""A server of chat completions and embeddings, as strict about requests as OpenAI's own.

Schemas are checked against the published rules of strict structured outputs. ``refuses`` names
parameters that this server does not take; it answers them as real servers do.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from servers.loopback import LoopbackServer, Recorded, Reply, pieces

_PARAMETERS: Final = {
    "model",
    "messages",
    "response_format",
    "temperature",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "stream",
}
_SCHEMA_KEYWORDS: Final = {
    "object": {"type", "properties", "required", "additionalProperties"},
    "array": {"type", "items", "minItems", "maxItems"},
    "string": {"type", "enum"},
    "number": {"type"},
}


class OpenAIServer(LoopbackServer):
    """Serves ``POST /v1/chat/completions`` and ``POST /v1/embeddings``."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses: dict[str, Reply] = {}

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def refuse(self, feature: str, reply: Reply) -> None:
        """Answer calls that use ``feature`` with ``reply``.

        A feature is a parameter, a type of ``response_format``, or ``maxItems``.
        """
        self.refuses[feature] = reply

    def respond(self, request: Recorded) -> Reply:
        check = _ENDPOINTS.get((request.method, request.path))
        if check is None:
            self.violation(f"{request.method} {request.path}")
            return error(404, "not found")
        if not request.headers.get("authorization", "").startswith("Bearer "):
            self.violation("no bearer token")
        faults = list(check(request.body))
        self.violations.extend(faults)
        if faults:
            return error(400, faults[0])
        for feature in _features(request.body):
            if feature in self.refuses:
                return self.refuses[feature]
        return self.next_reply()


def completion(
    content: str | None,
    *,
    probabilities: Mapping[str, float] | None = None,
    logprobs: bool = False,
    finish_reason: str = "stop",
    refusal: str | None = None,
) -> Reply:
    """A completion with this answer; ``probabilities`` as in ``pieces``, and implies logprobs."""
    shown = logprobs or probabilities is not None
    tokens = pieces(content or "", probabilities)
    for token in tokens:
        token["bytes"] = list(token["token"].encode())
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": tokens, "refusal": None} if shown else None,
        "finish_reason": finish_reason,
    }
    return Reply.json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "test-model",
            "choices": [choice],
            "usage": {"prompt_tokens": 120, "completion_tokens": 40, "total_tokens": 160},
        }
    )


def embeddings(rows: Mapping[int, Sequence[float]]) -> Reply:
    """Vectors by the index of their text, sent in the order of the mapping."""
    data = [
        {"object": "embedding", "index": index, "embedding": list(row)}
        for index, row in rows.items()
    ]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return Reply.json({"object": "list", "data": data, "model": "test-model", "usage": usage})


def error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in OpenAI's form."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    fault = {"message": message, "type": kind, "param": param, "code": code}
    return Reply.json({"error": fault}, status=status, headers=headers or {})


def _features(body: Mapping[str, Any]) -> Iterator[str]:
    yield from body
    form = body.get("response_format")
    if form is not None:
        yield form["type"]
        if "maxItems" in str(form):
            yield "maxItems"


def _faults(body: object) -> Iterator[str]:
    """What OpenAI would turn down in a request."""
    if not isinstance(body, dict):
        yield "the body is not an object"
        return
    for name in body.keys() - _PARAMETERS:
        yield f"Unrecognized request argument supplied: {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if body.get("stream"):
        yield "streaming was not asked for by any test"
    messages = body.get("messages")
    if not isinstance(messages, list) or [m.get("role") for m in messages] != ["system", "user"]:
        yield "expected one system and one user message"
        return
    form = body.get("response_format")
    if form is None:
        return
    if form["type"] == "json_object" and "json" not in str(messages).lower():
        yield "'messages' must contain the word 'json' in some form"
    if form["type"] == "json_schema":
        schema = form["json_schema"]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", schema.get("name", "")):
            yield "json_schema.name does not match the pattern"
        if schema.get("strict") is not True:
            yield "the schema is not strict"
        if schema["schema"].get("type") != "object":
            yield "the root of the schema is not an object"
        yield from _schema_faults(schema["schema"])


def _embedding_faults(body: object) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "the body is not an object"
        return
    for name in body.keys() - {"model", "input", "encoding_format"}:
        yield f"Unrecognized request argument supplied: {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    texts = body.get("input")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        yield "input is not a list of texts"
    elif not 1 <= len(texts) <= 2048 or not all(texts):
        yield "input has an empty text, no text, or more than 2048"
    if body.get("encoding_format") != "float":
        yield "compatible servers know the format float only"


def _schema_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    kind = schema.get("type", "")
    for keyword in schema.keys() - _SCHEMA_KEYWORDS.get(kind, set()):
        yield f"Invalid schema: {keyword!r} is not permitted in {kind or 'a schema without type'}"
    if kind == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            yield "Invalid schema: 'additionalProperties' is required to be false"
        if sorted(schema.get("required", [])) != sorted(properties):
            yield "Invalid schema: 'required' must include every key in properties"
        for part in properties.values():
            yield from _schema_faults(part)
    if kind == "array":
        yield from _schema_faults(schema["items"])
    choices = schema.get("enum", ["one"])
    if not choices or len(set(choices)) < len(choices):
        yield "Invalid schema: the enum is empty or has duplicates"
    if len(choices) > 1000 or (len(choices) > 250 and sum(map(len, choices)) > 15_000):
        yield "Invalid schema: the enum is too large"


_ENDPOINTS: Final[Mapping[tuple[str, str], Callable[[object], Iterator[str]]]] = {
    ("POST", "/v1/chat/completions"): _faults,
    ("POST", "/v1/embeddings"): _embedding_faults,
}


class HeldServer(OpenAIServer):
    """Keeps its replies back until ``release`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def next_reply(self) -> Reply:
        reply = super().next_reply()  # in the order in which the requests came
        self.release.wait()
        return reply

    def close(self) -> None:
        self.release.set()
        super().close()
