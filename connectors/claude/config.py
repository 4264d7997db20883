"""What a user may set for the `claude` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from connectors._options import CliOptions, options_of
from harness.contract.options import ConversationOptions

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env"})
"""They name a program, a target, a directory or its environment: not for remote callers (design 10)."""


class ClaudeOptions(CliOptions):
    """Options of one conversation; every one has a default that works."""

    kind: Literal["claude"] = "claude"
    command: Path | None = None
    """The CLI to start; by default that of the installed extra, else `claude` on PATH."""
    route: Literal["tunnel", "bridge"] = "tunnel"
    """How the host's tools reach the CLI: `tunnel` through its control protocol, `bridge` over HTTP on loopback."""
    login: Literal["user", "key"] | None = None
    """`user`: the login stored by `claude /login`; `key`: an API key. By default `key` if there is one."""
    key: SecretStr | None = Field(default=None, min_length=1)
    """The provider's API key; by default ANTHROPIC_API_KEY of our environment."""
    base_url: str | None = None
    """Where the provider is reached, for example a scripted model."""
    isolated_home: bool | None = None
    """Gives the CLI a home directory of ours, without anything of the user's; by default exactly with `key`."""
    home: Path | None = None
    """That home directory; by default one in the user's state directory, which keeps sessions for resuming."""
    bare: bool = False
    """The CLI's minimal mode: no reminders before the user's text, but of the internal tools only Bash, Edit and Read,
    no questions to the user, and no login but a key."""
    permission_prompts: Literal["host", "none"] = "host"
    """`none`: nobody is asked; whatever an internal tool needs a permission for is denied."""
    background_tasks: bool = False
    """Lets subagents run on while the model goes on; the turn ends when the last one has ended."""
    tools_seconds: float = Field(default=20.0, gt=0)
    """How long the CLI may take to ask for the host's tools over the bridge; the first message waits for it."""


def read_options(options: ConversationOptions) -> ClaudeOptions:
    """The connector options of a conversation; raises `InvalidArgument` for those it does not know."""
    return options_of(ClaudeOptions, options, "claude")
