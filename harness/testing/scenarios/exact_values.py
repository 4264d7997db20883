"""Numbers, keys and texts that are easily spoilt pass both ways as they are."""

from __future__ import annotations

import json

from harness.testing.checks import only, same
from harness.testing.scenario import Scenario, Stage
from harness.testing.talk import result

ARGUMENTS = (
    '{"price":1.10,"big":9007199254740993,"":"empty key","deep":{"nothing":null,"list":[null,[]]},'
    '"face":"\U0001f600 e\\u0301","line":"a\\u2028b","half":"\\ud83d"}'
)
TEXT = "1.10 \U0001f600 a\u2028b\u0085c \\u0041 9007199254740993"


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, TEXT))
    request = only("requests", turn.requests)
    found = json.loads(request.arguments_json or "{}", parse_float=str)
    wanted = json.loads(ARGUMENTS, parse_float=str)
    for name, value in wanted.items():
        if name == "price":  # a peer may write the number anew, never change it
            same("the number 1.10", float(found.get(name, "nan")), 1.1)
        else:
            same(f"the argument '{name}'", found.get(name), value)
    same("the keys in their order", list(found), list(wanted))
    same("the result as the model read it", turn.text, TEXT)


SCENARIO = Scenario(
    name="exact-values",
    requirements=("R-J1", "R-J3", "conformance:exact"),
    script=[
        [
            {"calls": [{"name": "save", "id": "call_1", "arguments_json": ARGUMENTS}]},
            {"text": "{{results.call_1}}"},
        ]
    ],
    run=run,
)
