"""One tool as its clients see it, and how values become results."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import mcp_types as types

from harness.contract.schema import PlainSchema
from harness.contract.value import JsonValue, Value
from harness.errors import HarnessError, Internal
from harness.surfaces.mcp_server.arguments import Arguments
from harness.trace.redaction import Redactor, secrets_of_environment
from harness.wire.json_text import write_json

ERROR_META = "level2-harness/error"
"""Where a failed call has its error as data: `code`, `message`, `retryable` and `detail`."""


logger = logging.getLogger(__name__)


def described(
    name: str,
    description: str,
    takes: type[Arguments],
    gives: type[Value] | None = None,
    *,
    annotations: types.ToolAnnotations | None = None,
) -> types.Tool:
    """The tool with schemas made from the contract's own values."""
    return types.Tool(
        name=name,
        description=description,
        input_schema=takes.model_json_schema(schema_generator=PlainSchema),
        output_schema=None
        if gives is None
        else gives.model_json_schema(mode="serialization", schema_generator=PlainSchema),
        annotations=annotations,
    )


def plain(value: Value) -> tuple[str, dict[str, JsonValue]]:
    """The value as JSON text and as the same plain values, without what no JSON reader could take."""
    text = write_json(value).decode("ascii")
    return text, json.loads(text)


def value_result(value: Value) -> types.CallToolResult:
    text, structured = plain(value)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)


def done_result() -> types.CallToolResult:
    """Of an operation that gives nothing."""
    return types.CallToolResult(content=[types.TextContent(text="done")])


def error_result(error: HarnessError) -> types.CallToolResult:
    """`[code] message`, which the model may read, and the same as data."""
    error = Redactor(secrets_of_environment(os.environ)).error(error)
    told: dict[str, Any] = {"code": error.code, "message": error.message, "retryable": error.retryable}
    if error.detail_json is not None:
        told["detail"] = json.loads(error.detail_json)
    # no structured content: clients hold it against the tool's schema, also when the call failed
    return types.CallToolResult(
        content=[types.TextContent(text=f"[{error.code}] {error.message}")], is_error=True, _meta={ERROR_META: told}
    )


def fault_result(name: str) -> types.CallToolResult:
    """Of a tool that failed by a fault of ours; to be called where that is handled."""
    logger.exception("the tool '%s' failed", name)
    return error_result(Internal("an internal error; the server's log has the details"))
