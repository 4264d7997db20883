"""What a user may set for the `copilot` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from connectors._options import CliOptions, options_of
from harness.contract.options import ConversationOptions

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env"})
"""They name a program, a target, a directory or its environment: not for remote callers (design 10)."""


class CopilotOptions(CliOptions):
    """Options of one conversation; every one has a default that works."""

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


def read_options(options: ConversationOptions) -> CopilotOptions:
    """The connector options of a conversation; raises `InvalidArgument` for those it does not know."""
    return options_of(CopilotOptions, options, "copilot")
