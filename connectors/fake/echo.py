"""Without a script the peer echoes: it says what it was told and makes the calls it was told to make (pure).

A line `call TOOL {json}` calls that tool; the lines of one message are one round, and the answer quotes the results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from connectors.fake.parts import ScriptedCall
from connectors.fake.requests import call_id_of
from connectors.fake.script import read_steps
from connectors.fake.steps import Steps
from harness.contract.content import ContentBlock, TextBlock, text_of
from harness.contract.options import ConversationOptions, ToolMode, TurnOptions

_CALL = re.compile(r"call ([A-Za-z0-9_-]{1,64})(?: (\{.*\}))?")


def echo(content: Sequence[ContentBlock], options: ConversationOptions, turn: TurnOptions, place: str) -> Steps:
    """What an echoing peer does about this message; `place` is the turn's."""
    text = text_of(content)
    calls = _calls(text, _callable_names(options, turn))
    steps: list[dict[str, Any]] = []
    answer = text
    if calls:
        steps.append({"calls": calls})
        ids = [call_id_of(call, f"{place}_1_{number}") for number, call in enumerate(calls, 1)]
        answer = "\n".join(f"{call.name}: {{{{results.{call_id}}}}}" for call, call_id in zip(calls, ids, strict=True))
    steps.append({"text": re.findall(r"\S+\s*|\s+", answer) or [""]})
    if any(not isinstance(block, TextBlock) for block in content):
        steps.append({"message": tuple(content)})
    words, answered = len(text.split()), len(answer.split())
    usage = {"input_tokens": words, "output_tokens": answered, "model_calls": 2 if calls else 1}
    steps.append({"usage": usage})
    wants_structure = (turn.output_schema_json or options.output_schema_json) is not None
    steps.append({"end": "end_turn", "structured_output": _parsed(text) if wants_structure else None})
    return read_steps(steps)


def _callable_names(options: ConversationOptions, turn: TurnOptions) -> set[str]:
    if turn.tool_mode == ToolMode.NONE:
        return set()
    return {tool.name for tool in options.tools if turn.tool_names is None or tool.name in turn.tool_names}


def _calls(text: str, names: set[str]) -> list[ScriptedCall]:
    found = [_CALL.fullmatch(line.strip()) for line in text.splitlines()]
    return [
        ScriptedCall(name=call[1], arguments_json=call[2] or "{}")
        for call in found
        if call and call[1] in names and isinstance(_parsed(call[2] or "{}"), dict)
    ]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
