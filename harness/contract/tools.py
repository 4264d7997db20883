"""Tools as the caller declares them, and calls and results as a history holds them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from harness.contract.content import ContentBlock
from harness.contract.value import OPEN, Label, Value

TOOL_NAME_PATTERN = r"^[a-zA-Z0-9_-]{1,64}$"
EMPTY_SCHEMA_JSON = '{"type":"object","properties":{}}'


class ToolDescriptor(Value):
    """A tool of the caller. Schemas are JSON text and pass through as they are.

    The four hints say what a call does; unset means unknown, and unknown is treated as not read-only.
    """

    name: Annotated[str, Field(pattern=TOOL_NAME_PATTERN)]
    description: str = ""
    input_schema_json: str = EMPTY_SCHEMA_JSON
    output_schema_json: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class ToolCall(Value):
    call_id: str
    tool_name: str
    arguments_json: str = "{}"


class ToolResult(Value):
    call_id: str
    content: list[ContentBlock] = []
    is_error: bool = False


class ToolSourceKind(StrEnum):
    MCP_STDIO = "mcp_stdio"
    MCP_HTTP = "mcp_http"
    PROVIDER_MCP = "provider_mcp"


class ToolSourceDescriptor(Value):
    """A tool source that the peer may use itself (delegation). Secrets in it stay here unless `share_secrets`."""

    name: str
    kind: Annotated[ToolSourceKind | str, OPEN]
    command: str | None = None
    args: list[str] = []
    env: list[Label] = []
    url: str | None = None
    headers: list[Label] = []
    tool_names: list[str] | None = None
    share_secrets: bool = False
