"""The JSON Schema of the contract, for clients in any language.

It is checked in beside this file (`schema.json`), so that a change of the wire is seen as one. To write it anew:
`python -m harness.contract.schema > harness/contract/schema.json`.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

import harness.contract as contract
from harness.contract.content import ContentBlock
from harness.contract.output import OutputItem
from harness.contract.value import JsonValue, Value

_REFERENCE = "#/$defs/{model}"


class PlainSchema(GenerateJsonSchema):
    """Without titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def contract_schema() -> dict[str, JsonValue]:
    """One definition per public value, and one for each of the two unions, under its Python name."""
    models = [
        value
        for name in contract.__all__
        if isinstance(value := getattr(contract, name), type) and issubclass(value, Value) and value is not Value
    ]
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = [
        *((model.__name__, "validation", TypeAdapter(model)) for model in models),
        ("ContentBlock", "validation", TypeAdapter(ContentBlock)),
        ("OutputItem", "validation", TypeAdapter(OutputItem)),
    ]
    schemas, document = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE, schema_generator=PlainSchema)
    definitions: dict[str, JsonValue] = document["$defs"]
    for union in ("ContentBlock", "OutputItem"):
        definitions[union] = schemas[union, "validation"]
    for definition in definitions.values():
        # a discriminator has a default in Python, and is always written on the wire
        always = [name for name, field in definition.get("properties", {}).items() if "const" in field]
        if always:
            definition["required"] = [*always, *definition.get("required", [])]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The contract of level2-harness",
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def schema_text() -> str:
    """What `schema.json` holds."""
    return json.dumps(contract_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
