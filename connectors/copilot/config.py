"""What a user may set for the `copilot` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env"})
"""They name a program, a target, a directory or its environment: not for remote callers (design 10)."""


class CopilotOptions(BaseModel):
    """Options of one conversation; every one has a default that works."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["copilot"] = "copilot"
    mode: Literal["auto", "sdk", "acp"] = "auto"
    """`sdk` is the server mode of its SDKs, `acp` the documented protocol; `auto` takes `sdk` where it was tested."""
    command: Path | None = None
    """The native program to start; by default `copilot` on PATH, or the program behind its npm script."""
    base_url: str | None = None
    """A provider of your own instead of GitHub's; nothing else is then contacted."""
    key: SecretStr | None = Field(default=None, min_length=1)
    """The key of that provider."""
    provider_type: Literal["openai", "azure", "anthropic"] = "openai"
    wire_api: Literal["completions", "responses"] = "completions"
    home: Path | None = None
    """Where Copilot keeps its sessions; by default the user's own, with `base_url` a directory of ours."""
    isolated_home: bool | None = None
    """Gives Copilot that directory as HOME too; by default exactly with `base_url`."""
    env: dict[str, str] = {}
    """Added to Copilot's environment, over everything else."""
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """Whether the conversation itself goes on after Copilot was lost in a turn; the house does so."""
    max_line_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    start_seconds: float = Field(default=60.0, gt=0)
    """How long Copilot may take to open a session."""
    interrupt_seconds: float = Field(default=8.0, gt=0)
    """How long a cancel may take before Copilot is ended."""
    grace_seconds: float = Field(default=3.0, gt=0)
    """Between SIGTERM and SIGKILL."""


def read_options(options: ConversationOptions) -> CopilotOptions:
    """The connector options of a conversation.

    Raises:
        InvalidArgument: names the option and what was expected; never repeats a value, it may be a secret.
    """
    try:
        return CopilotOptions.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "connector_options_json"
        known = ", ".join(sorted(CopilotOptions.model_fields.keys() - {"kind"}))
        raise InvalidArgument(f"connector 'copilot': option '{name}': {first['msg']}; known options: {known}") from None
