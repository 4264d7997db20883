"""Content blocks: what messages and tool results are made of. Binary data is base64 with a media type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from harness.contract.value import JsonValue, Value


class TextBlock(Value):
    type: Literal["text"] = "text"
    text: str


class ImageBlock(Value):
    type: Literal["image"] = "image"
    data: str
    media_type: str


class AudioBlock(Value):
    type: Literal["audio"] = "audio"
    data: str
    media_type: str


class ResourceBlock(Value):
    """An embedded resource: text or base64 data."""

    type: Literal["resource"] = "resource"
    uri: str
    media_type: str | None = None
    text: str | None = None
    data: str | None = None


class ResourceLinkBlock(Value):
    type: Literal["resource_link"] = "resource_link"
    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    media_type: str | None = None


_KNOWN = frozenset({"text", "image", "audio", "resource", "resource_link"})


class UnknownBlock(Value):
    """A block of a newer contract; its raw fields are kept and written back."""

    model_config = ConfigDict(extra="allow")

    # in the schema too, or a block of a known type would fit two branches of the union
    type: Annotated[str, Field(json_schema_extra={"not": {"enum": [*sorted(_KNOWN)]}})]


def _block_tag(value: JsonValue) -> str:
    type_: object = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return type_ if isinstance(type_, str) and type_ in _KNOWN else "unknown"


ContentBlock: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[AudioBlock, Tag("audio")]
    | Annotated[ResourceBlock, Tag("resource")]
    | Annotated[ResourceLinkBlock, Tag("resource_link")]
    | Annotated[UnknownBlock, Tag("unknown")],
    Discriminator(_block_tag),
]


def text_of(content: Sequence[ContentBlock]) -> str:
    """The texts of the blocks, joined by line breaks; other blocks are left out."""
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def as_content(content: str | Sequence[ContentBlock]) -> list[ContentBlock]:
    """A plain text as one block; blocks as they are."""
    return [TextBlock(text=content)] if isinstance(content, str) else list(content)
