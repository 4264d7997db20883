"""Any service with an OpenAPI document as a tool source: each selected operation is a tool."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.arguments import arguments_of
from harness.orchestrator.http_service import (
    CALL_SECONDS,
    CallFailed,
    HttpService,
    is_same_origin,
    open_service,
    read_document,
)
from harness.orchestrator.openapi_document import OpenApiDocument, Operation
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure

SHOWN_ERROR_CHARS = 2000


@asynccontextmanager
async def open_openapi_source(
    location: str,
    *,
    select: Sequence[str] | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    prefix: str = "",
    call_seconds: float = CALL_SECONDS,
) -> AsyncGenerator[OpenApiSource]:
    """The operations of a document (URL or file) as a `ToolProvider`; `select` names ids or tags, by default all.

    Calls go to `base_url`, else to the document's first server, with `headers`: then that server has to be where the
    document is.

    Raises:
        ConnectorUnavailable: the document cannot be had.
        ConfigError: it is no OpenAPI 3 document.
        InvalidArgument: no such operation, or nowhere to send calls to.
    """
    async with open_service(headers, call_seconds=call_seconds) as service:
        document = OpenApiDocument(await read_document(service, location), location)
        operations = document.operations(select, prefix=prefix)
        base = base_url or base_of(document)
        is_remote = location.startswith(("http://", "https://"))  # a file is the caller's own
        if headers and base_url is None and is_remote and not is_same_origin(base, location):
            raise InvalidArgument(
                f"'{location}' sends calls to '{base}', on another host, and your headers with them: "
                "give that base URL if this is meant"
            )
        yield OpenApiSource(service, location, base, operations)


class OpenApiSource:
    """Comes from `open_openapi_source`."""

    def __init__(self, service: HttpService, location: str, base_url: str, operations: Sequence[Operation]) -> None:
        self.label = f"OpenAPI service '{location}'"
        self._service = service
        self._base_url = base_url.rstrip("/")
        self._operations = {operation.descriptor.name: operation for operation in operations}

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        return [operation.descriptor for operation in self._operations.values()]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """The answer's body; a status outside 200 to 299 is an error result with the body, which often explains it."""
        request = self._operations[call.tool_name].request_of(arguments_of(call))
        url = self._base_url + request.path
        try:
            answer = await self._service.call(
                request.method, url, query=request.query, headers=request.headers, body=request.body
            )
        except CallFailed as error:
            return failure(f"{self.label}: {error}")
        if not answer.is_ok:
            explained = f": {answer.text[:SHOWN_ERROR_CHARS]}" if answer.body else ""
            return failure(f"The service answered with status {answer.status}{explained}")
        is_object = answer.is_json and answer.text.lstrip().startswith("{")
        return ToolOutcome(answer.blocks(url), structured_content_json=answer.text if is_object else None)


def base_of(document: OpenApiDocument) -> str:
    """Where the document says its service is.

    Raises:
        InvalidArgument: it does not say.
    """
    url = urljoin(document.location, document.server or "/")
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidArgument(f"'{document.location}' does not say where its service is; give the base URL")
    return url
