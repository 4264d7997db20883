"""An image in a tool result reaches the model, or is refused and the call stays open."""

from __future__ import annotations

from harness.contract.content import ImageBlock, TextBlock
from harness.contract.requests import HostResponse
from harness.errors import HarnessError
from harness.testing.checks import holds, only, same
from harness.testing.scenario import IMAGES_IN_RESULTS, Scenario, Stage, call
from harness.testing.scenarios.image_in_prompt import PIXEL


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    image = ImageBlock(data=PIXEL, media_type="image/png")
    answer = HostResponse(request_id=request.request_id, content=[TextBlock(text="here"), image])
    try:
        await talk.answer(turn_id, answer)
    except HarnessError:
        same("a refused answer leaves the call open", len(await talk.pending(turn_id)), 1)
        raise
    same("the text", (await talk.finished(turn_id)).text, "A dot.")
    if stage.model is not None:
        holds("the model got the image", PIXEL in stage.model.requests[-1].body_text)


SCENARIO = Scenario(
    name="image-in-result",
    requirements=("R-L6",),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "A dot."}]],
    run=run,
    needs=(IMAGES_IN_RESULTS,),
)
