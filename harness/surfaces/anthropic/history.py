"""Messages and their blocks into the contract's history (pure).

What only the API itself could use is left out: `cache_control` wherever it stands, thinking and its signatures. So a
mark that a client moves from message to message changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.contract.content import ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.tools import ToolCall, ToolResult
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.surfaces.anthropic.body import WireMessage
from harness.surfaces.compatible.names import inner_name
from harness.surfaces.compatible.tips import merged

Block = Mapping[str, JsonValue]
_THOUGHTS = ("thinking", "redacted_thinking")
_BILLING = "x-anthropic-billing-header:"
"""Claude Code puts a block that starts so before its system prompt; it is no word to a model."""


def history_of(messages: Sequence[WireMessage]) -> tuple[HistoryMessage, ...]:
    """The messages with roles that alternate; words of the system belong to what the user says beside them.

    Raises:
        InvalidArgument: a block that cannot be carried, named by its place; or nothing new at the end.
    """
    if messages[-1].role == "assistant":
        raise InvalidArgument(
            "the last message is the assistant's: an agent cannot be made to go on with a given beginning; "
            "end with a message of the user"
        )
    read = [_read(message, f"messages.{number}.content") for number, message in enumerate(messages)]
    history = merged(one for one in read if one.content or one.tool_calls or one.tool_results)
    if not history or history[-1].role is HistoryRole.ASSISTANT:
        raise InvalidArgument("the last message is empty: say something or bring tool results")
    return tuple(history)


def system_text(system: str | Sequence[Block] | None) -> str | None:
    """The system prompt as one text; null where there is none."""
    if system is None or isinstance(system, str):
        return system or None
    return "\n\n".join(text for text in _texts(system, "system") if not text.startswith(_BILLING)) or None


def loaded_tools(messages: Iterable[WireMessage]) -> frozenset[str]:
    """Names of deferred tools that a result or the system has brought into sight."""
    names: set[JsonValue] = set()
    for message in messages:
        for block in _as_blocks(message.content):
            match block:
                case {"type": "tool_result", "content": [*parts]}:
                    names.update(_object_of(part).get("tool_name") for part in parts)
                case {"type": "tool_addition", "tool": {"name": name}}:
                    names.add(name)
                case _:
                    pass
    return frozenset(name for name in names if isinstance(name, str))


def _read(message: WireMessage, place: str) -> HistoryMessage:
    blocks: Sequence[Block] = _as_blocks(message.content)
    match message.role:
        case "user":
            results = [_result(block, at) for at, block in _placed(blocks, place) if block.get("type") == "tool_result"]
            others = [(at, block) for at, block in _placed(blocks, place) if block.get("type") != "tool_result"]
            content = [read for at, block in others if (read := _content(block, at)) is not None]
            return HistoryMessage(role=HistoryRole.USER, content=content, tool_results=results)
        case "assistant":
            return _assistant(blocks, place)
        case "system":
            texts = "\n\n".join(_said_by_system(blocks, place))
            reminder = [TextBlock(text=f"<system-reminder>\n{texts}\n</system-reminder>")] if texts else []
            return HistoryMessage(role=HistoryRole.USER, content=[*reminder])


def _assistant(blocks: Sequence[Block], place: str) -> HistoryMessage:
    content: list[ContentBlock] = []
    calls: list[ToolCall] = []
    for at, block in _placed(blocks, place):
        match block.get("type"):
            case "text":
                if text := _text(block, "text", at):
                    content.append(TextBlock(text=text))
            case "tool_use":
                arguments = json.dumps(block.get("input") or {}, separators=(",", ":"), ensure_ascii=False)
                name = inner_name(_text(block, "name", at))
                calls.append(ToolCall(call_id=_text(block, "id", at), tool_name=name, arguments_json=arguments))
            case kind if kind in _THOUGHTS:
                pass
            case kind:
                raise _cannot_carry(kind, at)
    return HistoryMessage(role=HistoryRole.ASSISTANT, content=content, tool_calls=calls)


def _result(block: Block, place: str) -> ToolResult:
    given = block.get("content")
    parts = _as_blocks(given) if isinstance(given, str) else _objects(given or [], f"{place}.content")
    content = [read for at, part in _placed(parts, f"{place}.content") if (read := _content(part, at)) is not None]
    is_error = block.get("is_error") is True
    return ToolResult(call_id=_text(block, "tool_use_id", place), content=content, is_error=is_error)


def _content(block: Block, place: str) -> ContentBlock | None:
    """Null for an empty text."""
    match block.get("type"):
        case "text":
            text = _text(block, "text", place)
            return TextBlock(text=text) if text else None
        case "image":
            media_type, data = _base64(block, place)
            return ImageBlock(data=data, media_type=media_type)
        case "document":
            return _document(block, place)
        case "tool_reference":
            # an agent that runs has its tools already
            name = _text(block, "tool_name", place)
            return TextBlock(text=f"The tool '{name}' was loaded: it can be called from the user's next message on.")
        case kind:
            raise _cannot_carry(kind, place)


def _document(block: Block, place: str) -> ResourceBlock:
    title = block.get("title")
    uri = f"document:{title if isinstance(title, str) and title else place}"
    source = _object(block, "source", place)
    if source.get("type") == "text":
        return ResourceBlock(uri=uri, media_type="text/plain", text=_text(source, "data", f"{place}.source"))
    media_type, data = _base64(block, place)
    return ResourceBlock(uri=uri, media_type=media_type, data=data)


def _base64(block: Block, place: str) -> tuple[str, str]:
    source = _object(block, "source", place)
    if source.get("type") != "base64":
        raise InvalidArgument(
            f"'{place}.source' of type '{source.get('type')}' is not fetched here: send the data as 'base64'"
        )
    at = f"{place}.source"
    return _text(source, "media_type", at), _text(source, "data", at)


def _texts(blocks: Sequence[Block], place: str) -> Iterator[str]:
    return (text for at, block in _placed(blocks, place) if (text := _said(block, at)))


def _said(block: Block, place: str) -> str:
    if block.get("type") != "text":
        raise _cannot_carry(block.get("type"), place)
    return _text(block, "text", place)


def _said_by_system(blocks: Sequence[Block], place: str) -> Iterator[str]:
    """Its words, and which tools come and go, in words."""
    for at, block in _placed(blocks, place):
        match block:
            case {"type": "tool_addition", "tool": {"name": str(name)}}:
                yield f"The tool '{name}' can be called now."
            case {"type": "tool_removal", "tool": {"name": str(name)}}:
                yield f"The tool '{name}' must not be called any more."
            case _:
                if text := _said(block, at):
                    yield text


def _as_blocks(content: str | Sequence[Block]) -> Sequence[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _placed(blocks: Sequence[Block], place: str) -> Iterator[tuple[str, Block]]:
    return ((f"{place}.{number}", block) for number, block in enumerate(blocks))


def _text(block: Block, member: str, place: str) -> str:
    value = block.get(member)
    if not isinstance(value, str):
        raise InvalidArgument(f"'{place}.{member}' must be a text")
    return value


def _object(block: Block, member: str, place: str) -> Block:
    value = block.get(member)
    if not isinstance(value, dict):
        raise InvalidArgument(f"'{place}.{member}' must be an object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _object_of(value: JsonValue) -> Block:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _objects(value: JsonValue, place: str) -> list[Block]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidArgument(f"'{place}' must be a text or a list of blocks")
    return value  # pyright: ignore[reportUnknownVariableType]


def _cannot_carry(kind: JsonValue, place: str) -> InvalidArgument:
    return InvalidArgument(f"'{place}': a block of type '{kind}' cannot be carried to an agent; leave it out")
