"""Options -> command line and environment of the CLI. Pure.

Nothing long or secret stands on the command line: prompts, tools and the system prompt go through stdin, the key
through the environment. The flags isolate the CLI from the user's settings, hooks, plugins and MCP handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from connectors._environment import base_environment
from connectors.claude.config import ClaudeOptions
from connectors.claude.memory import Fork
from connectors.claude.versions import Features
from harness.contract.options import ConversationOptions, Effort
from harness.errors import ConnectorUnavailable, InvalidArgument, NotSupported

SERVER_NAME = "host"
TOOL_PREFIX = f"mcp__{SERVER_NAME}__"
MAX_CALL_WAIT_MS = 20 * 24 * 3600 * 1000
"""As long as a timer of the CLI's runtime can wait, less a margin (2^31 - 1 ms)."""

_FLAGS = (
    "-p",
    *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
    *("--strict-mcp-config", "--setting-sources", "", "--disable-slash-commands"),
)
_ENVIRONMENT = {
    # the end of a turn is told by the session's state, not by the first result
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    # texts and results reach the model as they are
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "ENABLE_TOOL_SEARCH": "false",
    # waiting for the host, or for a person, is no fault of a tool
    "MCP_TOOL_TIMEOUT": str(MAX_CALL_WAIT_MS),
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0",
    # no traffic but the model's
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_EFFORT = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high", Effort.EXTRA_HIGH: "xhigh"}
_KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
_LOGIN_VARIABLES = ("CLAUDE_CODE_OAUTH_TOKEN",)


@dataclass(frozen=True, slots=True)
class Start:
    """Which session of the CLI: a new one, an earlier one, or one that goes on from another by itself."""

    session_id: str
    resumes: bool = False
    fork: Fork | None = None

    def flags(self) -> list[str]:
        if self.resumes:
            return ["--resume", self.session_id]
        if self.fork is None:
            return ["--session-id", self.session_id]
        at = [] if self.fork.message_uuid is None else ["--resume-session-at", self.fork.message_uuid]
        return ["--resume", self.fork.session_id, "--fork-session", *at, "--session-id", self.session_id]


@dataclass(frozen=True, slots=True)
class Handed:
    """What is handed over beside the options: MCP servers, ours among them, and rules."""

    mcp_config: Path | None = None
    """The file that names them."""
    permission_tool: str = "stdio"
    """Who is asked for permissions: the control protocol, or a tool of ours."""
    denied_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started. The environment holds the key: show names only."""

    argv: list[str]
    env: dict[str, str]


def login_of(claude: ClaudeOptions, environ: Mapping[str, str]) -> Literal["user", "key"]:
    """Which credentials the CLI gets: the option, else a key if there is one, else the user's login."""
    if claude.login is not None:
        return claude.login
    return "key" if claude.key is not None or environ.get("ANTHROPIC_API_KEY") else "user"


def needs_isolated_home(claude: ClaudeOptions, environ: Mapping[str, str]) -> bool:
    if claude.isolated_home is not None:
        return claude.isolated_home
    return claude.home is not None or login_of(claude, environ) == "key"


def launch(
    program: str,
    options: ConversationOptions,
    claude: ClaudeOptions,
    *,
    start: Start,
    features: Features,
    environ: Mapping[str, str],
    home: Path | None,
    handed: Handed = Handed(),
) -> Launch:
    """Command line and environment; `home` is the isolated home directory, null for the user's.

    Raises:
        ConnectorUnavailable: a key is asked for and there is none.
        InvalidArgument: a value that would be taken for a flag, options that exclude each other.
        NotSupported: an option that this version does not know.
    """
    flags = [*_FLAGS, *_mode_flags(claude, features, handed), *_conversation_flags(options)]
    if handed.denied_tools:
        flags += ["--disallowedTools", ",".join(handed.denied_tools)]
    if handed.mcp_config is not None:
        flags += ["--mcp-config", str(handed.mcp_config)]
    return Launch([program, *flags, *start.flags()], _environment(options, claude, environ, home))


def _mode_flags(claude: ClaudeOptions, features: Features, handed: Handed) -> list[str]:
    flags = ["--bare"] if claude.bare else []
    if features.knows_prompt_snapshot:
        flags += ["--system-prompt-snapshot", "off"]
    if claude.permission_prompts == "host":
        return [*flags, "--permission-prompt-tool", handed.permission_tool]
    if not features.knows_permission_prompts:
        raise NotSupported("this version of Claude Code does not know the option 'permission_prompts=none'")
    return [*flags, "--permission-prompts", "none"]


def _conversation_flags(options: ConversationOptions) -> list[str]:
    flags = ["--tools", ",".join(options.internal_tools)]
    if options.tools:
        flags += ["--allowedTools", f"mcp__{SERVER_NAME}"]
    if options.model is not None:
        if options.model.startswith("-"):
            raise InvalidArgument(f"'{options.model}' cannot be the name of a model")
        flags += ["--model", options.model]
    if options.effort == Effort.NONE:
        flags += ["--thinking", "disabled"]
    elif options.effort is not None:
        flags += ["--effort", _EFFORT[options.effort]]
    if options.limits.max_turns is not None:
        flags += ["--max-turns", str(options.limits.max_turns)]
    if options.limits.cost_budget_usd is not None:
        flags += ["--max-budget-usd", f"{options.limits.cost_budget_usd:.10f}".rstrip("0").rstrip(".")]
    return flags


def _environment(
    options: ConversationOptions, claude: ClaudeOptions, environ: Mapping[str, str], home: Path | None
) -> dict[str, str]:
    extra = dict(_ENVIRONMENT)
    if not claude.background_tasks:
        extra["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1"
    source = environ
    if home is not None:
        source = {name: value for name, value in environ.items() if not name.startswith("XDG_")}
        extra["HOME"] = str(home)
    keep = _LOGIN_VARIABLES
    login = login_of(claude, environ)
    if claude.bare and login == "user":
        raise InvalidArgument("connector 'claude': the option 'bare' needs a key; the CLI knows no other login there")
    if login == "key":
        keep = _KEY_VARIABLES
        if claude.key is not None:
            # with a key of its own the conversation does not inherit where another key belongs
            keep = ()
            extra["ANTHROPIC_API_KEY"] = claude.key.get_secret_value()
        elif not environ.get("ANTHROPIC_API_KEY"):
            raise ConnectorUnavailable(
                "connector 'claude' is set to log in with a key and there is none; "
                "type: export ANTHROPIC_API_KEY=..., or use the option login=user",
                reason="not_logged_in",
            )
    if claude.base_url is not None:
        extra["ANTHROPIC_BASE_URL"] = claude.base_url
    if options.limits.max_output_tokens is not None:
        extra["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(options.limits.max_output_tokens)
    return base_environment(source, keep=keep, extra={**extra, **claude.env})
