"""The wire as a JSON Schema: checked in, in step with the models, and free of what some clients cannot carry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from contract_tests.core.contract_samples import SAMPLES
from contract_tests.requirements import requirement
from harness.contract import Value
from harness.contract.schema import contract_schema, schema_text

SCHEMA = contract_schema()
DEFINITIONS: dict[str, dict[str, Any]] = SCHEMA["$defs"]


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$defs": DEFINITIONS, "$ref": f"#/$defs/{name}"})


def fields(name: str) -> dict[str, dict[str, Any]]:
    return DEFINITIONS[name].get("properties", {})


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and everything it is made of, without following references."""
    yield schema
    for key in ("anyOf", "oneOf", "allOf"):
        for member in schema.get(key, []):
            yield from parts(member)
    if isinstance(schema.get("items"), dict):
        yield from parts(schema["items"])


def shape(schema: dict[str, Any]) -> Any:
    """What a typed client sees of a field: its type without null, default, names and limits."""
    if "$ref" in schema:
        target = DEFINITIONS[schema["$ref"].rpartition("/")[2]]
        return "string" if target.get("type") == "string" else schema["$ref"]
    if "anyOf" in schema or "oneOf" in schema:
        shapes = [shape(member) for member in schema.get("anyOf") or schema["oneOf"]]
        different = [one for number, one in enumerate(shapes) if one != "null" and one not in shapes[:number]]
        return different[0] if len(different) == 1 else different
    if schema.get("type") == "array":
        return ["array", shape(schema["items"])]
    return schema["type"]


@requirement("contract:schema:checked-in")
def test_the_checked_in_schema_is_that_of_the_models() -> None:
    checked_in = files("harness.contract").joinpath("schema.json").read_text(encoding="utf-8")
    assert checked_in == schema_text(), "run: python -m harness.contract.schema > harness/contract/schema.json"
    jsonschema.Draft202012Validator.check_schema(json.loads(checked_in))


@requirement("contract:schema:no-dictionaries")
@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_no_value_has_a_dictionary_or_a_field_of_any_type(name: str) -> None:
    for field, schema in fields(name).items():
        for part in parts(schema):
            assert part.get("type") != "object", f"'{name}.{field}' is a dictionary: use pairs or a '..._json' string"
            assert {"type", "$ref", "anyOf", "oneOf"} & part.keys(), f"'{name}.{field}' has no type"


@requirement("contract:schema:unions")
@pytest.mark.parametrize("union", ["ContentBlock", "OutputItem"])
def test_variants_of_a_union_never_reuse_a_field_name_with_another_type(union: str) -> None:
    variants = [member["$ref"].rpartition("/")[2] for member in DEFINITIONS[union]["oneOf"]]
    assert len(variants) > 5
    seen: dict[str, tuple[str, Any]] = {}
    for variant in variants:
        for field, schema in fields(variant).items():
            first, first_shape = seen.setdefault(field, (variant, shape(schema)))
            assert shape(schema) == first_shape, f"'{field}' is one thing in '{first}' and another in '{variant}'"


def test_every_enum_of_the_wire_is_a_list_of_words() -> None:
    for name, definition in DEFINITIONS.items():
        if "enum" in definition:
            assert all(word == word.lower() and " " not in word for word in definition["enum"]), name


@requirement("contract:schema:describes-the-wire")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_what_is_written_fits_the_schema(sample: Value) -> None:
    validator(type(sample).__name__).validate(json.loads(sample.to_json()))


@requirement("contract:schema:describes-the-wire")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("OutputItem", {"kind": "text_delta", "sequence_no": "1", "at": 0, "text": "a"}),
        ("OutputItem", {"sequence_no": 1, "at": 0, "text": "a"}),
        ("OutputItem", {"kind": "text_delta", "sequence_no": 1, "at": 0}),
        ("ContentBlock", {"text": "a"}),
        ("HostResponse", {}),
    ],
)
def test_what_is_broken_does_not_fit_the_schema(name: str, wrong: dict[str, Any]) -> None:
    assert not validator(name).is_valid(wrong)


@requirement("contract:reading:generous")
@pytest.mark.parametrize(
    ("name", "newer"),
    [
        ("OutputItem", {"kind": "hologram", "sequence_no": 1, "at": 0, "beams": [1, 2]}),
        ("OutputItem", {"kind": "notice", "sequence_no": 1, "at": 0, "code": "c", "text": "t", "color": "red"}),
        ("ContentBlock", {"type": "smell", "notes": {"top": "lemon"}}),
        ("RequestOption", {"id": "x", "kind": "allow_today"}),
    ],
)
def test_the_schema_admits_what_a_newer_side_may_write(name: str, newer: dict[str, Any]) -> None:
    validator(name).validate(newer)
