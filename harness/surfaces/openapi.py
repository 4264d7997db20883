"""The description of a surface, made from its table and the models of the contract."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from harness.contract.state import TurnState
from harness.contract.value import JsonValue, Value
from harness.surfaces import events
from harness.surfaces.call import JSON_TYPE, Operation
from harness.wire.bodies import Health
from harness.wire.problem import PROBLEM_TYPE, Problem

_REFERENCE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class OpenApiPart:
    """What a further surface adds: its paths, and schemas under names of its own."""

    paths: Mapping[str, JsonValue]
    schemas: Mapping[str, JsonValue]


def openapi_document(
    operations: Sequence[Operation], version: str, parts: Sequence[OpenApiPart] = ()
) -> dict[str, JsonValue]:
    used: set[tuple[type[Value], JsonSchemaMode]] = {(Problem, "serialization"), (Health, "serialization")}
    used |= {(operation.takes, "validation") for operation in operations if operation.takes}
    used |= {(operation.gives, "serialization") for operation in operations if operation.gives}
    ordered = sorted(used, key=lambda pair: (pair[0].__name__, pair[1]))
    references, schemas = models_json_schema(ordered, ref_template=_REFERENCE)

    def taken(kind: type[Value]) -> JsonValue:
        return references[kind, "validation"]

    def given(kind: type[Value]) -> JsonValue:
        return references[kind, "serialization"]

    paths: dict[str, dict[str, JsonValue]] = {"/healthz": {"get": _health(given(Health))}}
    for operation in operations:
        described: dict[str, JsonValue] = {
            "summary": operation.summary,
            "operationId": operation.answer.__name__.removeprefix("_"),
            "responses": {
                **_success(operation, given(operation.gives) if operation.gives else None),
                "default": {
                    "description": "A problem (RFC 9457)",
                    "content": {PROBLEM_TYPE: {"schema": given(Problem)}},
                },
            },
        }
        if operation.takes is not None:
            described["requestBody"] = {"required": True, "content": {JSON_TYPE: {"schema": taken(operation.takes)}}}
        parameters = _parameters(operation)
        if parameters:
            described["parameters"] = parameters
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    components: dict[str, JsonValue] = dict(schemas["$defs"])
    for part in parts:
        paths.update(part.paths)
        components.update(part.schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "level2-harness", "version": version},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _success(operation: Operation, schema: JsonValue) -> dict[str, JsonValue]:
    if operation.gives is None:
        return {"204": {"description": "Done"}}
    content: dict[str, JsonValue] = {JSON_TYPE: {"schema": schema}}
    if operation.gives is TurnState:
        content[events.EVENT_STREAM] = {"schema": {"type": "string", "description": events.__doc__}}
    return {str(operation.status): {"description": operation.summary, "content": content}}


def _health(schema: JsonValue) -> JsonValue:
    success = {"description": "It answers", "content": {JSON_TYPE: {"schema": schema}}}
    return {
        "summary": "Whether the server answers",
        "operationId": "health",
        "security": [],
        "responses": {"200": success},
    }


def _parameters(operation: Operation) -> list[JsonValue]:
    found: list[JsonValue] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    if operation.gives is TurnState:
        found += [
            _query("since_sequence_no", 0, "The number of the last item the client has"),
            _query("max_wait_ms", 0, "How long to wait for something newer; at most 60000"),
            _query("max_items", 1000, "At most so many items per answer or event", minimum=1),
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}},
        ]
    return found


def _query(name: str, default: int, description: str, *, minimum: int = 0) -> JsonValue:
    schema: JsonValue = {"type": "integer", "minimum": minimum, "default": default}
    return {"name": name, "in": "query", "description": description, "schema": schema}
