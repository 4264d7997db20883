"""What a user may set for the `codex` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from connectors._options import CliOptions, options_of
from harness.contract.options import ConversationOptions

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env", "sandbox"})
"""They name a program, a target, a directory, its environment or wider rights: not for remote callers (design 10)."""


class CodexOptions(CliOptions):
    """Options of one conversation; every one has a default that works."""

    kind: Literal["codex"] = "codex"
    command: Path | None = None
    """The native program to start; by default `codex` on PATH, or the program behind its npm script."""
    login: Literal["user", "key"] | None = None
    """`user`: the login stored by `codex login`; `key`: an API key. By default `key` if there is one."""
    key: SecretStr | None = Field(default=None, min_length=1)
    """The provider's API key; by default OPENAI_API_KEY of our environment."""
    base_url: str | None = None
    """Where the provider's Responses API is reached, up to and with `/v1`."""
    home: Path | None = None
    """CODEX_HOME; by default a directory of ours, which has the threads and nothing of the user's but the login."""
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] = "workspace-write"
    """What commands may touch that Codex runs inside of it; a plain command that was approved runs outside."""


def read_options(options: ConversationOptions) -> CodexOptions:
    """The connector options of a conversation; raises `InvalidArgument` for those it does not know."""
    return options_of(CodexOptions, options, "codex")
