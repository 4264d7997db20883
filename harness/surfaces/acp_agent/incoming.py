"""A client's prompt and its MCP servers -> the contract's values (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast
from urllib.parse import unquote, urlsplit

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.contract.value import JsonValue, Label
from harness.errors import ContentNotSupported, InvalidArgument
from harness.orchestrator.mcp_config import McpServer
from harness.surfaces.acp_agent.params import Pair, ServerParams
from harness.wire.json_rpc import JsonObject


def content_of(prompt: Iterable[JsonObject], capabilities: LlmCapabilities) -> list[ContentBlock]:
    """The blocks of a prompt. Links, and files whose text comes along, become text: every agent has to take them.

    Raises:
        ContentNotSupported: a block that the connector cannot carry.
        InvalidArgument: a block that is none.
    """
    return [_block(block, number, capabilities) for number, block in enumerate(prompt, 1)]


def servers_of(servers: Iterable[ServerParams]) -> list[McpServer]:
    """The client gives them to the agent, with what is secret in them.

    Raises:
        InvalidArgument: one that is none, or over a transport that we do not have.
    """
    return [McpServer(_source(server)) for server in servers]


def _block(block: JsonObject, number: int, capabilities: LlmCapabilities) -> ContentBlock:
    where = f"block {number} of the prompt"
    kind = block.get("type")
    match kind:
        case "text":
            return TextBlock(text=_text(block, "text", where))
        case "image":
            return _image(_text(block, "data", where), _text(block, "mimeType", where), where, capabilities)
        case "audio":
            return AudioBlock(data=_text(block, "data", where), media_type=_text(block, "mimeType", where))
        case "resource_link":
            uri = _text(block, "uri", where)
            name = block.get("name")
            return TextBlock(text=f"[@{name if isinstance(name, str) and name else _name_in(uri)}]({uri})")
        case "resource":
            resource = block.get("resource")
            if isinstance(resource, dict):
                return _resource(cast(JsonObject, resource), where, capabilities)
            raise InvalidArgument(f"{where} has no object 'resource'")
        case _:
            raise InvalidArgument(f"{where} has the type '{kind}', which is not known here")


def _image(data: str, media_type: str, where: str, capabilities: LlmCapabilities) -> ImageBlock:
    if not capabilities.images_in_prompt:
        raise ContentNotSupported(f"{where} is an image, and this connector takes none in a prompt: leave it out")
    return ImageBlock(data=data, media_type=media_type)


def _resource(resource: JsonObject, where: str, capabilities: LlmCapabilities) -> ContentBlock:
    uri, media_type = _text(resource, "uri", where), resource.get("mimeType")
    text, data = resource.get("text"), resource.get("blob")
    told = media_type if isinstance(media_type, str) else None
    is_document = told in capabilities.documents_in_prompt
    if isinstance(text, str):
        if is_document:
            return ResourceBlock(uri=uri, media_type=told, text=text)
        return TextBlock(text=f'[@{_name_in(uri)}]({uri})\n<context ref="{uri}">\n{text}\n</context>')
    if not isinstance(data, str):
        raise InvalidArgument(f"{where} is a resource with neither 'text' nor 'blob'")
    if is_document:
        return ResourceBlock(uri=uri, media_type=told, data=data)
    if told is not None and told.startswith("image/"):
        return _image(data, told, where, capabilities)
    raise ContentNotSupported(f"{where} is a file of type '{told}', which this connector does not take in a prompt")


def _text(members: JsonObject, name: str, where: str) -> str:
    value: JsonValue = members.get(name)
    if not isinstance(value, str):
        raise InvalidArgument(f"{where} has no text '{name}'")
    return value


def _name_in(uri: str) -> str:
    return unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2] or uri


def _source(server: ServerParams) -> ToolSourceDescriptor:
    if server.type == "stdio" and server.command:
        return ToolSourceDescriptor(
            name=server.name,
            kind=ToolSourceKind.MCP_STDIO,
            command=server.command,
            args=server.args,
            env=_labels(server.env),
            share_secrets=True,
        )
    if server.type == "http" and server.url:
        return ToolSourceDescriptor(
            name=server.name,
            kind=ToolSourceKind.MCP_HTTP,
            url=server.url,
            headers=_labels(server.headers),
            share_secrets=True,
        )
    if server.type in ("stdio", "http"):
        missing = "command" if server.type == "stdio" else "url"
        raise InvalidArgument(f"the MCP server '{server.name}' has no '{missing}'")
    raise InvalidArgument(
        f"the MCP server '{server.name}' has the transport '{server.type}'; only 'stdio' and 'http' are supported"
    )


def _labels(pairs: Iterable[Pair]) -> list[Label]:
    return [Label(name=pair.name, value=pair.value) for pair in pairs]
