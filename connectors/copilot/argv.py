"""Options -> command lines, environment and session of both of Copilot's modes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from connectors._environment import base_environment
from connectors._json import JsonObject
from connectors.acp.agent import SERVER_NAME
from connectors.acp.argv import Launch
from connectors.copilot.agent import ASK_USER, COPILOT_ACP
from connectors.copilot.config import CopilotOptions
from connectors.copilot.sdk_asks import tool_specs
from harness.contract.options import ConversationOptions, Effort, SystemPromptMode
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.errors import InvalidArgument, NotSupported

_EFFORT = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high", Effort.EXTRA_HIGH: "xhigh"}


def environment(
    copilot: CopilotOptions,
    options: ConversationOptions,
    environ: Mapping[str, str],
    home: Path,
    *,
    with_provider: bool,
) -> dict[str, str]:
    """`with_provider`: the provider is told by variables, where it cannot be told in the session."""
    isolated = copilot.isolated_home if copilot.isolated_home is not None else copilot.base_url is not None
    source = {name: value for name, value in environ.items() if not isolated or not name.startswith("XDG_")}
    extra = {"COPILOT_AUTO_UPDATE": "false"}
    if isolated or copilot.home is not None:
        # its login lies in the user's own: without another provider that is the one to use
        extra["COPILOT_HOME"] = str(home)
    if isolated:
        extra["HOME"] = str(home)
    if copilot.base_url is not None and with_provider:
        extra |= {
            # with a provider told in the session this would end the process: its server mode then has no login instead
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": copilot.base_url,
            "COPILOT_PROVIDER_TYPE": copilot.provider_type,
            "COPILOT_PROVIDER_WIRE_API": copilot.wire_api,
            "COPILOT_MODEL": _own_model(options),
        }
        if copilot.key is not None:
            extra["COPILOT_PROVIDER_API_KEY"] = copilot.key.get_secret_value()
    keep = () if copilot.base_url is not None else COPILOT_ACP.variables
    return base_environment(source, keep=keep, extra={**extra, **copilot.env})


def acp_launch(
    program: str, copilot: CopilotOptions, options: ConversationOptions, environ: Mapping[str, str], home: Path
) -> Launch:
    """Raises:
    NotSupported: what this mode cannot be told.
    """
    if options.system_prompt is not None:
        raise NotSupported("Copilot's mode 'acp' takes no system prompt; mode 'sdk' does")
    if ASK_USER in options.internal_tools:
        raise NotSupported("Copilot's mode 'acp' has no questions to the user; mode 'sdk' has")
    visible = [*([SERVER_NAME] if options.tools else []), *options.internal_tools] or ["none"]
    argv = [program, "--acp", "--no-color", "--no-auto-update", "--no-custom-instructions", "--disable-builtin-mcps"]
    argv += ["--available-tools", ",".join(visible), "--allow-tool", SERVER_NAME]
    model = options.model
    if copilot.base_url is None and model is not None:
        if model.startswith("-"):
            raise InvalidArgument(f"'{model}' cannot be the name of a model")
        argv += ["--model", model]
    if options.effort is not None and options.effort in _EFFORT:
        argv += ["--reasoning-effort", _EFFORT[options.effort]]
    env = environment(copilot, options, environ, home, with_provider=True)
    return Launch(argv, env, params={"cwd": options.cwd or str(Path.cwd())})


def sdk_launch(
    program: str, copilot: CopilotOptions, options: ConversationOptions, environ: Mapping[str, str], home: Path
) -> Launch:
    argv = [program, "--headless", "--no-auto-update", "--log-level", "info", "--stdio"]
    if copilot.base_url is not None:
        argv.append("--no-auto-login")
    env = environment(copilot, options, environ, home, with_provider=False)
    return Launch(argv, env, params={"cwd": options.cwd or str(Path.cwd())})


def session_params(
    copilot: CopilotOptions,
    options: ConversationOptions,
    tools: list[JsonObject],
    sources: Sequence[ToolSourceDescriptor],
) -> JsonObject:
    """What `session.create` and `session.resume` take."""
    specs = tool_specs(tools)
    names = [str(spec["name"]) for spec in specs]
    asks = ASK_USER in options.internal_tools
    params: JsonObject = {
        "tools": specs,
        "availableTools": [*names, *options.internal_tools, *(source.name for source in sources)] or ["none"],
        "toolFilterPrecedence": "excluded",
        "requestPermission": True,
        "requestUserInput": asks,
        "requestElicitation": False,
        "requestExitPlanMode": False,
        "requestAutoModeSwitch": False,
        "workingDirectory": options.cwd or str(Path.cwd()),
        "streaming": True,
        "includeSubAgentStreamingEvents": False,
        "envValueMode": "direct",
        "enableConfigDiscovery": False,
    }
    if options.model is not None:
        params["model"] = options.model
    if options.effort is not None and options.effort in _EFFORT:
        params["reasoningEffort"] = _EFFORT[options.effort]
    if options.system_prompt_mode == SystemPromptMode.APPEND:
        if options.system_prompt is not None:
            params["systemMessage"] = {"mode": "append", "content": options.system_prompt}
    else:
        # an empty one would be taken for none
        params["systemMessage"] = {"mode": "replace", "content": options.system_prompt or " "}
    if copilot.base_url is not None:
        params["model"] = _own_model(options)
        provider: JsonObject = {
            "type": copilot.provider_type,
            "baseUrl": copilot.base_url,
            "wireApi": copilot.wire_api,
        }
        if copilot.key is not None:
            provider["apiKey"] = copilot.key.get_secret_value()
        params["provider"] = provider
    if sources:
        params["mcpServers"] = {source.name: _server(source) for source in sources}
    return params


def _server(source: ToolSourceDescriptor) -> JsonObject:
    if (source.env or source.headers) and not source.share_secrets:
        raise NotSupported(f"the tool source '{source.name}' has 'env' or 'headers', which Copilot would be told")
    tools = source.tool_names or ["*"]
    match source.kind:
        case ToolSourceKind.MCP_STDIO:
            env = {pair.name: pair.value for pair in source.env}
            return {"type": "local", "command": source.command, "args": source.args, "env": env, "tools": tools}
        case ToolSourceKind.MCP_HTTP:
            headers = {pair.name: pair.value for pair in source.headers}
            return {"type": "http", "url": source.url, "headers": headers, "tools": tools}
        case _:
            raise NotSupported(f"connector 'copilot' cannot be given a tool source of kind '{source.kind}'")


def _own_model(options: ConversationOptions) -> str:
    if options.model is None:
        raise InvalidArgument("connector 'copilot' with a provider of your own needs a 'model'")
    return options.model
