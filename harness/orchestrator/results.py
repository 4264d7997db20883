"""Makes a tool's result fit what the connector can carry, visibly (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.orchestrator.tool_provider import ToolOutcome

HOST_RESULT_CHARS = 16_000_000
"""No tool fills the memory of everybody between here and the model."""


def fitted(outcome: ToolOutcome, capabilities: LlmCapabilities) -> ToolOutcome:
    """The same outcome where it fits; else with notes for images, and with the middle of long texts left out."""
    content = list(outcome.content)
    is_error = outcome.is_error
    if not capabilities.images_in_tool_results and any(isinstance(block, ImageBlock) for block in content):
        # a result that was nothing but images has nothing left to say
        is_error = is_error or all(isinstance(block, ImageBlock) for block in content)
        content = [_note(block) if isinstance(block, ImageBlock) else block for block in content]
    limit = min(capabilities.max_result_chars or HOST_RESULT_CHARS, HOST_RESULT_CHARS)
    structured = outcome.structured_content_json
    if structured is not None and len(structured) + _length(content) > limit:
        structured = None  # JSON cannot be cut; the content says the same
    content = _within(content, limit - len(structured or ""))
    return replace(outcome, content=content, is_error=is_error, structured_content_json=structured)


def cut_middle(text: str, limit: int) -> str:
    """At most `limit` characters: head and tail, and between them how much is missing."""
    if len(text) <= limit:
        return text
    marker = f"\n[... {len(text) - limit} of {len(text)} characters left out ...]\n"
    # the marker takes its place from what is kept, so the number grows by as much
    marker = f"\n[... {len(text) - limit + len(marker)} of {len(text)} characters left out ...]\n"
    kept = limit - len(marker)
    if kept <= 0:
        return text[:limit]
    tail = kept // 2
    return text[: kept - tail] + marker + text[len(text) - tail :]


def _within(content: Sequence[ContentBlock], limit: int) -> list[ContentBlock]:
    """Long texts give way to short ones: each gets at least an equal share of what is left."""
    texts = sorted((block for block in content if isinstance(block, TextBlock)), key=lambda block: len(block.text))
    if _length(content) <= limit:
        return list(content)
    cut: dict[int, TextBlock] = {}
    left = limit
    for position, block in enumerate(texts):
        share = left // (len(texts) - position)
        shorter = block if len(block.text) <= share else TextBlock(text=cut_middle(block.text, share))
        cut[id(block)] = shorter
        left -= len(shorter.text)
    return [cut.get(id(block), block) for block in content]


def _length(content: Sequence[ContentBlock]) -> int:
    return sum(len(block.text) for block in content if isinstance(block, TextBlock))


def _note(image: ImageBlock) -> TextBlock:
    size = len(image.data) * 3 // 4
    return TextBlock(
        text=f"[An image ({image.media_type}, about {size} bytes) is missing here: this connector cannot carry "
        "images in tool results.]"
    )
