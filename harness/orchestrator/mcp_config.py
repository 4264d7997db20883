"""MCP servers as people have them already: the `mcpServers` object of a JSON file.

Each entry is `{"command", "args", "env", "cwd"}` or `{"url", "headers"}`, with `${NAME}` and `${NAME:-default}` from
the environment. Keys of other programs are left alone. Ours, all optional: `delegate`, `shareSecrets`, `prefix`,
`tools`, `listChanged`, `timeoutMs`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.contract.value import Label
from harness.errors import ConfigError
from harness.orchestrator.routing import Delegate, Reason

CALL_MS = 600_000
CONNECT_MS = 30_000
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ListChanges(StrEnum):
    """What follows when a server changes its list in the middle of a conversation."""

    FREEZE = "freeze"
    """Nothing: the list stays what it was."""
    FOLLOW = "follow"
    """The next conversation gets the new list."""
    FAIL = "fail"
    """Its tools are not run any more: what the model was told is no longer true."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server, and what the host wants of it."""

    source: ToolSourceDescriptor
    cwd: str | None = None
    delegate: Delegate = Delegate.AUTO
    prefix: str = ""
    """In front of each of its tools' names, where two sources use the same."""
    list_changes: ListChanges = ListChanges.FREEZE
    connect_ms: int = CONNECT_MS
    call_ms: int = CALL_MS

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def tied_by(self) -> Reason | None:
        """What ties it to this host, because no peer could be told."""
        if self.prefix:
            return Reason.RENAMED
        return Reason.DIRECTORY if self.cwd is not None else None


class _Entry(BaseModel):
    """What we read of an entry; the rest belongs to other programs."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    type: str | None = None
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    disabled: bool = False
    delegate: Delegate = Delegate.AUTO
    share_secrets: bool = False
    prefix: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{0,32}$")] = ""
    tools: list[str] | None = None
    list_changed: ListChanges = ListChanges.FREEZE
    timeout_ms: Annotated[int, Field(ge=1)] = CALL_MS


def read_mcp_config(path: Path, environment: Mapping[str, str] | None = None) -> list[McpServer]:
    """The servers of a file, those that are disabled left out.

    Raises:
        ConfigError: names the file, the server and the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the MCP configuration '{path}': {error.strerror}", file=str(path)) from error
    except UnicodeError:
        raise ConfigError(f"the MCP configuration '{path}' is not UTF-8", file=str(path)) from None
    try:
        return mcp_servers(json.loads(text), os.environ if environment is None else environment)
    except ValueError as error:
        raise ConfigError(f"the MCP configuration '{path}' is not JSON: {error}", file=str(path)) from error
    except ConfigError as error:
        raise ConfigError(
            f"MCP configuration '{path}': {error.message}", **{**error.detail, "file": str(path)}
        ) from None


def mcp_servers(document: Any, environment: Mapping[str, str]) -> list[McpServer]:
    """The servers of such a document.

    Raises:
        ConfigError: names the server and the key.
    """
    members = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    servers = members.get("mcpServers")
    if not isinstance(servers, dict):
        raise ConfigError("has no object 'mcpServers'", key="mcpServers", expected="an object")
    entries = cast(dict[str, Any], servers)
    return [
        _server(name, entry, environment)
        for name, entry in entries.items()
        if not (isinstance(entry, dict) and cast(dict[str, Any], entry).get("disabled") is True)
    ]


def _server(name: str, raw: Any, environment: Mapping[str, str]) -> McpServer:
    try:
        entry = _Entry.model_validate(_expanded(raw, environment, name))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or name
        raise ConfigError(f"server '{name}', '{key}': {first['msg']}", key=f"mcpServers.{name}.{key}") from None
    if entry.type == "sse":
        raise ConfigError(f"server '{name}': the old 'sse' transport is not supported; use its 'http' address")
    if (entry.command is None) == (entry.url is None):
        raise ConfigError(f"server '{name}' needs either 'command' or 'url'", key=f"mcpServers.{name}")
    source = ToolSourceDescriptor(
        name=name,
        kind=ToolSourceKind.MCP_HTTP if entry.command is None else ToolSourceKind.MCP_STDIO,
        command=entry.command,
        args=entry.args,
        env=[Label(name=key, value=value) for key, value in entry.env.items()],
        url=entry.url,
        headers=[Label(name=key, value=value) for key, value in entry.headers.items()],
        tool_names=entry.tools,
        share_secrets=entry.share_secrets,
    )
    return McpServer(source, entry.cwd, entry.delegate, entry.prefix, entry.list_changed, call_ms=entry.timeout_ms)


def _expanded(value: Any, environment: Mapping[str, str], server: str) -> Any:
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {key: _expanded(member, environment, server) for key, member in members.items()}
    if isinstance(value, list):
        return [_expanded(member, environment, server) for member in cast(list[Any], value)]
    if not isinstance(value, str):
        return value

    def filled(found: re.Match[str]) -> str:
        default = cast("str | None", found[2])
        text = environment.get(found[1], default)
        if text is None:
            raise ConfigError(f"server '{server}': the variable '{found[1]}' is not set", key=f"mcpServers.{server}")
        return text

    return _VARIABLE.sub(filled, value)
