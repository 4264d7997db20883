"""A tool without arguments, one with a nested `$ref` schema and one with a name of 64 characters all work."""

from __future__ import annotations

import json

from harness.contract.tools import ToolDescriptor
from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result

LONG_NAME = "a_name_of_sixty_four_characters_" * 2
NESTED = json.dumps(
    {
        "$defs": {
            "point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "line": {"type": "object", "properties": {"from": {"$ref": "#/$defs/point"}}, "required": ["from"]},
        },
        "type": "object",
        "properties": {"line": {"$ref": "#/$defs/line"}},
        "required": ["line"],
    }
)
TOOLS = (
    ToolDescriptor(name="ping"),
    ToolDescriptor(name="draw", input_schema_json=NESTED),
    ToolDescriptor(name=LONG_NAME, description="Has a long name."),
)


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, f"<{request.call_id}>"))
    same("the tools by the host's names", [one.tool_name for one in turn.requests], ["ping", "draw", LONG_NAME])
    arguments = [json.loads(one.arguments_json or "null") for one in turn.requests]
    same("their arguments", arguments, [{}, {"line": {"from": {"x": 1}}}, {}])
    same("each result belongs to its call", turn.text, "".join(f"<{one.call_id}>" for one in turn.requests))
    if stage.model is not None:
        body = stage.model.requests[0].body_text
        same("the number of tools the model sees", len(stage.model.requests[0].tools), 3)
        holds("the model sees the nested schema", "#/$defs/point" in body)


SCENARIO = Scenario(
    name="tool-shapes",
    requirements=("R-I1", "R-I4", "R-I5"),
    script=[
        [
            {"calls": [call("ping", "call_1")]},
            {"calls": [{"name": "draw", "id": "call_2", "arguments": {"line": {"from": {"x": 1}}}}]},
            {"calls": [call(LONG_NAME, "call_3")]},
            {"text": "{{results.call_1}}{{results.call_2}}{{results.call_3}}"},
        ]
    ],
    tools=TOOLS,
    run=run,
)
