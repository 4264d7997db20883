"""Input items as the contract's history (pure). Nothing is fetched: what only has an address is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, TextBlock, text_of
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.tools import ToolCall, ToolResult
from harness.surfaces.compatible.refusals import refused
from harness.surfaces.openai.chat_content import audio_type, of_data_url
from harness.surfaces.openai.responses_body import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputFile,
    InputImage,
    InputItem,
    InputSound,
    InputText,
    MessageItem,
    Part,
    ReasoningItem,
    Refusal,
)
from harness.surfaces.openai.responses_tools import inner_tool_name

_OF_THE_SYSTEM = ("system", "developer")


def prompt_and_history(items: Sequence[InputItem], *, goes_on: bool) -> tuple[list[str], tuple[HistoryMessage, ...]]:
    """What the system says at the very beginning, and everything after it.

    In what only continues a conversation (`goes_on`) nothing is a beginning: it is said where it stands.
    """
    first = 0 if goes_on else next((n for n, item in enumerate(items) if not _is_of_the_system(item)), len(items))
    prompts = [
        text_of(_blocks(item.content, f"input.{number}.content"))
        for number, item in enumerate(items[:first])
        if isinstance(item, MessageItem)
    ]
    said = (one for number, item in enumerate(items) if number >= first for one in _messages(item, f"input.{number}"))
    return [prompt for prompt in prompts if prompt], tuple(said)


def _is_of_the_system(item: InputItem) -> bool:
    return isinstance(item, MessageItem) and item.role in _OF_THE_SYSTEM


def _messages(item: InputItem, place: str) -> Iterator[HistoryMessage]:
    match item:
        case MessageItem(role=role, content=content):
            by = HistoryRole.ASSISTANT if role == "assistant" else HistoryRole.USER
            yield HistoryMessage(role=by, content=_blocks(content, f"{place}.content"))
        case FunctionCallItem():
            name = inner_tool_name(item.name, item.namespace)
            call = ToolCall(call_id=item.call_id, tool_name=name, arguments_json=item.arguments or "{}")
            yield HistoryMessage(role=HistoryRole.ASSISTANT, tool_calls=[call])
        case FunctionCallOutputItem(call_id=call_id, output=output):
            result = ToolResult(call_id=call_id, content=_blocks(output, f"{place}.output"))
            yield HistoryMessage(role=HistoryRole.USER, tool_results=[result])
        case ReasoningItem():
            return
        case _:
            assert_never(item)


def _blocks(parts: Sequence[Part], place: str) -> list[ContentBlock]:
    """Empty texts say nothing and are left out."""
    blocks = [_block(part, f"{place}.{number}") for number, part in enumerate(parts)]
    return [block for block in blocks if not (isinstance(block, TextBlock) and not block.text)]


def _block(part: Part, place: str) -> ContentBlock:
    match part:
        case InputText(text=text) | Refusal(refusal=text):
            return TextBlock(text=text)
        case InputImage(image_url=url):
            if url is None:
                raise refused(f"'{place}' must have 'image_url': this server keeps no files", param=place)
            media_type, data = of_data_url(url, f"{place}.image_url")
            return ImageBlock(data=data, media_type=media_type)
        case InputSound(input_audio=audio):
            return AudioBlock(data=audio.data, media_type=audio_type(audio.format))
        case InputFile(file_data=data_url, filename=filename):
            if data_url is None:
                raise refused(f"'{place}' must have 'file_data': this server keeps and fetches no files", param=place)
            media_type, data = of_data_url(data_url, f"{place}.file_data")
            return ResourceBlock(uri=f"file:{filename or 'file'}", media_type=media_type, data=data)
    assert_never(part)
