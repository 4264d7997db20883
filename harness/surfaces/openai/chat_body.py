"""The body of `POST chat/completions`, as far as anything is read from it (pure)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.surfaces.compatible.refusals import refused


class _Part(BaseModel):
    """Unknown members are what a newer client says besides."""

    model_config = ConfigDict(extra="allow", frozen=True)


class ImageUrl(_Part):
    url: str


class InputAudio(_Part):
    data: str
    format: str


class File(_Part):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class TextContent(_Part):
    type: Literal["text"]
    text: str


class RefusalContent(_Part):
    type: Literal["refusal"]
    refusal: str


class ImageContent(_Part):
    type: Literal["image_url"]
    image_url: ImageUrl


class AudioContent(_Part):
    type: Literal["input_audio"]
    input_audio: InputAudio


class FileContent(_Part):
    type: Literal["file"]
    file: File


ContentPart: TypeAlias = Annotated[
    TextContent | RefusalContent | ImageContent | AudioContent | FileContent, Field(discriminator="type")
]
Content: TypeAlias = str | list[ContentPart] | None


class FunctionCall(_Part):
    name: str
    arguments: str | dict[str, Any] | None = None
    """Text, and from some clients the object itself."""


class ToolCallBody(_Part):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class SystemMessage(_Part):
    role: Literal["system", "developer"]
    content: Content


class UserMessage(_Part):
    role: Literal["user"]
    content: Content
    name: str | None = None


class AssistantMessage(_Part):
    role: Literal["assistant"]
    content: Content = None
    refusal: str | None = None
    tool_calls: list[ToolCallBody] | None = None


class ToolMessage(_Part):
    role: Literal["tool"]
    tool_call_id: str
    content: Content


ChatMessage: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class Function(_Part):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolBody(_Part):
    type: Literal["function"]
    function: Function


class NamedFunction(_Part):
    name: str


class NamedTool(_Part):
    type: Literal["function"] = "function"
    function: NamedFunction


class AllowedTools(_Part):
    mode: Literal["auto", "required"]
    tools: list[NamedTool]


class AllowedToolsChoice(_Part):
    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | AllowedToolsChoice | NamedTool


class JsonSchema(_Part):
    json_schema: dict[str, Any] = Field(alias="schema", default={})


class ResponseFormat(_Part):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(_Part):
    include_usage: bool = False


class ChatBody(_Part):
    """Members that are not named here are hints, which are ignored by name, or refused (`chat_request.py`)."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    tools: list[ToolBody] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None


def read_chat_body(body: dict[str, JsonValue]) -> ChatBody:
    """Raises:
    InvalidArgument: a member that cannot be read; names it.
    """
    try:
        return ChatBody.model_validate(body)
    except ValidationError as error:
        raise unreadable(error, body) from None


def unreadable(error: ValidationError, body: JsonValue = None) -> InvalidArgument:
    """Names the field that is wrong, as far down as it is understood; never its value, which may be anything."""
    errors = error.errors(include_url=False, include_input=False)
    places = [_place(one["loc"], body) for one in errors]
    # the first one of the deepest; without the body nobody knows which are deep
    number = 0 if body is None else max(range(len(errors)), key=lambda n: len(places[n]))
    where = ".".join(places[number])
    return refused(f"'{where}' cannot be used: {errors[number]['msg']}", reason="invalid_value", param=where)


def _place(location: tuple[str | int, ...], body: JsonValue) -> list[str]:
    """Where that is in the body: without the names of alternatives that a location has besides."""
    if body is None:
        return [str(part) for part in location]
    place: list[str] = []
    here: Any = body
    for number, part in enumerate(location, 1):
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            is_missing = number == len(location) and isinstance(cast(object, here), dict) and isinstance(part, str)
            if not is_missing:
                continue
        place.append(str(part))
    return place
