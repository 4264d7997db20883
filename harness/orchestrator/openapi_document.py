"""The operations of an OpenAPI document (3.0 and 3.1) as tools, and a call as the parts of a request (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from harness.contract.tools import ToolDescriptor
from harness.errors import ConfigError, InvalidArgument
from harness.orchestrator.function_results import json_text
from harness.orchestrator.openapi_schema import SCHEMAS, standing_alone
from harness.orchestrator.tool_names import tool_name

Json: TypeAlias = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
BODY = "body"
_NEVER_SENT = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that OpenAPI itself says are to be ignored."""


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    path: str
    tags: tuple[str, ...]
    descriptor: ToolDescriptor
    places: Mapping[str, str]
    """Parameter name -> path, query, header or cookie."""
    body_media_type: str | None
    body_schema: Json | None
    """Stands alone, and is no mere reference; null where the operation takes no body."""

    def request_of(self, arguments: Mapping[str, Any]) -> RequestParts:
        """Where each argument goes; the arguments fit the schema."""
        path, query, headers = self.path, list[tuple[str, str]](), dict[str, str]()
        for name, value in arguments.items():
            match self.places.get(name):
                case "path":
                    path = path.replace("{" + name + "}", quote(_text(value), safe=""))
                case "query":
                    values = cast(list[Any], value) if isinstance(value, list) else [value]
                    query += [(name, _text(one)) for one in values]
                case "header":
                    headers[name] = _text(value)
                case _:
                    pass
        body = None
        if self.body_media_type is not None and BODY in arguments:
            headers["Content-Type"] = self.body_media_type
            body = json_text(arguments[BODY]).encode()
        return RequestParts(self.method.upper(), path, query, headers, body)


@dataclass(frozen=True, slots=True)
class RequestParts:
    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes | None


class OpenApiDocument:
    """Raises:
    ConfigError: it is no OpenAPI 3 document.
    """

    def __init__(self, document: Any, location: str) -> None:
        members = _object(document)
        if not str(members.get("openapi", "")).startswith("3."):
            raise ConfigError(f"'{location}' is no OpenAPI 3 document: it has no 'openapi: 3...'", file=location)
        self._root = members
        self.location = location

    @property
    def server(self) -> str:
        """The first server's URL, perhaps relative to the document; empty when there is none."""
        servers = self._root.get("servers")
        first = _object(cast(list[Any], servers)[0]) if isinstance(servers, list) and servers else {}
        variables = _object(first.get("variables"))
        return re.sub(
            r"\{(\w+)\}",
            lambda found: str(_object(variables.get(found[1])).get("default", "")),
            str(first.get("url", "")),
        )

    def operations(self, selected: Sequence[str] | None = None, *, prefix: str = "") -> list[Operation]:
        """Those with these ids or tags, or all.

        Raises:
            InvalidArgument: nothing has such an id or tag, two would have one name, or one cannot be described.
        """
        found = list(self._operations(prefix))
        if selected is not None:
            known = {name for operation in found for name in (operation.id, *operation.tags)}
            for name in selected:
                if name not in known:
                    some = ", ".join(f"'{operation.id}'" for operation in found[:20]) or "none"
                    raise InvalidArgument(f"'{self.location}' has no operation or tag '{name}'; operations: {some}")
            wanted = set(selected)
            found = [operation for operation in found if wanted & {operation.id, *operation.tags}]
        _no_twins(found, self.location)
        return found

    def _operations(self, prefix: str) -> Iterator[Operation]:
        for path, item in _object(self._root.get("paths")).items():
            shared = _object(self._resolved(item))
            for method in METHODS:
                if method in shared:
                    yield self._operation(path, method, _object(shared[method]), shared, prefix)

    def _operation(self, path: str, method: str, operation: Json, shared: Json, prefix: str) -> Operation:
        id_ = str(operation.get("operationId") or f"{method}_{path.strip('/')}")
        properties: Json = {}
        required: list[str] = []
        places: dict[str, str] = {}
        for parameter in self._parameters(shared, operation):
            name, place = str(parameter.get("name")), str(parameter.get("in"))
            if place not in ("path", "query", "header") or (place == "header" and name.lower() in _NEVER_SENT):
                continue
            if places.get(name, place) != place or name == BODY:
                raise InvalidArgument(f"'{self.location}', operation '{id_}': two parameters are called '{name}'")
            schema = dict(_object(self._resolved(parameter.get("schema"))))
            if parameter.get("description"):
                schema["description"] = parameter["description"]
            properties[name], places[name] = schema, place
            if parameter.get("required") or place == "path":
                required.append(name)
        body = _object(self._resolved(operation.get("requestBody")))
        media_type, body_schema = self._body(body)
        if media_type is not None:
            properties[BODY] = body_schema
            if body.get("required"):
                required.append(BODY)
        input_schema: Json = {"type": "object", "properties": properties, "required": sorted(set(required))}
        text = [operation.get("summary"), operation.get("description")]
        reads = method in ("get", "head", "options")
        return Operation(
            id=id_,
            method=method,
            path=path,
            tags=tuple(str(tag) for tag in cast(list[Any], operation.get("tags") or [])),
            descriptor=ToolDescriptor(
                name=tool_name(id_, prefix),
                description="\n\n".join(str(part) for part in text if part) or f"{method.upper()} {path}",
                input_schema_json=json_text(self._standing_alone(input_schema)),
                read_only=reads,
                destructive=False if reads else method == "delete" or None,
                idempotent=reads or method in ("put", "delete") or None,
                open_world=True,
            ),
            places=places,
            body_media_type=media_type,
            body_schema=None if media_type is None else self._standing_alone(self._opened(body_schema)),
        )

    @property
    def _schemas(self) -> Json:
        return _object(_object(self._root.get("components")).get("schemas"))

    def _standing_alone(self, schema: Json) -> Json:
        return standing_alone(schema, self._schemas)

    def _opened(self, schema: Json) -> Json:
        """What a schema that is only a reference refers to."""
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        return _object(self._schemas.get(reference.removeprefix(SCHEMAS))) or schema

    def _parameters(self, shared: Json, operation: Json) -> Iterable[Json]:
        """The operation's own take the place of the path's."""
        listed: dict[tuple[str, str], Json] = {}
        for source in (shared, operation):
            for raw in cast(list[Any], source.get("parameters") or []):
                parameter = _object(self._resolved(raw))
                listed[str(parameter.get("name")), str(parameter.get("in"))] = parameter
        return listed.values()

    def _body(self, body: Json) -> tuple[str | None, Json]:
        for media_type, described in _object(body.get("content")).items():
            if media_type == "application/json" or media_type.partition(";")[0].endswith("+json"):
                return media_type, _object(_object(described).get("schema"))
        return None, {}

    def _resolved(self, value: Any) -> Any:
        """The value itself, or what it refers to inside the document; schemas keep their references."""
        reference = _object(value).get("$ref")
        if not isinstance(reference, str) or reference.startswith(SCHEMAS):
            return value
        found: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            found = _object(found).get(part.replace("~1", "/").replace("~0", "~"))
        if not reference.startswith("#/") or found is None:
            raise InvalidArgument(f"'{self.location}' refers to '{reference}', which is not in it")
        return found


def _no_twins(operations: Iterable[Operation], location: str) -> None:
    seen: dict[str, str] = {}
    for operation in operations:
        name = operation.descriptor.name
        if name in seen:
            raise InvalidArgument(
                f"'{location}': operations '{seen[name]}' and '{operation.id}' would both be called '{name}'"
            )
        seen[name] = operation.id


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
