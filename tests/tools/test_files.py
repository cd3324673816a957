"""Tools from files: JSON lists of definitions, and OpenAPI descriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from router.errors import ConfigurationError
from router.skills.diagnostics import MAX_DIAGNOSTICS, Severity
from router.tools.files import MAX_TOOLS, OpenApi, Operation, ToolsFile

PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "description": "Number of the pet"}],
            "get": {"operationId": "getPet", "summary": "Shows a pet.", "tags": ["animals"]},
            "delete": {"description": "Removes a pet."},
        },
        "/pets": {
            "post": {
                "operationId": "addPet",
                "parameters": [{"$ref": "#/components/parameters/dry"}],
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    }
                },
            }
        },
    },
    "components": {
        "parameters": {"dry": {"name": "dry_run", "in": "query", "description": "Only try"}},
        "schemas": {
            "Pet": {
                "type": "object",
                "properties": {"nickname": {"description": "What it is called"}},
            }
        },
    },
}


def test_operations_are_tools_with_their_parameters() -> None:
    source = OpenApi(PETS, name="pets")
    found = {skill.name: skill for skill in source.read().skills}
    assert {source.name, *(skill.origin for skill in found.values())} == {"pets"}
    assert list(found) == ["getPet", "delete_pets_by_id", "addPet"]
    assert found["getPet"].description == "Shows a pet."
    assert found["getPet"].routing_keywords == ("animals",)
    assert found["getPet"].body == "- id: Number of the pet"
    assert found["addPet"].description == "POST /pets"
    assert found["addPet"].body.splitlines() == [
        "- dry_run: Only try",
        "- body",
        "- nickname: What it is called",
    ]


def test_an_operation_comes_back_with_its_place_and_its_definition() -> None:
    payload = OpenApi(PETS).read().skills[0].payload
    assert isinstance(payload, Operation)
    assert (payload.method, payload.path) == ("GET", "/pets/{id}")
    assert payload.definition is PETS["paths"]["/pets/{id}"]["get"]


def test_what_is_written_down_elsewhere_in_a_description_is_found() -> None:
    described = {
        "paths": {
            "/orders": {"$ref": "#/components/pathItems/Orders"},
            "/invoices": {
                "get": {
                    "operationId": "listInvoices",
                    "parameters": [{"$ref": "#/paths/~1orders~1{id}/get/parameters/0"}],
                }
            },
            "/orders/{id}": {
                "get": {"operationId": "getOrder", "parameters": [{"name": "id", "in": "path"}]}
            },
        },
        "components": {
            "pathItems": {
                "Orders": {
                    "get": {
                        "operationId": "listOrders",
                        "parameters": [{"$ref": "#/components/parameters/first"}],
                    }
                }
            },
            "parameters": {
                "first": {"$ref": "#/components/parameters/second"},
                "second": {"name": "status", "in": "query"},
            },
        },
    }
    found = {skill.name: skill.body for skill in OpenApi(described).read().skills}
    assert found == {"listOrders": "- status", "listInvoices": "- id", "getOrder": "- id"}


def test_what_cannot_be_followed_in_a_description_is_named_and_the_rest_taken() -> None:
    described = {
        "paths": {
            "/round": {"$ref": "#/paths/~1round"},
            "/elsewhere": {"$ref": "https://example.org/paths.json"},
            "x-owner": "the pets team",
            "/pets": {
                "get": {
                    "parameters": [{"$ref": "#/components/parameters/Self"}, {"name": "limit"}],
                    "requestBody": {"$ref": "#/components/requestBodies/none"},
                }
            },
        },
        "components": {"parameters": {"Self": {"$ref": "#/components/parameters/Self"}}},
    }
    found = OpenApi(described).read()
    assert {skill.name: skill.body for skill in found.skills} == {"get_pets": "- limit"}
    why = "leads in a circle, out of the description, or to nothing"
    assert [failure.message for failure in found.failures] == [
        f"/round: the $ref '#/paths/~1round' {why}",
        f"/elsewhere: the $ref 'https://example.org/paths.json' {why}",
    ]
    assert {failure.severity for failure in found.failures} == {Severity.ERROR}
    assert [notice.message for notice in found.notices] == [
        f"GET /pets: a parameter is left out: the $ref '#/components/parameters/Self' {why}",
        f"GET /pets: its body is left out: the $ref '#/components/requestBodies/none' {why}",
    ]
    assert {(notice.severity, notice.code) for notice in found.notices} == {
        (Severity.WARNING, "left-out")
    }


def test_parts_that_cannot_be_read_take_no_place_of_a_tool() -> None:
    broken = [{"$ref": "#/components/parameters/none"}] * (MAX_TOOLS + 1)
    described = {"paths": {"/pets": {"get": {"parameters": broken}}}}
    found = OpenApi(described).read()
    assert [skill.name for skill in found.skills] == ["get_pets"]
    assert found.failures == ()
    assert [notice.code for notice in found.notices] == [
        *["left-out"] * MAX_DIAGNOSTICS,
        "more-oddities",
    ]
    assert found.notices[-1].message == "9,901 more parts cannot be read"


def test_paths_that_differ_in_a_parameter_give_names_that_differ() -> None:
    described: dict[str, Any] = {"paths": {"/a/{id}": {"get": {}}, "/a/id": {"get": {}}}}
    found = OpenApi(described).read()
    assert [skill.name for skill in found.skills] == ["get_a_by_id", "get_a_id"]
    assert found.failures == ()


def test_yaml_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "pets.yaml"
    path.write_text("paths:\n  /pets:\n    get:\n      operationId: listPets\n")
    source = OpenApi(path)
    assert (source.name, [skill.name for skill in source.read().skills]) == (
        "pets.yaml",
        ["listPets"],
    )


def test_definitions_that_cannot_be_used_are_named_and_the_others_taken(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": [{"name": "a"}, {"name": "a"}, {"x": 1}, {"name": "b"}]}))
    found = ToolsFile(path).read()
    assert [skill.name for skill in found.skills] == ["a", "b"]
    assert [failure.message for failure in found.failures] == [
        "a: there is one of that name already",
        "tool 3: the definition has no name",
    ]


def test_a_file_that_breaks_goes_on_giving_what_it_did(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text('[{"name": "a"}]')
    source = ToolsFile(path)
    good = source.read()
    path.write_text('[{"name": "a"')
    broken = source.read(good)
    assert broken.skills == good.skills
    [failure] = broken.failures
    assert failure.message.startswith(f"{path}: not JSON: ")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tools.json", "{", "not JSON"),
        ("tools.json", '{"skills": []}', 'neither a list of tools nor an object with "tools"'),
        ("tools.json", "[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_is_none_is_an_error(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        ToolsFile(tmp_path / name).read()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ToolsFile(tmp_path / "gone.json").read()


def test_a_description_without_paths_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='it has no "paths"'):
        OpenApi({"openapi": "3.1.0"}).read()


def test_aliases_that_expand_without_end_cost_little(tmp_path: Path) -> None:
    levels = "\n".join(
        f"l{n}: &l{n} {{anyOf: [{', '.join([f'*l{n - 1}'] * 9)}]}}" for n in range(1, 30)
    )
    path = tmp_path / "bomb.yaml"
    path.write_text(
        "l0: &l0 {type: string}\n"
        f"{levels}\n"
        "paths: {/a: {get: {parameters: [{name: x, schema: *l29}]}}}\n"
    )
    [failure] = OpenApi(path).read().failures
    assert failure.message == ("get_a: the schema of its arguments holds more than 100,000 values")
