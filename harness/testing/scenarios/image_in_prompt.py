"""An image in a message reaches the model, or is refused before anything is sent."""

from __future__ import annotations

from harness.contract.content import ImageBlock, TextBlock
from harness.testing.checks import holds, same
from harness.testing.scenario import IMAGES_IN_PROMPT, Scenario, Stage

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say([TextBlock(text="What is this?"), ImageBlock(data=PIXEL, media_type="image/png")])
    same("the text", turn.text, "A dot.")
    if stage.model is not None:
        holds("the model got the image", PIXEL in stage.model.requests[-1].body_text)


SCENARIO = Scenario(
    name="image-in-prompt",
    requirements=("R-L6",),
    script=[[{"text": "A dot."}]],
    run=run,
    needs=(IMAGES_IN_PROMPT,),
)
