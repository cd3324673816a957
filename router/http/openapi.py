"""``/openapi.json``, made from the table of endpoints and the types of the service."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter

from router.http.endpoints import ENDPOINTS, Endpoint
from router.service.schemas import Untitled, output_schema
from router.version import package_version
from router.web.problems import MEDIA_TYPE, Problem

_REF: Final = "#/components/schemas/{model}"


@cache
def openapi() -> dict[str, Any]:
    """The description of the whole API, OpenAPI 3.1. It is shared: copy it to change it."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    _hoist(TypeAdapter(Problem).json_schema(ref_template=_REF), "Problem", schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cascade-router",
            "version": package_version() or "0",
            "description": "Which skills to load for a request, and which memories to read.",
        },
        "paths": {**paths, **_PLAIN},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    arguments = endpoint.arguments.model_json_schema(ref_template=_REF, schema_generator=Untitled)
    shared = arguments.pop("$defs", {})
    schemas.update({name: _with_nulls(schema) for name, schema in shared.items()})
    arguments.pop("description", None)
    properties = arguments.get("properties", {})
    required = arguments.get("required", [])
    in_path = endpoint.in_path
    in_query = () if endpoint.takes == "body" else [n for n in properties if n not in in_path]
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in required,
            "schema": properties[name],
        }
        for name in (*in_path, *in_query)
    ]
    parts = endpoint.path.replace("{", "").replace("}", "").split("/")[2:]
    name = "".join(part.title() for part in (endpoint.method, *parts))
    operation: dict[str, Any] = {
        "operationId": name[0].lower() + name[1:],
        "summary": endpoint.summary,
        "description": f"Needs the right `{endpoint.right.value}`.",
        "parameters": parameters,
        "responses": _responses(endpoint, schemas, name),
    }
    if endpoint.takes == "body":
        # It names a class of ours, and generated clients made it a part of their names.
        arguments.pop("title", None)
        body = {
            **arguments,
            "properties": {n: s for n, s in properties.items() if n not in in_path},
            "required": [n for n in required if n not in in_path],
        }
        if endpoint.body is not None:
            body = properties[endpoint.body]
        body = _with_nulls(body)
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _hoist(body, f"{name}Arguments", schemas)}},
        }
    return operation


def _with_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of arguments, where a null counts as left out; another schema as it is."""
    if schema.get("additionalProperties") is not False:
        return schema
    required = schema.get("required", ())
    fields = schema["properties"].items()
    return {
        **schema,
        "properties": {n: s if n in required else _or_null(s) for n, s in fields},
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    null = {"type": "null"}
    if null in schema.get("anyOf", ()):
        return schema
    about: dict[str, Any] = {
        key: schema[key] for key in ("description", "default") if key in schema
    }
    value = {key: inner for key, inner in schema.items() if key not in about}
    return {**about, "anyOf": [value, null]}


def _responses(endpoint: Endpoint, schemas: dict[str, Any], name: str) -> dict[str, Any]:
    schema_of_answer = output_schema(endpoint.answer, _REF)
    if schema_of_answer.get("type") != "string":
        schema_of_answer = _hoist(schema_of_answer, f"{name}Answer", schemas)
    responses: dict[str, Any] = {
        "200": {
            "description": "Done.",
            "content": {endpoint.media_type: {"schema": schema_of_answer}},
        }
    }
    if endpoint.etag:
        responses["304"] = {"description": "The skills are those that you know."}
    return {**responses, **_refusals(*endpoint.statuses)}


def _refusals(*statuses: HTTPStatus) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    return {str(s.value): {"description": s.phrase, "content": content} for s in statuses}


def _hoist(schema: dict[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Put a schema and the types that it refers to among the shared ones; a reference to it."""
    schemas.update(schema.get("$defs", {}))
    schemas[name] = {key: value for key, value in schema.items() if key != "$defs"}
    return {"$ref": _REF.format(model=name)}


def _plain(
    summary: str, *codes: int, kind: str = "application/json", refused: tuple[HTTPStatus, ...] = ()
) -> dict[str, Any]:
    content = {kind: {"schema": {"type": "object" if "json" in kind else "string"}}}
    answers = {str(code): {"description": summary, "content": content} for code in codes}
    return {"get": {"summary": summary, "responses": {**answers, **_refusals(*refused)}}}


_PLAIN: Final = {
    "/healthz": _plain("The process is alive.", 200),
    "/readyz": _plain("Whether requests are answered at once, and what is degraded.", 200, 503),
    "/metrics": _plain(
        "Figures for Prometheus; needs the right `manage`.",
        200,
        kind="text/plain",
        refused=(HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
    ),
    "/openapi.json": _plain("This description.", 200),
}
