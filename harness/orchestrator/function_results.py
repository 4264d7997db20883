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

_BLOCKS = (TextBlock, ImageBlock, AudioBlock, ResourceBlock, ResourceLinkBlock, UnknownBlock)


def outcome_of(value: Any) -> ToolOutcome:
    """Content blocks pass through; a text stays one; anything else becomes JSON, and `None` is `null`.

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
    return ToolOutcome([TextBlock(text=text)])


def json_text(value: Any) -> str:
    """Compact JSON in ASCII, so that every string arrives exactly; models, dataclasses and dates as pydantic has them.

    Raises:
        ValueError, TypeError: JSON cannot carry the value (NaN, a cycle, a key that is no text, an unknown class).
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"), default=to_jsonable_python)


def _content_blocks(value: Any) -> list[ContentBlock] | None:
    if isinstance(value, _BLOCKS):
        return [value]
    if isinstance(value, list | tuple) and value:
        members = cast(Sequence[Any], value)
        if all(isinstance(member, _BLOCKS) for member in members):
            return list(members)
    return None
