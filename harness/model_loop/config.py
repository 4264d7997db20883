"""Options that every connector for a bare model shares; a connector's own `config.py` adds to them."""

from __future__ import annotations

from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument

CHARS_OF_UNKNOWN_WINDOW = 200_000


class LoopConfig(BaseModel):
    """How the loop treats its model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    max_retries: int = Field(default=4, ge=0)
    """Tries after the first one, for failures that pass by themselves."""
    loop_guard: bool = True
    """Tell a model that it repeats itself, and end the turn when it goes on."""
    compaction: Literal["drop", "summarise", "off"] = "drop"
    """What happens to old rounds when the prompt no longer fits the context window."""
    context_window: int | None = Field(default=None, ge=256)
    """Tokens of prompt and answer together; null: what the provider tells."""
    max_result_chars: int | None = Field(default=None, ge=100)
    """A longer tool result keeps only head and tail in the prompt; null: a quarter of the context window."""


C = TypeVar("C", bound=LoopConfig)


def config_of(kind: type[C], options: ConversationOptions, connector: str) -> C:
    """The connector options, validated.

    Raises:
        InvalidArgument: an option that is not understood.
    """
    try:
        return kind.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        where = f" '{name}'" if name else "s"
        raise InvalidArgument(f"connector option{where} of '{connector}': {message}") from error
