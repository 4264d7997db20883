"""Content of chat messages as content blocks (pure). Nothing is fetched: what only has an address is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.surfaces.compatible.refusals import refused
from harness.surfaces.openai.chat_body import (
    AudioContent,
    Content,
    ContentPart,
    File,
    FileContent,
    ImageContent,
    RefusalContent,
    TextContent,
)

_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def blocks_of(content: Content, where: str) -> list[ContentBlock]:
    """A text, or its parts; empty texts say nothing and are left out.

    Raises:
        InvalidArgument: a part that cannot be carried, named by its place.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    parts: Sequence[ContentPart] = content
    blocks = [_block(part, f"{where}.{number}") for number, part in enumerate(parts)]
    return [block for block in blocks if not (isinstance(block, TextBlock) and not block.text)]


def _block(part: ContentPart, where: str) -> ContentBlock:
    match part:
        case TextContent(text=text) | RefusalContent(refusal=text):
            return TextBlock(text=text)
        case ImageContent(image_url=image):
            media_type, data = of_data_url(image.url, f"{where}.image_url.url")
            return ImageBlock(data=data, media_type=media_type)
        case AudioContent(input_audio=audio):
            return AudioBlock(data=audio.data, media_type=audio_type(audio.format))
        case FileContent(file=file):
            return _file(file, f"{where}.file")
    assert_never(part)


def audio_type(name: str) -> str:
    """The media type of a format as this API names it."""
    return _AUDIO_TYPES.get(name, f"audio/{name}")


def _file(file: File, where: str) -> ResourceBlock:
    if file.file_data is None:
        raise refused(f"'{where}' must have 'file_data': this server keeps no files", param=where)
    media_type, data = of_data_url(file.file_data, f"{where}.file_data")
    return ResourceBlock(uri=f"file:{file.filename or 'file'}", media_type=media_type, data=data)


def of_data_url(url: str, where: str) -> tuple[str, str]:
    """Media type and base64 data.

    Raises:
        InvalidArgument: another kind of address; nothing is fetched from here.
    """
    head, comma, data = url.partition(",")
    scheme, _, kind = head.partition(":")
    media_type, *parameters = kind.split(";")
    if scheme.lower() == "data" and comma and "base64" in parameters and media_type:
        return media_type, data
    if scheme.lower() == "data":
        raise refused(f"'{where}' must be 'data:<media type>;base64,<data>'", param=where)
    shown = f"{scheme}:" if ":" in url else "no"
    raise refused(
        f"'{where}' has a '{shown}' address, and this server fetches nothing: send the data itself, as "
        "'data:<media type>;base64,<data>'",
        reason="unsupported_image_url",
        param=where,
    )
