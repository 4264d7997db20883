"""What a user may set for the `acp` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument

RESTRICTED_OPTIONS = frozenset({"command", "home", "env", "mode"})
"""They name a program, a directory, its environment or wider rights: not for remote callers (design 10)."""


class AcpOptions(BaseModel):
    """Options of one conversation: which agent, and how it is started."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["acp"] = "acp"
    agent: Literal["opencode", "gemini", "claude-agent-acp", "codex-acp"] | None = None
    """An agent whose ways are known."""
    command: list[str] | None = Field(default=None, min_length=1)
    """Program and arguments; by default those of the agent, found on PATH."""
    home: Path | None = None
    """Where the agent keeps its sessions and settings; by default a directory of ours for each agent."""
    isolated_home: bool = False
    """Gives the agent that directory as HOME too: nothing of the user's is seen, the login neither."""
    env: dict[str, str] = {}
    """Added to the agent's environment, over everything else."""
    mode: str | None = None
    """The session mode; by default the one in which the agent asks before it acts."""
    auth_method: str | None = None
    """To be called before a session opens; by default what the agent is known to want."""
    bridge: Literal["auto", "http", "relay"] = "auto"
    """How the agent reaches the host's tools."""
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """Whether the conversation itself goes on after the agent was lost in a turn; the house does so."""
    max_line_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    start_seconds: float = Field(default=60.0, gt=0)
    """How long the agent may take to open a session and to list the host's tools."""
    interrupt_seconds: float = Field(default=8.0, gt=0)
    """How long a cancel may take before the agent is ended."""
    grace_seconds: float = Field(default=3.0, gt=0)
    """Between SIGTERM and SIGKILL."""

    @model_validator(mode="after")
    def _names_an_agent(self) -> AcpOptions:
        if self.agent is None and self.command is None:
            raise ValueError("name an 'agent' or a 'command'")
        return self


def read_options(options: ConversationOptions) -> AcpOptions:
    """The connector options of a conversation.

    Raises:
        InvalidArgument: names the option and what was expected; never repeats a value, it may be a secret.
    """
    try:
        return AcpOptions.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "connector_options_json"
        known = ", ".join(sorted(AcpOptions.model_fields.keys() - {"kind"}))
        raise InvalidArgument(f"connector 'acp': option '{name}': {first['msg']}; known options: {known}") from None
