"""The keys of a job file as JSON Schema, for editors. What people write as a word, such as `$100`, may be anything."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mlcd.core.planner import planner_names
from mlcd.planners.jobfile.blocks import FORMER_NAMES, block_for


class _AsWritten(GenerateJsonSchema):
    """A value that is parsed from words has the schema of what may be written, not of what it becomes."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """The names of an enum and the keys of a block are known; of all else, `mlcd plan` knows what it may be."""
        inner = self.generate_inner(schema["schema"])
        return inner if inner.keys() & {"$ref", "enum", "properties"} else {}


def job_schema() -> dict[str, Any]:
    """A SkyPilot task with the block `mlcd`, and in that the blocks of all planners that are installed."""
    model = block_for((*planner_names(), *FORMER_NAMES))
    block = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=_AsWritten)
    known = {**block.pop("$defs"), "Block": block}
    known["Work"] = {"anyOf": [known["Work"], {"type": ["number", "string"], "description": "Samples, such as 90M."}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JobFile",
        "description": "A SkyPilot task with one more block, mlcd.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The job's name."},
            "mlcd": {"$ref": "#/$defs/Block", "description": "What MLCD needs to know."},
        },
        "required": ["mlcd"],
        "$defs": known,
    }
