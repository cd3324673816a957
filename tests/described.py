"""Answers of the HTTP API, compared with what its OpenAPI description says of them."""

from __future__ import annotations

from typing import Any

import httpx
import jsonschema

from router.http.openapi import openapi


def described(method: str, path: str, status: int) -> tuple[str, dict[str, Any]]:
    """Media type and schema that /openapi.json gives for an answer."""
    whole = openapi()
    [(kind, content)] = whole["paths"][path][method]["responses"][str(status)]["content"].items()
    return kind, {**content["schema"], "components": whole["components"]}


def check(answer: httpx.Response, method: str, path: str) -> Any:
    """The answer's content, if it is as it is described."""
    kind, schema = described(method, path, answer.status_code)
    assert answer.headers["content-type"].startswith(kind)
    jsonschema.validate(answer.json(), schema)
    return answer.json()
