"""What the caller gives the CLI to begin with, in its words: the user's message, the start of a conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bridge_mcp.protocol import McpServer
from connectors._json import JsonObject
from connectors.claude.argv import SERVER_NAME
from harness.contract.content import ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.contract.options import SystemPromptMode
from harness.errors import ContentNotSupported

DOCUMENT_TYPES = ("application/pdf", "text/plain")


def system_prompt_fields(text: str | None, mode: SystemPromptMode) -> JsonObject:
    """Without a prompt of the caller the model gets an empty one; with mode `append` the CLI's own stays."""
    if mode == SystemPromptMode.REPLACE:
        return {"systemPrompt": [text or ""]}
    return {} if text is None else {"appendSystemPrompt": text}


def tunnel_fields(server: McpServer) -> JsonObject:
    """Our tools, through the control protocol. With a manifest the CLI needs no handshake; older ones ignore it."""
    manifest: JsonObject = {
        "initializeResult": server.initialize_result(),
        "toolsListResult": server.tools_list_result(),
    }
    return {"sdkMcpServers": [SERVER_NAME], "sdkMcpServerManifests": {SERVER_NAME: manifest}}


def user_message(content: Sequence[ContentBlock], message_uuid: str) -> JsonObject:
    """The message as the caller wrote it.

    Raises:
        ContentNotSupported: a kind of block that cannot be carried.
    """
    blocks = [_block(block) for block in content]
    is_plain = len(blocks) == 1 and blocks[0]["type"] == "text"
    return {
        "type": "user",
        "message": {"role": "user", "content": blocks[0]["text"] if is_plain else [*blocks]},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": message_uuid,
        # the text is the caller's: `@file` and `/command` in it mean nothing
        "client_composed": True,
    }


def _block(block: ContentBlock) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            source: JsonObject = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "image", "source": source}
        case ResourceBlock(media_type="application/pdf") if block.data is not None:
            source = {"type": "base64", "media_type": "application/pdf", "data": block.data}
            return {"type": "document", "source": source, "title": block.uri}
        case ResourceBlock(media_type="text/plain") if block.text is not None:
            source = {"type": "text", "media_type": "text/plain", "data": block.text}
            return {"type": "document", "source": source, "title": block.uri}
        case _:
            raise ContentNotSupported(f"connector 'claude' cannot carry a block of type '{block.type}' in a message")
