"""The host's answer as the result that the history keeps and the model reads (pure)."""

from __future__ import annotations

import json

from harness.contract.content import ContentBlock, TextBlock
from harness.contract.requests import HostResponse
from harness.model_loop.history import Result


def result_of(response: HostResponse) -> Result:
    """Content as it is; a structured result is added as JSON text unless the content says the same already."""
    content: list[ContentBlock] = list(response.content)
    structured = response.structured_content_json
    if structured is not None and not any(_says(block, structured) for block in content):
        content.append(TextBlock(text=structured))
    return Result(tuple(content), response.is_error)


def _says(block: ContentBlock, structured: str) -> bool:
    if not isinstance(block, TextBlock):
        return False
    try:
        return json.loads(block.text) == json.loads(structured)
    except (ValueError, RecursionError):
        return False
