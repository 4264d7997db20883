"""Options -> what a thread of Codex is opened with: tools, prompt, the built-in tools closed, tool sources. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge_mcp.mapping import Rewrite, input_schema, wire_names
from connectors._json import JsonObject
from harness.contract.options import ConversationOptions, Effort, SystemPromptMode
from harness.contract.tools import ToolDescriptor, ToolSourceDescriptor, ToolSourceKind
from harness.errors import InvalidArgument, NotSupported

EXEC_COMMAND, VIEW_IMAGE, WEB_SEARCH, ASK_USER = "exec_command", "view_image", "web_search", "request_user_input"
INTERNAL_TOOLS = (EXEC_COMMAND, ASK_USER, VIEW_IMAGE, WEB_SEARCH)
"""Codex's own tools that may be opened; changing files is a command of `exec_command`."""

DELEGATABLE = (ToolSourceKind.MCP_STDIO, ToolSourceKind.MCP_HTTP)
MAX_NAME_CHARS = 128
MAX_RESULT_CHARS = 500_000
_RESULT_TOKENS = 600_000
"""Codex cuts at four bytes a token: a character may have four bytes."""
_SERVER_SECONDS = 30
_CALL_SECONDS = 24 * 3600
_EFFORT = {
    Effort.NONE: "none",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.EXTRA_HIGH: "xhigh",
}


@dataclass(frozen=True, slots=True)
class DynamicTools:
    """The host's tools in Codex's words, which name there is which of ours, and what had to be changed."""

    specs: list[JsonObject]
    ours: dict[str, ToolDescriptor]
    rewrites: list[Rewrite]


def dynamic_tools(tools: Sequence[ToolDescriptor]) -> DynamicTools:
    """Raises:
    InvalidArgument: a schema that is none of arguments, or a name that Codex keeps for itself.
    """
    names = wire_names((tool.name for tool in tools), MAX_NAME_CHARS)
    specs: list[JsonObject] = []
    rewrites: list[Rewrite] = []
    for tool in tools:
        name = names[tool.name]
        if name.startswith("mcp__") or name in INTERNAL_TOOLS:
            raise InvalidArgument(f"connector 'codex' cannot take a tool named '{tool.name}': Codex keeps that name")
        schema, rule = input_schema(tool)
        if rule is not None:
            rewrites.append(Rewrite(tool.name, rule))
        specs.append({"type": "function", "name": name, "description": tool.description, "inputSchema": schema})
    return DynamicTools(specs, {names[tool.name]: tool for tool in tools}, rewrites)


def thread_params(
    options: ConversationOptions, cwd: str, sandbox: str, sources: Sequence[ToolSourceDescriptor]
) -> JsonObject:
    """What both starting and resuming a thread take.

    `untrusted` is the one policy with which everything that Codex would do itself is asked for. Its others are no rules
    of ours: `on-request` and `never` let pass whatever the sandbox lets pass.
    """
    params: JsonObject = {
        "cwd": cwd,
        "approvalPolicy": "untrusted",
        "approvalsReviewer": "user",
        "sandbox": sandbox if EXEC_COMMAND in options.internal_tools else "read-only",
        "config": thread_config(options.internal_tools, sources),
    }
    if options.model is not None:
        params["model"] = options.model
    if options.system_prompt_mode == SystemPromptMode.REPLACE:
        params["baseInstructions"] = options.system_prompt or ""
    elif options.system_prompt is not None:
        params["developerInstructions"] = options.system_prompt
    return params


def thread_config(internal_tools: Sequence[str], sources: Sequence[ToolSourceDescriptor]) -> JsonObject:
    """Every tool of Codex's own is closed unless it was asked for."""
    has_shell = EXEC_COMMAND in internal_tools
    features: JsonObject = {
        "shell_tool": has_shell,
        "unified_exec": has_shell,
        "view_image": VIEW_IMAGE in internal_tools,
        "default_mode_request_user_input": ASK_USER in internal_tools,
        **dict.fromkeys(("multi_agent", "goals", "plugins", "apps", "image_generation"), False),
    }
    config: JsonObject = {
        "features": features,
        "web_search": "live" if WEB_SEARCH in internal_tools else "disabled",
        "tool_output_token_limit": _RESULT_TOKENS,
        "skills": {"include_instructions": False, "bundled": {"enabled": False}},
        "include_permissions_instructions": has_shell,
        "include_environment_context": has_shell,
        "include_apps_instructions": False,
        # instructions that lie around in the working directory are not the host's
        "project_doc_max_bytes": 0,
    }
    if sources:
        config["mcp_servers"] = {source.name: _server(source) for source in sources}
    return config


def effort_of(effort: Effort | None) -> str | None:
    return None if effort is None else _EFFORT[effort]


def _server(source: ToolSourceDescriptor) -> JsonObject:
    if (source.env or source.headers) and not source.share_secrets:
        raise NotSupported(f"the tool source '{source.name}' has 'env' or 'headers', which Codex would be told")
    entry: JsonObject = {"startup_timeout_sec": _SERVER_SECONDS, "tool_timeout_sec": _CALL_SECONDS}
    if source.tool_names is not None:
        entry["enabled_tools"] = source.tool_names
    match source.kind:
        case ToolSourceKind.MCP_STDIO:
            entry |= {"command": source.command, "args": source.args}
            if source.env:
                entry["env"] = {pair.name: pair.value for pair in source.env}
        case ToolSourceKind.MCP_HTTP:
            entry["url"] = source.url
            if source.headers:
                entry["http_headers"] = {pair.name: pair.value for pair in source.headers}
        case _:
            raise NotSupported(f"connector 'codex' cannot be given a tool source of kind '{source.kind}'")
    return entry
