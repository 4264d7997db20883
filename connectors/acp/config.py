"""What a user may set for the `acp` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from connectors._options import CliOptions, options_of
from harness.contract.options import ConversationOptions

RESTRICTED_OPTIONS = frozenset({"command", "program", "home", "env", "mode", "client_files", "client_terminals"})
"""They name a program, a directory, its environment or wider rights: not for remote callers (design 10)."""


class AcpOptions(CliOptions):
    """Options of one conversation: which agent, and how it is started."""

    kind: Literal["acp"] = "acp"
    agent: Literal["opencode", "gemini", "claude-agent-acp", "codex-acp"] | None = None
    """An agent whose ways are known."""
    command: list[str] | None = Field(default=None, min_length=1)
    """Program and arguments; by default those of the agent, found on PATH."""
    program: Path | None = None
    """Where the program of a known `agent` is; by default it is found on PATH. Its arguments stay the agent's own."""
    home: Path | None = None
    """Where the agent keeps its sessions and settings; by default a directory of ours for each agent."""
    isolated_home: bool = False
    """Gives the agent that directory as HOME too: nothing of the user's is seen, the login neither."""
    mode: str | None = None
    """The session mode; by default the one in which the agent asks before it acts."""
    auth_method: str | None = None
    """To be called before a session opens; by default what the agent is known to want."""
    bridge: Literal["auto", "http", "relay"] = "auto"
    """How the agent reaches the host's tools."""
    resume_by: Literal["session/resume", "session/load"] | None = None
    """How the agent takes up an earlier session; by default as it is known to, which of a `command` nobody knows."""
    client_files: Literal["none", "read", "write"] = "none"
    """Offers the agent to read files of the working directory through us, or to write them with the host's approval."""
    client_terminals: bool = False
    """Offers the agent to run commands through us, each with the host's approval."""

    @model_validator(mode="after")
    def _names_an_agent(self) -> AcpOptions:
        if self.agent is None and self.command is None:
            raise ValueError("name an 'agent' or a 'command'")
        if self.program is not None and (self.agent is None or self.command is not None):
            raise ValueError("a 'program' goes with an 'agent' and without a 'command', which would name its own")
        return self


def read_options(options: ConversationOptions) -> AcpOptions:
    """The connector options of a conversation; raises `InvalidArgument` for those it does not know."""
    return options_of(AcpOptions, options, "acp")
