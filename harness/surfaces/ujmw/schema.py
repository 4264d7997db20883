"""The OpenAPI description of the UJMW operations: the contract's schemas in UJMW's spelling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from harness.contract.value import JsonValue
from harness.surfaces.operations import CONTRACT_OPERATIONS, ContractOperation
from harness.surfaces.ujmw.names import camel, pascal
from harness.surfaces.ujmw.place import PREFIX, Place
from harness.surfaces.ujmw.shape import ERROR_MESSAGE, OPTION_DETAILS
from harness.wire.ujmw import FAULT, RETURN, SIDE_CHANNEL

_COMPONENTS = "#/components/schemas/"
_OURS = "Ujmw"
_SIDE_CHANNEL = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Texts beside the arguments or the result; never part of either.",
}
_TEXTS = {"type": "array", "items": {"type": "string"}}


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def document_at(place: Place, server_url: str) -> dict[str, JsonValue]:
    """The OpenAPI document of the service at this place alone."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "IConversationalLLM", "version": "1.0.0"},
        "servers": [{"url": server_url.rstrip("/")}],
        "security": [{"bearer": []}],
        "paths": paths_at(place.base),
        "components": {
            "schemas": dict(components()),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def all_paths() -> dict[str, JsonValue]:
    """The operations where every server has them."""
    preset = Place("{connector}").base
    parameter = {"name": "connector", "in": "path", "required": True, "schema": {"type": "string"}}
    with_parameter = {
        path: {"post": {**item["post"], "parameters": [parameter], "operationId": item["post"]["operationId"] + "At"}}
        for path, item in paths_at(preset).items()
    }
    return {**paths_at(Place().base), **with_parameter}


def paths_at(base: str) -> dict[str, JsonValue]:
    return {f"{base}/{pascal(one.name)}": {"post": _described(one)} for one in CONTRACT_OPERATIONS}


def _described(operation: ContractOperation) -> JsonValue:
    name = pascal(operation.name)
    refusal = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "summary": operation.summary,
        "operationId": name,
        "tags": [PREFIX.strip("/")],
        "requestBody": {"required": True, "content": _json(f"{_OURS}{name}Request")},
        "responses": {
            "200": {"description": "The result, or a fault", "content": _json(f"{_OURS}{name}Response")},
            "401": {"description": "No token, or a wrong one", "content": refusal},
            "403": {"description": "Not with this token", "content": refusal},
        },
    }


def _json(component: str) -> JsonValue:
    return {"application/json": {"schema": {"$ref": _COMPONENTS + component}}}


@cache
def components() -> dict[str, JsonValue]:
    """Every request, every response and what they are made of."""
    asked: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = []
    for one in CONTRACT_OPERATIONS:
        asked.append((one.name, "validation", TypeAdapter(one.takes)))
        if one.gives is not None:
            asked.append((one.name, "serialization", TypeAdapter(one.gives)))
    references, definitions = TypeAdapter.json_schemas(
        asked, ref_template=_COMPONENTS + _OURS + "{model}", schema_generator=_Untitled
    )
    found: dict[str, JsonValue] = {_OURS + name: _spelled(schema) for name, schema in definitions["$defs"].items()}
    for name, schema in found.items():
        if name.startswith(f"{_OURS}HostRequest"):
            schema["properties"][OPTION_DETAILS] = schema["properties"]["options"]
            schema["properties"]["options"] = {**_TEXTS, "description": "The ids of the options."}
        if name == f"{_OURS}TurnState":
            schema["properties"][ERROR_MESSAGE] = {"type": "string", "description": "The message of the error, if any."}
    for one in CONTRACT_OPERATIONS:
        request = found[f"{_OURS}{pascal(one.name)}Request"]
        request.setdefault("properties", {})[SIDE_CHANNEL] = _SIDE_CHANNEL
        found[f"{_OURS}{pascal(one.name)}Response"] = _response(one, references)
    return dict(sorted(found.items()))


def _response(operation: ContractOperation, references: Any) -> JsonValue:
    given: dict[str, JsonValue] = {}
    if operation.gives is not None:
        given[RETURN] = _spelled(references[operation.name, "serialization"])
    fault = {"type": "string", "description": "'[code] message' where the call failed; there is no result then."}
    return {"type": "object", "properties": {**given, FAULT: fault, SIDE_CHANNEL: _SIDE_CHANNEL}}


def _spelled(schema: JsonValue) -> JsonValue:
    """A schema of the contract with members in camelCase and words in PascalCase."""
    if isinstance(schema, list):
        return [_spelled(one) for one in cast(list[JsonValue], schema)]
    if not isinstance(schema, dict):
        return schema
    return dict(_keywords(cast(dict[str, JsonValue], schema)))


def _keywords(schema: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    refers = "$ref" in schema or any("$ref" in one for one in schema.get("anyOf", ()))
    for keyword, value in schema.items():
        match keyword:
            case "properties":
                yield keyword, {camel(name): _spelled(member) for name, member in value.items()}
            case "required":
                yield keyword, [camel(name) for name in value]
            case "enum":
                yield keyword, [pascal(word) for word in value]
            case "const":
                yield keyword, pascal(value)
            case "default" if isinstance(value, str) and refers:
                yield keyword, pascal(value)
            case "default" if isinstance(value, dict):
                pass  # the defaults of its members say the same
            case "default" if "const" in schema:
                yield keyword, pascal(value)
            case _:
                yield keyword, _spelled(value)
    if schema.get("type") == "integer":
        yield "format", "int64"
