"""The keys of a job file as JSON Schema, for editors. MLCD itself checks more than the schema does.

The description of a key is the docstring below it in its block.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mlcd.core.place import place_forms
from mlcd.core.planner import planner_named, planner_names
from mlcd.planners.jobfile.blocks import FORMER_NAMES, block_for
from mlcd.planners.jobfile.task import RESOURCES, TASK_KEYS

WRITTEN: dict[str, JsonSchemaValue] = {
    "float": {"type": ["number", "string"]},
    "int": {"type": ["number", "string"]},
    "bool": {"type": "boolean"},
    "dataclass": {"type": "string"},
    "dict": {"type": "object"},
}
"""JSON types that users may write for a value of this type that is parsed from text, such as '$100'."""


class _AsWritten(GenerateJsonSchema):
    """For a value that is parsed from text, generates the schema of the text, not of the parsed value."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Enums and blocks keep their schema; other parsed values allow any text, which `mlcd check` checks."""
        within = schema["schema"]
        inner = self.generate_inner(within)
        if inner.keys() & {"$ref", "enum", "properties", "anyOf"} and within["type"] != "nullable":
            return inner
        if "$ref" in (names := inner.get("items", {})):  # one name, a list, or a mapping to the script's own names
            by_name = {"type": "object", "propertyNames": names}
            return {"anyOf": [names, {"type": "array", "items": names}, by_name]}
        if within["type"] != "nullable":
            return dict(WRITTEN.get(within["type"], {}))
        words = WRITTEN.get(within["schema"]["type"], {})
        return {"anyOf": [words, {"type": "null"}]} if words else {}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Add the descriptions of its keys."""
        made = super().model_schema(schema)
        block = next((each for each in made.get("anyOf", ()) if "properties" in each), made)
        for name, words in _meanings(schema["cls"]).items():
            block["properties"][name].setdefault("description", words)
        return made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Only simple defaults, which can be written as they are."""
        plain = isinstance(schema.get("default"), str | bool | int | float)
        return super().default_schema(schema) if plain else self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: 'Max Probe' only repeats the key."""
        return False


def _meanings(block: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of a class and of its base classes, by field."""
    meanings: dict[str, str] = {}
    for each in reversed(block.__mro__):
        if each.__module__.startswith("mlcd.") and each.__name__ in (source := _source(each.__module__)):
            meanings |= source[each.__name__]
    return {name: words for name, words in meanings.items() if name in block.model_fields}


@cache
def _source(module: str) -> dict[str, dict[str, str]]:
    """The docstrings below fields in a module, by class and field."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: dict(_below_fields(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _below_fields(block: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, words in pairwise(block.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match words:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield field.target.id, text


def job_schema() -> dict[str, Any]:
    """The schema of a SkyPilot task with the block `mlcd`, which has the blocks of all installed planners."""
    model = block_for((*planner_names(), *FORMER_NAMES))
    block = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=_AsWritten)
    known = {**block.pop("$defs"), "Block": block}
    for name in FORMER_NAMES:
        block["properties"][name]["deprecated"] = True
    block["properties"]["on"]["examples"] = list(place_forms())
    methods = dict.fromkeys(method for name in planner_names() for method in planner_named(name).methods)
    known["SearchBlock"]["properties"]["method"]["examples"] = list(methods)
    task: dict[str, Any] = {key: {"description": words} for key, words in TASK_KEYS.items()}
    task["name"]["type"] = ["string", "number", "boolean", "null"]
    task["resources"]["properties"] = RESOURCES
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JobFile",
        "description": "A SkyPilot task with one more block, mlcd.",
        "type": "object",
        "properties": {**task, "mlcd": {"$ref": "#/$defs/Block", "description": "What MLCD needs to know."}},
        "additionalProperties": False,
        "required": ["mlcd"],
        "$defs": known,
    }
