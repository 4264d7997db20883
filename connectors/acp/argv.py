"""Options -> command line, environment, files and session parameters of each known agent. Pure.

Each agent has its own way to close its tools, to take a prompt and to be kept from the user's settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors._environment import base_environment
from connectors._json import JsonObject
from connectors.acp.agent import SERVER_NAME, Agent
from harness.contract.options import ConversationOptions, SystemPromptMode
from harness.errors import NotSupported

_DAY_MS = 24 * 3600 * 1000
_WITHOUT_END = 1_000_000_000
_ASK_USER = "AskUserQuestion"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
"""What OpenCode writes as `_` in the name of a server."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started, and with what its session opens. The environment holds secrets: show names only."""

    argv: list[str]
    env: dict[str, str]
    links: dict[Path, Path] = field(default_factory=dict[Path, Path])
    """To be made before the start, where their targets exist: the user's login, and nothing else of the user's."""
    files: dict[Path, str] = field(default_factory=dict[Path, str])
    """To be written before the start: settings that an agent reads from nowhere else."""
    params: JsonObject = field(default_factory=dict[str, object])
    """Of `session/new` and of taking up a session."""
    model: str | None = None
    """To be chosen in the session; null where the start has chosen it, or nobody asked."""


@dataclass(slots=True)
class _Parts:
    arguments: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[Path, str] = field(default_factory=dict[Path, str])
    links: dict[Path, Path] = field(default_factory=dict[Path, Path])
    params: JsonObject = field(default_factory=dict[str, object])
    model: str | None = None


def launch(
    command: Sequence[str],
    agent: Agent,
    options: ConversationOptions,
    environ: Mapping[str, str],
    home: Path,
    *,
    tools: Sequence[str],
    sources: Sequence[str] = (),
    extra: Mapping[str, str],
    isolated: bool,
    has_policy: bool = False,
) -> Launch:
    """`tools` are the host's, by the names they have at the bridge; `sources` names the servers that are delegated;
    `extra` is what the user wants in the environment; with a policy of the host's the agent asks about all it does.

    Raises:
        NotSupported: the agent takes no system prompt, or no choice of a model.
    """
    if options.system_prompt is not None and not agent.takes_prompt:
        raise NotSupported(f"'{agent.name}' cannot be given a system prompt")
    parts = _Parts(model=options.model)
    match agent.name:
        case "opencode":
            extra = _opencode(parts, options, home, sources, extra)
        case "gemini":
            _gemini(parts, options, tools, environ, home)
        case "claude-agent-acp":
            _claude(
                parts, options, [*options.internal_tools, *(f"mcp__{one}" for one in sources)] if has_policy else []
            )
        case "codex-acp":
            _codex(parts, options, home)
        case _:
            pass
    source = {name: value for name, value in environ.items() if not isolated or not name.startswith("XDG_")}
    own = {"HOME": str(home)} if isolated else {}
    env = base_environment(source, keep=agent.variables, extra={**own, **parts.env, **extra})
    params: JsonObject = {"cwd": options.cwd or str(Path.cwd()), **parts.params}
    links = {} if isolated else parts.links
    return Launch([*command, *parts.arguments], env, links, parts.files, params, parts.model)


def _opencode(
    parts: _Parts, options: ConversationOptions, home: Path, sources: Sequence[str], extra: Mapping[str, str]
) -> dict[str, str]:
    """Gives what is left of the user's environment: a configuration in it becomes part of ours."""
    own = ["edit" if tool == "write" else tool for tool in options.internal_tools]  # one permission is for both
    asked = [*own, *(f"{_NOT_IN_NAMES.sub('_', source)}_*" for source in sources)]
    permission: JsonObject = {"*": "deny", f"{SERVER_NAME}_*": "allow", **dict.fromkeys(asked, "ask")}
    agents: JsonObject = {"title": {"disable": True}}
    if options.system_prompt is not None:
        agents["build"] = {"prompt": options.system_prompt}
    config: JsonObject = {
        "autoupdate": False,
        "share": "disabled",
        # what is denied is not shown to the model
        "permission": permission,
        "agent": agents,
        "experimental": {"mcp_timeout": _DAY_MS},
        # else a longer result is put into a file, and the model reads its first lines
        "tool_output": {"max_lines": _WITHOUT_END, "max_bytes": _WITHOUT_END},
    }
    left = dict(extra)
    given = json.loads(left.pop("OPENCODE_CONFIG_CONTENT", "{}"))
    parts.env |= {
        "OPENCODE_CONFIG_CONTENT": json.dumps({**given, **config}),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",
        # the user's settings are not seen, the login, which lies elsewhere, is
        "XDG_CONFIG_HOME": str(home / "config"),
    }
    return left


def _gemini(
    parts: _Parts, options: ConversationOptions, tools: Sequence[str], environ: Mapping[str, str], home: Path
) -> None:
    ours = f"mcp_{SERVER_NAME}_"
    settings: JsonObject = {
        # what is not in the list is not there; what is in it would run unasked, were it not in the other one too
        "tools": {
            "core": [*options.internal_tools, f"{ours}*"],
            "confirmationRequired": [*options.internal_tools, *(f"{ours}{tool}" for tool in tools)],
        },
        "mcp": {"allowed": [SERVER_NAME]},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "hooksConfig": {"enabled": False},
        "context": {"fileName": "no-such-file.md"},
    }
    parts.files[home / ".gemini" / "settings.json"] = json.dumps(settings)
    parts.env |= {
        # its settings of a whole system are read from places of root only
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "1",
    }
    parts.arguments += ["-e", "none"]
    if environ.get("HOME"):
        for name in ("oauth_creds.json", "google_accounts.json"):
            parts.links[home / ".gemini" / name] = Path(environ["HOME"]) / ".gemini" / name
    if options.model is not None:
        # in the session it could only be changed after a router has been asked
        parts.arguments += ["-m", options.model]
        parts.model = None


def _claude(parts: _Parts, options: ConversationOptions, asks: Sequence[str]) -> None:
    claude: JsonObject = {
        "tools": options.internal_tools,
        "settingSources": [],
        "strictMcpConfig": True,
        "env": {"MCP_TOOL_TIMEOUT": str(_DAY_MS)},
    }
    if asks:
        # else it reads, and runs what it takes for harmless, without a question
        claude["settings"] = {"permissions": {"ask": [tool for tool in asks if tool != _ASK_USER]}}
    if options.model is not None:
        claude["model"] = options.model
        parts.model = None
    if options.limits.max_turns is not None:
        claude["maxTurns"] = options.limits.max_turns
    if options.limits.cost_budget_usd is not None:
        claude["maxBudgetUsd"] = options.limits.cost_budget_usd
    meta: JsonObject = {"claudeCode": {"options": claude}}
    if options.system_prompt_mode == SystemPromptMode.APPEND:
        meta["systemPrompt"] = {"append": options.system_prompt or ""}
    else:
        # an empty one would be taken for none
        meta["systemPrompt"] = options.system_prompt or " "
    parts.params["_meta"] = meta
    parts.env |= {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _codex(parts: _Parts, options: ConversationOptions, home: Path) -> None:
    has_shell = "exec_command" in options.internal_tools
    features: JsonObject = {
        "shell_tool": has_shell,
        "unified_exec": has_shell,
        "view_image": "view_image" in options.internal_tools,
        **dict.fromkeys(("multi_agent", "goals", "plugins", "apps", "image_generation"), False),
    }
    config: JsonObject = {
        "features": features,
        "web_search": "live" if "web_search" in options.internal_tools else "disabled",
        "skills": {"include_instructions": False, "bundled": {"enabled": False}},
        "include_permissions_instructions": has_shell,
        "include_environment_context": has_shell,
        "include_apps_instructions": False,
        "project_doc_max_bytes": 0,
        "check_for_update_on_startup": False,
        "tool_output_token_limit": 600_000,
    }
    if options.model is not None:
        config["model"] = options.model
        parts.model = None
    parts.env["CODEX_CONFIG"] = json.dumps(config)
    if options.system_prompt is not None:
        mode = "append" if options.system_prompt_mode == SystemPromptMode.APPEND else "replace"
        content = [{"type": "text", "text": options.system_prompt}]
        parts.params["systemPrompt"] = {"mode": mode, "content": content}
