"""A UJMW service as a tool source: each operation is a tool (UJMW 1.1.0).

Operations come from a declared list, or from the OpenAPI document that the service's information names.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from harness.contract.content import TextBlock
from harness.contract.tools import EMPTY_SCHEMA_JSON, ToolCall, ToolDescriptor
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.orchestrator.arguments import arguments_of
from harness.orchestrator.function_results import json_text
from harness.orchestrator.http_service import (
    CALL_SECONDS,
    CallFailed,
    HttpService,
    is_same_origin,
    open_service,
    read_document,
)
from harness.orchestrator.openapi_document import OpenApiDocument
from harness.orchestrator.openapi_source import base_of
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_names import tool_name
from harness.orchestrator.tool_provider import ToolOutcome, failure, without_surrogates
from harness.wire.ujmw import FAULT, MEDIA_TYPE, RETURN, SIDE_CHANNEL


@asynccontextmanager
async def open_ujmw_source(
    url: str,
    *,
    operations: Sequence[ToolDescriptor] | None = None,
    document: str | None = None,
    select: Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
    prefix: str = "",
    call_seconds: float = CALL_SECONDS,
) -> AsyncGenerator[UjmwSource]:
    """The operations below `url` as a `ToolProvider`: declared ones (by their names there), or those of the `document`.

    Without either, the document is the one that `GET url` names.

    Raises:
        ConnectorUnavailable: the service or its document cannot be reached.
        InvalidArgument: no such operation, or none known.
    """
    async with open_service(headers, call_seconds=call_seconds) as service:
        if operations is None:
            location = document or await _document_of(service, url)
            found = _operations(OpenApiDocument(await read_document(service, location), location), url)
        else:
            found = {operation.name: operation for operation in operations}
        for name in select or ():
            if name not in found:
                raise InvalidArgument(f"UJMW service '{url}' has no operation '{name}'; it has: {', '.join(found)}")
        wanted = {name: one for name, one in found.items() if select is None or name in select}
        yield UjmwSource(service, url, wanted, prefix)


class UjmwSource:
    """Comes from `open_ujmw_source`."""

    def __init__(
        self, service: HttpService, url: str, operations: Mapping[str, ToolDescriptor], prefix: str = ""
    ) -> None:
        self.label = f"UJMW service '{url}'"
        self._service = service
        self._url = url.rstrip("/")
        self._operations = {tool_name(operation, prefix): operation for operation in operations}
        self._tools = [one.model_copy(update={"name": tool_name(name, prefix)}) for name, one in operations.items()]

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        return self._tools

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """What the operation returns. A fault is the operation's own error; any other status than 200 is not."""
        url = f"{self._url}/{self._operations[call.tool_name]}"
        body = json_text(arguments_of(call)).encode()
        try:
            answer = await self._service.call("POST", url, headers={"Content-Type": MEDIA_TYPE}, body=body)
            if not answer.is_ok:
                said = f": {answer.text[:500]}" if answer.body else ""
                raise CallFailed(f"the service did not take the call (status {answer.status}){said}")
            wrapped = answer.json()
        except CallFailed as error:
            return failure(f"{self.label}: {error}")
        if not isinstance(wrapped, dict):
            return failure(f"{self.label}: the answer is no object")
        return _outcome(cast(dict[str, Any], wrapped))


def _outcome(wrapped: Mapping[str, Any]) -> ToolOutcome:
    """Member names are compared without case, as services write them either way."""
    members = {name.lower(): value for name, value in wrapped.items()}
    fault = members.get(FAULT)
    if fault:
        return failure(fault if isinstance(fault, str) else json_text(fault))
    given = {name: value for name, value in wrapped.items() if name.lower() not in (FAULT, SIDE_CHANNEL)}
    if not given:
        return ToolOutcome([TextBlock(text="done")])  # a void operation
    value = members[RETURN] if [name.lower() for name in given] == [RETURN] else given
    text = without_surrogates(value) if isinstance(value, str) else json_text(value)
    return ToolOutcome([TextBlock(text=text)], structured_content_json=text if isinstance(value, dict) else None)


async def _document_of(service: HttpService, url: str) -> str:
    information = await read_document(service, url)
    urls = cast(dict[str, Any], information).get("Swagger.DefinitionUrls") if isinstance(information, dict) else None
    if not isinstance(urls, list) or not urls:
        raise ConnectorUnavailable(
            f"UJMW service '{url}' names no OpenAPI document; give its address, or declare the operations",
            reason="tools_unavailable",
        )
    location = urljoin(url, str(cast(list[Any], urls)[0]))
    if not is_same_origin(location, url):
        text = f"UJMW service '{url}' names a document on another host, '{location}'; give its address if this is meant"
        raise ConnectorUnavailable(text, reason="tools_unavailable")
    return location


def _operations(document: OpenApiDocument, url: str) -> dict[str, ToolDescriptor]:
    """The POST operations one segment below the service's own path: that segment is the operation's name."""
    base = urlsplit(url).path.rstrip("/").lower()
    above = urlsplit(base_of(document)).path.rstrip("/").lower() if document.server else ""
    found: dict[str, ToolDescriptor] = {}
    for operation in document.operations():
        head, _, name = operation.path.rpartition("/")
        if operation.method != "post" or above + head.lower() != base:
            continue
        schema = {**(operation.body_schema or {})}
        properties = dict(cast(dict[str, Any], schema.get("properties") or {}))
        properties.pop(SIDE_CHANNEL, None)
        if properties:
            schema["properties"] = properties
        update = {"name": tool_name(name), "input_schema_json": json_text(schema) if schema else EMPTY_SCHEMA_JSON}
        found[name] = operation.descriptor.model_copy(update={**update, "read_only": None, "open_world": None})
    if not found:
        raise InvalidArgument(f"'{document.location}' has no operation below '{url}'; declare the operations")
    return found
