"""What one turn asks of the model: the conversation's options with the turn's in their place (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.contract.options import ConversationOptions, Effort, ToolMode, TurnOptions
from harness.contract.tools import ToolDescriptor

TURN_OPTIONS = (
    "model",
    "tool_names",
    "tool_mode",
    "effort",
    "temperature",
    "max_output_tokens",
    "instructions",
    "output_schema_json",
)
"""Every option of a turn can be honoured by a bare model; a value that cannot be is refused by its connector."""


@dataclass(frozen=True, slots=True)
class Asking:
    model: str | None
    system: str
    tools: tuple[ToolDescriptor, ...]
    tool_mode: ToolMode
    effort: Effort | None
    temperature: float | None
    max_output_tokens: int | None
    """Per turn; the loop gives each call what is left."""
    output_schema_json: str | None

    @staticmethod
    def of(options: ConversationOptions, turn: TurnOptions) -> Asking:
        names = turn.tool_names
        tools = [tool for tool in options.tools if names is None or tool.name in names]
        mode = turn.tool_mode or ToolMode.AUTO
        if not tools:  # a provider may want the tools of earlier calls declared, so they stay and must not be called
            tools, mode = options.tools, ToolMode.NONE
        return Asking(
            model=turn.model or options.model,
            system="\n\n".join(part for part in (options.system_prompt, turn.instructions) if part),
            tools=tuple(tools),
            tool_mode=mode,
            effort=turn.effort if turn.effort is not None else options.effort,
            temperature=turn.temperature,
            max_output_tokens=turn.max_output_tokens or options.limits.max_output_tokens,
            output_schema_json=turn.output_schema_json or options.output_schema_json,
        )

    @property
    def offered(self) -> tuple[ToolDescriptor, ...]:
        """The tools the model may call."""
        return () if self.tool_mode == ToolMode.NONE else self.tools

    def without_calls(self) -> Asking:
        """For an answer that must be text."""
        return replace(self, tool_mode=ToolMode.NONE)

    def after_first_round(self) -> Asking:
        """A call is demanded once: a model that had to call in every round could never end the turn."""
        return replace(self, tool_mode=ToolMode.AUTO) if self.tool_mode in (ToolMode.ANY, ToolMode.ONE) else self
