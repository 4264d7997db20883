"""The body of `POST responses`, as far as anything is read from it (pure)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from harness.contract.value import JsonValue
from harness.surfaces.compatible.refusals import refused, unsupported
from harness.surfaces.openai.chat_body import InputAudio, unreadable

JsonObject: TypeAlias = dict[str, JsonValue]


class _Part(BaseModel):
    """Unknown members are what a newer client says besides."""

    model_config = ConfigDict(extra="allow", frozen=True)


class InputText(_Part):
    type: Literal["input_text", "output_text", "text"]
    text: str


class Refusal(_Part):
    type: Literal["refusal"]
    refusal: str


class InputImage(_Part):
    type: Literal["input_image"]
    image_url: str | None = None
    file_id: str | None = None


class InputFile(_Part):
    type: Literal["input_file"]
    file_data: str | None = None
    filename: str | None = None


class InputSound(_Part):
    type: Literal["input_audio"]
    input_audio: InputAudio


Part: TypeAlias = Annotated[InputText | Refusal | InputImage | InputFile | InputSound, Field(discriminator="type")]


def _parts(content: object) -> object:
    """A text is a single part."""
    if content is None:
        return []
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


Content: TypeAlias = Annotated[list[Part], BeforeValidator(_parts)]


class MessageItem(_Part):
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class FunctionCallItem(_Part):
    call_id: str
    name: str
    namespace: str | None = None
    arguments: str = "{}"


class FunctionCallOutputItem(_Part):
    call_id: str
    output: Content


class ReasoningItem(_Part):
    """What the model thought before: nothing of it is passed on."""


def _kind(item: object) -> str:
    return str(cast(dict[str, object], item).get("type") or "message") if isinstance(item, dict) else "message"


InputItem: TypeAlias = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[FunctionCallOutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]
_ITEMS = ("message", "function_call", "function_call_output", "reasoning")


def _items(given: object) -> object:
    """A text is what the user says."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class FunctionTool(_Part):
    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Namespace(_Part):
    """Functions under a common name, which their calls carry beside their own."""

    type: Literal["namespace"]
    name: str
    tools: list[FunctionTool]


Tool: TypeAlias = Annotated[FunctionTool | Namespace, Field(discriminator="type")]


class NamedFunction(_Part):
    type: Literal["function"] = "function"
    name: str
    namespace: str | None = None


class AllowedTools(_Part):
    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[NamedFunction]


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | AllowedTools | NamedFunction


class TextFormat(_Part):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = Field(alias="schema", default=None)


class TextConfig(_Part):
    format: TextFormat | None = None


class Reasoning(_Part):
    effort: str | None = None


class ResponsesBody(_Part):
    """Members that are not named here are hints, which are ignored by name, or refused (`responses_request.py`)."""

    model: str
    input: Annotated[list[InputItem], BeforeValidator(_items)]
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    metadata: dict[str, str] | None = None
    stream: bool | None = None


def read_responses_body(body: JsonObject) -> ResponsesBody:
    """Raises:
    InvalidArgument: a member that cannot be read, or that only OpenAI's own service knows; names it.
    """
    for place, item in _objects(body.get("input"), "input"):
        _check_item(place, item)
    for place, tool in _objects(body.get("tools"), "tools"):
        _check_tool(place, tool)
        for inner_place, inner in _objects(tool.get("tools"), f"{place}.tools"):
            _check_tool(inner_place, inner)
    if isinstance(choice := body.get("tool_choice"), dict):
        kind = cast(JsonObject, choice).get("type")
        if kind not in ("function", "allowed_tools"):
            raise unsupported("tool_choice", f"only OpenAI's own service knows '{kind}'")
    try:
        return ResponsesBody.model_validate(body)
    except ValidationError as error:
        raise unreadable(error) from None


def _objects(value: JsonValue, place: str) -> list[tuple[str, JsonObject]]:
    """The objects of a list, with their places."""
    listed = cast(list[JsonValue], value) if isinstance(value, list) else []
    return [(f"{place}.{number}", cast(JsonObject, one)) for number, one in enumerate(listed) if isinstance(one, dict)]


def _check_item(place: str, item: JsonObject) -> None:
    kind = item.get("type")
    if kind == "item_reference" or (kind is None and "id" in item and "role" not in item):
        raise refused(
            f"'{place}' refers to an item, and this server keeps none: send the item itself, or what is new with "
            "'previous_response_id'",
            reason="item_not_found",
            param=place,
        )
    if kind is not None and kind not in _ITEMS:
        raise unsupported(f"{place}.type", f"only OpenAI's own service knows '{kind}'")


def _check_tool(place: str, tool: JsonObject) -> None:
    kind = tool.get("type")
    if kind in ("function", "namespace"):
        return
    why = (
        "an agent calls tools with arguments by a schema: offer it as a 'function'"
        if kind == "custom"
        else f"only OpenAI's own service runs '{kind}': offer a 'function' of yours, or let the agent use its own "
        "tools by the connector's options"
    )
    raise unsupported(f"{place}.type", why)
