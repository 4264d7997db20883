"""A result of the declared length reaches the model whole; a longer one is refused and the call stays open."""

from __future__ import annotations

import hashlib

from harness.errors import ContentNotSupported
from harness.testing.checks import Divergence, holds, only, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result

WITHOUT_LIMIT = 200_000
LINE = "0123456789abcde\n"


def marked(length: int) -> str:
    """A text that ends with its own digest, so that no cut goes unseen."""
    body = (LINE * (length // len(LINE) + 1))[: length - 64]
    return body + hashlib.sha256(body.encode()).hexdigest()


async def run(stage: Stage) -> None:
    limit = stage.capabilities.max_result_chars
    longest = marked(limit or WITHOUT_LIMIT)
    talk = await stage.begin()
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    if limit is not None:
        try:
            await talk.answer(turn_id, result(request, longest + "x"))
        except ContentNotSupported:
            same("a refused answer leaves the call open", len(await talk.pending(turn_id)), 1)
        else:
            raise Divergence(f"a result of {limit + 1} characters was taken; {limit} are declared")
    await talk.answer(turn_id, result(request, longest))
    same("the text", (await talk.finished(turn_id)).text, "Read.")
    if stage.model is not None:
        [past] = stage.model.requests[-1].past_calls
        holds("the model read the result to its last character", past.result == longest, past.result)


SCENARIO = Scenario(
    name="longest-result",
    requirements=("R-L7", "R-B4"),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "Read."}]],
    run=run,
)
