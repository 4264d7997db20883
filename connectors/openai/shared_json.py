"""What both APIs have in common on the wire (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connectors._json import JsonObject, number_in, object_in
from connectors._text import without_surrogates
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import Effort
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ContentNotSupported
from harness.model_loop import ToolOutcome

EFFORTS = {
    Effort.NONE: "none",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.EXTRA_HIGH: "xhigh",
}
ERROR_PREFIX = "Error: "
"""Neither API has a flag for a tool's error."""


def data_url(block: ImageBlock) -> str:
    return f"data:{block.media_type};base64,{block.data}"


def split_blocks(content: Sequence[ContentBlock]) -> tuple[str, list[ImageBlock]]:
    """All text, and the images."""
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


def whole(value: JsonValue) -> int | None:
    number = number_in(value)
    return int(number) if number is not None else None


def usage_of(usage: JsonValue, *, names: tuple[str, str, str, str]) -> UsageInfo | None:
    """`names`: input, its details, output, its details. What the server does not report stays null."""
    given = object_in(usage)
    if not given:
        return None
    input_name, input_details, output_name, output_details = names
    read, written = object_in(given.get(input_details)), object_in(given.get(output_details))
    return UsageInfo(
        input_tokens=whole(given.get(input_name)),
        cached_input_tokens=whole(read.get("cached_tokens")),
        cache_write_tokens=whole(read.get("cache_write_tokens")),
        output_tokens=whole(given.get(output_name)),
        reasoning_tokens=whole(written.get("reasoning_tokens")),
        cost_usd=number_in(given.get("cost")),
    )


def json_schema(schema_json: str) -> JsonObject:
    """A structured answer as both APIs name it; not strict, as strict schemas must require every property."""
    return {"name": "answer", "schema": json.loads(schema_json), "strict": False}
