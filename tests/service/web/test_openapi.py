"""The OpenAPI document can be read by people and by code generators, and `mlcd schema api` prints it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from stage import API, staged

from mlcd.cli import cli
from mlcd.service.web.app import api_document

SIGN_IN = {("post", f"{API}{path}") for path in ("/session", "/sign-in", "/sign-in/callback")}
OPEN = {("get", f"{API}/health"), *SIGN_IN}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api_document()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_a_service_answers_with_the_document_that_the_command_prints(tmp_path, document):
    with staged(tmp_path / "home") as stage:
        assert stage.ask("GET", f"{API}/openapi.json").json() == document
    done = CliRunner().invoke(cli, ["schema", "api"])
    assert json.loads(done.output) == document


def test_every_schema_and_every_property_has_a_description(document):
    schemas = document["components"]["schemas"]
    assert len(schemas) > 100
    missing = [name for name, schema in schemas.items() if not schema.get("description")]
    for name, schema in schemas.items():
        missing += [f"{name}.{key}" for key, each in schema.get("properties", {}).items() if not each["description"]]
    assert missing == []


def test_every_route_and_every_parameter_has_a_description(document):
    for method, path, operation in operations(document):
        assert operation.get("description"), f"{method} {path}"
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), f"{method} {path}: {parameter['name']}"


def test_no_two_schemas_share_a_title(document):
    """A generator names its classes by them. A name with the module in it: two classes are called the same."""
    schemas = document["components"]["schemas"]
    titles = Counter(schema.get("title", name) for name, schema in schemas.items())
    assert [title for title, times in titles.items() if times > 1] == []
    assert [name for name in schemas if "__" in name or "-" in name] == []
    names = Counter(operation["operationId"] for _, _, operation in operations(document))
    assert max(names.values()) == 1


def test_who_may_ask_is_declared_and_the_others_are_open(document):
    schemes = document["components"]["securitySchemes"]
    assert {(each["type"], each.get("scheme"), each.get("in")) for each in schemes.values()} == {
        ("http", "bearer", None),
        ("apiKey", None, "cookie"),
    }
    assert {name for each in document["security"] for name in each} == set(schemes)
    assert {(method, path) for method, path, each in operations(document) if each.get("security") == []} == OPEN


def test_the_schema_of_a_run_and_of_a_job_file_are_printed():
    printed = {of: json.loads(CliRunner().invoke(cli, ["schema", of]).output) for of in ("run", "job")}
    assert printed["run"] == json.loads(CliRunner().invoke(cli, ["schema"]).output)
    assert printed["run"]["title"] == "RunDocument"
    assert {"work", "budget", "search"} <= set(printed["job"]["$defs"]["Block"]["properties"])
    assert CliRunner().invoke(cli, ["schema", "offer"]).exit_code == 2
