"""What the options of every connector that starts a CLI have in common, and how they are read. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument, NotSupported


class CliOptions(BaseModel):
    """Options of one conversation with a CLI; every one has a default that works."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    env: dict[str, str] = {}
    """Added to the CLI's environment, over everything else."""
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """`continue`: after the CLI was lost in a turn the conversation goes on by itself, once, and says so."""
    max_line_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    start_seconds: float = Field(default=60.0, gt=0)
    """How long the CLI may take until it is ready for the first message."""
    interrupt_seconds: float = Field(default=8.0, gt=0)
    """How long an interrupt may take before the CLI is ended."""
    grace_seconds: float = Field(default=3.0, gt=0)
    """Between SIGTERM and SIGKILL."""
    stalled_seconds: float = Field(default=60.0, gt=0)
    """After how much silence of the CLI, with nothing to wait for, a turn is told to have stalled."""
    interrupt_when_stalled: bool = False
    """Ends a turn that has stalled."""

    @field_validator("env")
    @classmethod
    def _names_are_possible(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or "\0" in text:
                raise ValueError(f"'{name}' cannot be an environment variable")
        return value


OptionsT = TypeVar("OptionsT", bound=CliOptions)


def options_of(kind: type[OptionsT], options: ConversationOptions, connector: str) -> OptionsT:
    """The connector options of a conversation.

    Raises:
        InvalidArgument: names the option and what was expected; never repeats a value, it may be a secret.
    """
    try:
        return kind.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if not name and first["type"] == "value_error":
            raise InvalidArgument(f"connector '{connector}': {first['msg'].removeprefix('Value error, ')}") from None
        name = name or "connector_options_json"
        known = ", ".join(sorted(kind.model_fields.keys() - {"kind"}))
        raise InvalidArgument(
            f"connector '{connector}': option '{name}': {first['msg']}; known options: {known}"
        ) from None


def check_taken(options: ConversationOptions, peer: str, takes: Collection[str] = ()) -> None:
    """`takes` are those of the options below that this peer can be told.

    Raises:
        NotSupported: another one is asked for; names it.
    """
    asked = {
        "resume_from": options.resume_from,
        "limits.max_output_tokens": options.limits.max_output_tokens,
        "limits.max_turns": options.limits.max_turns,
        "effort": options.effort,
    }
    for name, value in asked.items():
        if value is not None and name not in takes:
            raise NotSupported(f"{peer} cannot be told '{name}'; leave it out")
