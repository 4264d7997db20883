"""What a user may set for the `claude` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env"})
"""They name a program, a target, a directory or its environment: not for remote callers (design 10)."""


class ClaudeOptions(BaseModel):
    """Options of one conversation; every one has a default that works."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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
    on_peer_lost: Literal["report", "continue"] = "report"
    """`continue`: after a crash of the CLI the conversation goes on by itself, once, and says so."""
    stalled_seconds: float = Field(default=60.0, gt=0)
    """After how much silence of the CLI, with nothing to wait for, a turn is told to have stalled."""
    interrupt_when_stalled: bool = False
    """Ends a turn that has stalled."""
    env: dict[str, str] = {}
    """Added to the CLI's environment, over everything else."""
    max_line_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    start_seconds: float = Field(default=60.0, gt=0)
    """How long the CLI may take to answer its first request."""
    tools_seconds: float = Field(default=20.0, gt=0)
    """How long the CLI may take to ask for the host's tools over the bridge; the first message waits for it."""
    interrupt_seconds: float = Field(default=8.0, gt=0)
    """How long an interrupt may take before the CLI is ended."""
    grace_seconds: float = Field(default=3.0, gt=0)
    """Between SIGTERM and SIGKILL."""

    @field_validator("env")
    @classmethod
    def _names_are_possible(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or "\0" in text:
                raise ValueError(f"'{name}' cannot be an environment variable")
        return value


def read_options(options: ConversationOptions) -> ClaudeOptions:
    """The connector options of a conversation.

    Raises:
        InvalidArgument: names the option and what was expected; never repeats a value, it may be a secret.
    """
    text = options.connector_options_json
    if text is None:
        return ClaudeOptions()
    try:
        return ClaudeOptions.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "connector_options_json"
        known = ", ".join(sorted(ClaudeOptions.model_fields.keys() - {"kind"}))
        raise InvalidArgument(f"connector 'claude': option '{name}': {first['msg']}; known options: {known}") from None
