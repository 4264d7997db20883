"""What every bare model's wire has in common: our blocks as texts and images, results, arguments, figures. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from connectors._json import JsonObject, number_in
from connectors._text import without_surrogates
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.value import JsonValue
from harness.errors import ContentNotSupported
from harness.model_loop import ToolOutcome

ERROR_PREFIX = "Error: "
"""For wires without a flag for a tool's error."""
SHOWN_INVALID = 1000


def split_blocks(content: Sequence[ContentBlock]) -> tuple[str, list[ImageBlock]]:
    """All text, and the images.

    Raises:
        ContentNotSupported: a block that is neither; nothing was sent.
    """
    texts: list[str] = []
    images: list[ImageBlock] = []
    for block in content:
        if isinstance(block, TextBlock):
            texts.append(without_surrogates(block.text))
        elif isinstance(block, ImageBlock):
            images.append(block)
        else:
            raise ContentNotSupported(f"this connector cannot carry a block of type '{block.type}'")
    return "\n".join(texts), images


def result_text(outcome: ToolOutcome, text: str) -> str:
    return f"{ERROR_PREFIX}{text}" if outcome.is_error else text


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def arguments_object(arguments_json: str) -> JsonObject:
    """The arguments for wires that carry an object; what is none goes back as the text the model wrote."""
    try:
        value: object = json.loads(arguments_json)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return cast(JsonObject, value)
    return {"invalid_json": arguments_json[:SHOWN_INVALID]}


def whole_number(value: JsonValue) -> int | None:
    number = number_in(value)
    return int(number) if number is not None else None
