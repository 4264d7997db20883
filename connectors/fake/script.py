"""A script: what the peer of one conversation does, turn by turn (pure).

    style: emit                       # or ask: how requests are raised, unless a step says otherwise
    turns:
      - - text: ["I will ", "look."]
        - calls:                      # one round, opened together
            - {name: get_weather, arguments: {city: Oslo}, id: oslo}
            - {name: get_weather, arguments: {city: Rome}}
        - text: "In Oslo it is {{results.oslo}}."
        - end: end_turn
      - - die: now

A turn without an `end` ends with `end_turn`. The steps are those of `steps.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field, NonNegativeFloat, ValidationError, field_validator, model_validator

from connectors.fake.parts import Scripted, Style
from connectors.fake.steps import STEP_NAMES, EndStep, InternalToolStep, Steps, UsageStep
from harness.contract.capabilities import (
    CallIds,
    InnerVersion,
    LlmCapabilities,
    Parallel,
    ResultOrder,
    Resume,
    SeedHistory,
    Streaming,
    StructuredOutput,
)
from harness.contract.options import TurnOptions
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind
from harness.errors import ConfigError, ProviderError

_QUOTE = re.compile(r"\{\{results\.([^{}]+)\}\}")
_INTERRUPTED: Steps = (EndStep.model_validate({"end": "cancelled"}),)
_TURN_OPTIONS = tuple(name for name in TurnOptions.model_fields if name != "client_key")


class Script(Scripted):
    """What the peer does in each turn, and what kind of peer it is."""

    turns: Annotated[tuple[Steps, ...], Field(min_length=1)] | None = None
    """Without turns the peer echoes (`echo.py`)."""
    repeat: bool = False
    """After the last turn the script starts again; without it a further message is an error that says so."""
    style: Style = "emit"
    resume: Resume = Resume.CONTINUED
    on_interrupt: Steps = _INTERRUPTED
    """What the peer does when it is interrupted. Requests among it are raised and never waited for."""
    ignore_interrupt: bool = False
    """The peer goes on as if it had heard nothing."""
    capabilities: dict[str, Any] = {}
    """Members of `LlmCapabilities` that differ from what the script implies."""
    chunk_delay_seconds: NonNegativeFloat = 0
    """Between two pieces of text, so that a person sees it stream."""

    @model_validator(mode="before")
    @classmethod
    def _a_list_is_the_turns(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {"turns": cast(object, value)}
        return value

    @field_validator("capabilities")
    @classmethod
    def _known_capabilities(cls, value: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(value) - set(LlmCapabilities.model_fields))
        if unknown:
            raise ValueError(f"'{unknown[0]}' is no capability")
        LlmCapabilities.model_validate(value)
        return value

    def turn(self, number: int) -> Steps | None:
        """The steps of a turn, the first being 1; null when the peer echoes.

        Raises:
            ProviderError: the script is over.
        """
        if self.turns is None:
            return None
        if number > len(self.turns) and not self.repeat:
            raise ProviderError(
                f"the script ends after {len(self.turns)} turn(s) and this is turn {number}: "
                "add a turn to it, or say 'repeat: true'",
                reason="request",
            )
        return self.turns[(number - 1) % len(self.turns)]


def capabilities_of(script: Script, version: str) -> LlmCapabilities:
    """True for what the script asks."""
    steps = [step for turn in script.turns or () for step in turn]
    usages = [step.usage for step in steps if isinstance(step, UsageStep)]
    implied: dict[str, Any] = {
        "supports_tools": True,
        "supports_parallel_tool_calls": True,
        "routable_request_kinds": list(RequestKind),
        "delegatable_tool_sources": list(ToolSourceKind),
        "supports_request_policy_delegation": True,
        "reports_delegated_calls": True,
        "parallel": Parallel.ALL,
        "resume": script.resume,
        "seed_history": SeedHistory.EXACT,
        "result_order": ResultOrder.COMPLETION,
        "call_ids": CallIds.EXACT,
        "images_in_prompt": True,
        "images_in_tool_results": True,
        "structured_output": StructuredOutput.TURN,
        "internal_tools": sorted({step.internal_tool.name for step in steps if isinstance(step, InternalToolStep)}),
        "streaming": Streaming.TOKEN,
        "turn_options": list(_TURN_OPTIONS),
        "reports_usage": script.turns is None or bool(usages),
        "reports_cost": any(usage.cost_usd is not None for usage in usages),
        "inner": InnerVersion(name="fake", version=version, tested=True),
    }
    return LlmCapabilities.model_validate({**implied, **script.capabilities})


def quoted(text: str, results: Mapping[str, str]) -> str:
    """The text with every `{{results.<call id>}}` replaced; a call without a result is named as such."""
    return _QUOTE.sub(lambda found: results.get(found[1], f"(no result for '{found[1]}')"), text)


def read_script(value: object, *, file: str | None = None) -> Script:
    """The script in plain values as YAML, JSON or Python hold them; `file` is for the message.

    Raises:
        ConfigError: it cannot be used; names turn, step and member.
    """
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        raise _unusable(error, file) from error


def read_steps(value: object) -> Steps:
    """The steps of a single turn, with the same errors."""
    return read_script([value]).turn(1) or ()


def _unusable(error: ValidationError, file: str | None) -> ConfigError:
    problems = error.errors(include_url=False)
    first, more = problems[0], len(problems) - 1
    place = _place(first["loc"])
    where = ", ".join(part for part in (f"'{file}'" if file else "", place) if part)
    message = str(first["msg"]).removeprefix("Value error, ")
    match first["type"]:
        case "unknown_step":
            message = f"is no step: it needs one of {', '.join(STEP_NAMES)}"
        case "extra_forbidden":
            message = "unknown member, take it out or correct its name"
        case "missing":
            message = "is missing"
        case _:
            pass
    rest = f" (and {more} more)" if more else ""
    return ConfigError(f"the script{' ' + where if where else ''}: {message}{rest}", file=file, key=place or None)


def _place(location: tuple[int | str, ...]) -> str:
    """`("turns", 0, 2, "calls", "calls", 0, "name")` as people count: `turn 1, step 3, 'calls[0].name'`."""
    parts = list(location)
    words: list[str] = []
    if parts[:1] == ["turns"] and len(parts) > 1:
        numbers = [part for part in parts[1:3] if isinstance(part, int)]
        words = [f"{word} {number + 1}" for word, number in zip(("turn", "step"), numbers, strict=False)]
        parts = parts[1 + len(numbers) :]
        if len(numbers) == 2 and parts:
            del parts[0]  # the tag of the step, which its own member repeats
    elif parts[:1] == ["on_interrupt"] and len(parts) > 2:
        del parts[2]
    member = ""
    for part in parts:
        member += f"[{part}]" if isinstance(part, int) else f".{part}" if member else part
    if member:
        words.append(f"'{member}'")
    return ", ".join(words)
