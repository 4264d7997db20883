"""What a Python function returned, as content: text as it is, JSON values as compact JSON (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import to_jsonable_python

from harness.contract.content import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from harness.orchestrator.tool_provider import ToolOutcome, without_surrogates

BLOCKS = (TextBlock, ImageBlock, AudioBlock, ResourceBlock, ResourceLinkBlock, UnknownBlock)


def outcome_of(value: Any, *, is_structured: bool = False) -> ToolOutcome:
    """Content blocks pass through, also beside texts; a text stays one; anything else becomes JSON, `None` is `null`.

    A structured one is a JSON object, given as text and as structured content.

    Raises:
        ValueError, TypeError: JSON cannot carry the value.
    """
    if isinstance(value, ToolOutcome):
        return value
    blocks = _content_blocks(value)
    if blocks is not None:
        return ToolOutcome(blocks)
    # str.__str__: the plain text of an enum member too
    text = without_surrogates(str.__str__(value)) if isinstance(value, str) else json_text(value)
    return ToolOutcome([TextBlock(text=text)], structured_content_json=text if is_structured else None)


def json_text(value: Any) -> str:
    """Compact JSON in ASCII, so that every string arrives exactly; models, dataclasses and dates as pydantic has them.

    Raises:
        ValueError, TypeError: JSON cannot carry the value (NaN, a cycle, a key that is no text, an unknown class).
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"), default=to_jsonable_python)


def _content_blocks(value: Any) -> list[ContentBlock] | None:
    if isinstance(value, BLOCKS):
        return [value]
    if isinstance(value, list | tuple) and value:
        members = cast(Sequence[Any], value)
        if any(isinstance(member, BLOCKS) for member in members) and all(
            isinstance(member, (*BLOCKS, str)) for member in members
        ):
            return [TextBlock(text=without_surrogates(m)) if isinstance(m, str) else m for m in members]
    return None
