"""MCP tools and results in the contract's words (pure)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
from harness.contract.tools import ToolDescriptor
from harness.orchestrator.function_results import json_text
from harness.orchestrator.tool_names import tool_name
from harness.orchestrator.tool_provider import ToolOutcome, without_surrogates

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool
    from mcp_types import ContentBlock as McpBlock


def descriptor_of(tool: Tool, prefix: str = "") -> ToolDescriptor:
    """Schemas pass through as they came."""
    hints = tool.annotations
    return ToolDescriptor(
        name=tool_name(tool.name, prefix),
        description=tool.description or tool.title or (hints.title if hints else None) or "",
        input_schema_json=json_text(tool.input_schema),
        output_schema_json=None if tool.output_schema is None else json_text(tool.output_schema),
        read_only=hints.read_only_hint if hints else None,
        destructive=hints.destructive_hint if hints else None,
        idempotent=hints.idempotent_hint if hints else None,
        open_world=hints.open_world_hint if hints else None,
    )


def outcome_of(result: CallToolResult) -> ToolOutcome:
    structured = result.structured_content
    return ToolOutcome(
        [_block(block) for block in result.content],
        is_error=bool(result.is_error),
        structured_content_json=None if structured is None else json_text(structured),
    )


def _block(block: McpBlock) -> ContentBlock:
    match block.type:
        case "text":
            return TextBlock(text=without_surrogates(block.text))
        case "image":
            return ImageBlock(data=block.data, media_type=block.mime_type)
        case "audio":
            return AudioBlock(data=block.data, media_type=block.mime_type)
        case "resource_link":
            return ResourceLinkBlock(
                uri=str(block.uri),
                name=block.name,
                title=block.title,
                description=block.description,
                media_type=block.mime_type,
            )
        case "resource":
            inside = block.resource
            return ResourceBlock(
                uri=str(inside.uri),
                media_type=inside.mime_type,
                text=getattr(inside, "text", None),
                data=getattr(inside, "blob", None),
            )
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            # a block of a newer protocol: better shown as JSON than lost
            return TextBlock(text=json.dumps(_dumped(block)))


def _dumped(block: Any) -> Any:
    return block.model_dump(mode="json", by_alias=True)
