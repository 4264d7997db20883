"""What is handed to the CLI to use and to decide by itself: MCP servers, and rules of its own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from connectors._environment import base_environment
from connectors._json import JsonObject
from connectors.claude.argv import MAX_CALL_WAIT_MS, SERVER_NAME
from connectors.claude.config import ClaudeOptions
from harness.contract.delegation import RequestPolicy
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.errors import InvalidArgument, NotSupported
from harness.policy.globs import is_literal

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_PROVIDER_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN")
_MAX_FLAG_CHARS = 1000
"""Longer lists stay off the command line: the hook decides by the same rules."""


def delegated_servers(sources: Sequence[ToolSourceDescriptor], claude: ClaudeOptions) -> dict[str, JsonObject]:
    """The sources as the CLI's configuration has them.

    A program that the CLI starts inherits its environment: what is secret there is blanked, unless it is to be shared.

    Raises:
        InvalidArgument: a name or an address that cannot be used; names the source.
        NotSupported: a kind that the CLI does not know.
    """
    servers: dict[str, JsonObject] = {}
    for source in sources:
        if not _NAME.fullmatch(source.name) or "__" in source.name or source.name == SERVER_NAME:
            raise InvalidArgument(
                f"tool source '{source.name}': a name has up to 32 letters, digits, '_' or '-', no '__', "
                f"and is not '{SERVER_NAME}'"
            )
        if source.name in servers:
            raise InvalidArgument(f"there are two tool sources '{source.name}'")
        servers[source.name] = _server(source, claude) | {"timeout": MAX_CALL_WAIT_MS, "alwaysLoad": True}
    return servers


def allowed_tool_names(sources: Iterable[ToolSourceDescriptor]) -> dict[str, frozenset[str]]:
    """For the sources of which only some tools were given."""
    return {source.name: frozenset(source.tool_names) for source in sources if source.tool_names is not None}


def tools_denied_whole(policy: RequestPolicy | None) -> list[str]:
    """The tools that the model is not even shown, because a rule denies them whatever their arguments."""
    if policy is None:
        return []
    denied = sorted({rule.tool for rule in policy.deny if not rule.arguments and is_literal(rule.tool)})
    return denied if len(",".join(denied)) <= _MAX_FLAG_CHARS else []


def _server(source: ToolSourceDescriptor, claude: ClaudeOptions) -> JsonObject:
    if source.kind == ToolSourceKind.MCP_HTTP:
        if source.url is None or not source.url.startswith(("http://", "https://")):
            raise InvalidArgument(f"tool source '{source.name}' needs a 'url' that begins with http:// or https://")
        headers: JsonObject = {header.name: header.value for header in source.headers}
        return {"type": "http", "url": source.url, "headers": headers}
    if source.kind != ToolSourceKind.MCP_STDIO:
        raise NotSupported(f"connector 'claude' cannot take a tool source of kind '{source.kind}'")
    if not source.command:
        raise InvalidArgument(f"tool source '{source.name}' needs a 'command'")
    blanked: JsonObject = {} if source.share_secrets else dict.fromkeys(_secret_names(claude), "")
    env: JsonObject = blanked | {variable.name: variable.value for variable in source.env}
    return {"type": "stdio", "command": source.command, "args": [*source.args], "env": env}


def _secret_names(claude: ClaudeOptions) -> list[str]:
    """The provider's, and everything that was added for the CLI alone."""
    harmless = base_environment(claude.env).keys()
    return [*_PROVIDER_VARIABLES, *(name for name in claude.env if name not in harmless)]
