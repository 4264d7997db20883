"""What one turn asks for of its own: a process for it, because the CLI takes most of it at its start only. Pure.

Changing the model of a running CLI would put words about it before the user's message.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.contract.options import ConversationOptions, SystemPromptMode, TurnOptions
from harness.contract.value import JsonValue

TURN_OPTIONS = ("effort", "max_output_tokens", "model", "output_schema_json", "tool_names")
INSTRUCTIONS = "instructions"
"""Where the CLI does not keep the first system prompt of a session for ever."""


def shape_of(options: TurnOptions) -> dict[str, JsonValue]:
    """The options that the process must have been started with."""
    return options.model_dump(mode="json", exclude_none=True, exclude={"client_key"})


def shaped(options: ConversationOptions, shape: Mapping[str, JsonValue]) -> ConversationOptions:
    """The conversation's options as this turn wants them; nothing of it is remembered."""
    turn = TurnOptions.model_validate(shape)
    changed: dict[str, object] = {
        name: value for name in ("model", "effort", "output_schema_json") if (value := getattr(turn, name)) is not None
    }
    if turn.max_output_tokens is not None:
        changed["limits"] = options.limits.model_copy(update={"max_output_tokens": turn.max_output_tokens})
    if turn.tool_names is not None:
        changed["tools"] = [tool for tool in options.tools if tool.name in turn.tool_names]
    if turn.instructions is not None:
        has_prompt = options.system_prompt or options.system_prompt_mode == SystemPromptMode.APPEND
        parts = [options.system_prompt or "", turn.instructions] if has_prompt else [turn.instructions]
        changed["system_prompt"] = "\n\n".join(part for part in parts if part)
    return options.model_copy(update=changed)
