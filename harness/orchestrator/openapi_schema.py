"""Schemas of an OpenAPI document as plain JSON Schema 2020-12 that stands alone (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

SCHEMAS = "#/components/schemas/"
_OURS = "#/$defs/"


def standing_alone(schema: Json, definitions: Mapping[str, Any]) -> Json:
    """The schema with those of the document's definitions that it refers to."""
    needed: Json = {}
    todo = list(_references(schema))
    while todo:
        name = todo.pop()
        if name not in needed and name in definitions:
            needed[name] = _plain(definitions[name])
            todo += _references(definitions[name])
    plain = cast(Json, _plain(schema))
    return {**plain, "$defs": dict(sorted(needed.items()))} if needed else plain


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        members = cast(Json, value)
        reference = members.get("$ref")
        if isinstance(reference, str) and reference.startswith(SCHEMAS):
            yield reference.removeprefix(SCHEMAS)
        for member in members.values():
            yield from _references(member)
    elif isinstance(value, list):
        for member in cast(list[Any], value):
            yield from _references(member)


def _plain(value: Any) -> Any:
    """OpenAPI's dialect as JSON Schema 2020-12: references into `$defs`, 3.0's `nullable` as a type."""
    if isinstance(value, list):
        return [_plain(member) for member in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    plain = {name: _plain(member) for name, member in cast(Json, value).items()}
    reference = plain.get("$ref")
    if isinstance(reference, str):
        plain["$ref"] = reference.replace(SCHEMAS, _OURS, 1)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(plain.get(exclusive), bool) and plain.pop(exclusive):
            plain[exclusive] = plain.pop(bound, None)
    if plain.get("nullable") is True:
        del plain["nullable"]
        if isinstance(plain.get("type"), str):
            plain["type"] = [plain["type"], "null"]
            if isinstance(plain.get("enum"), list):
                plain["enum"] = [*cast(list[Any], plain["enum"]), None]
        else:
            return {"anyOf": [plain, {"type": "null"}]}
    return plain
