"""What a user may set for the `codex` connector (`connector_options_json`), validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument

RESTRICTED_OPTIONS = frozenset({"command", "base_url", "home", "env", "sandbox"})
"""They name a program, a target, a directory, its environment or wider rights: not for remote callers (design 10)."""


class CodexOptions(BaseModel):
    """Options of one conversation; every one has a default that works."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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
    env: dict[str, str] = {}
    """Added to Codex's environment, over everything else."""
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] = "workspace-write"
    """What commands that the host approved may touch."""
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """Whether the conversation itself goes on after Codex was lost in a turn; the house does so."""
    max_line_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    start_seconds: float = Field(default=60.0, gt=0)
    """How long Codex may take to open a thread."""
    interrupt_seconds: float = Field(default=8.0, gt=0)
    """How long an interrupt may take before Codex is ended."""
    grace_seconds: float = Field(default=3.0, gt=0)
    """Between SIGTERM and SIGKILL."""

    @field_validator("env")
    @classmethod
    def _names_are_possible(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or "\0" in text:
                raise ValueError(f"'{name}' cannot be an environment variable")
        return value


def read_options(options: ConversationOptions) -> CodexOptions:
    """The connector options of a conversation.

    Raises:
        InvalidArgument: names the option and what was expected; never repeats a value, it may be a secret.
    """
    text = options.connector_options_json
    if text is None:
        return CodexOptions()
    try:
        return CodexOptions.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "connector_options_json"
        known = ", ".join(sorted(CodexOptions.model_fields.keys() - {"kind"}))
        raise InvalidArgument(f"connector 'codex': option '{name}': {first['msg']}; known options: {known}") from None
