"""The body of `POST /v1/messages` as it comes, checked as far as its outline; https://docs.claude.com/en/api/messages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from harness.contract.value import JsonValue, Value


class WireMessage(Value):
    """One message; newer clients put words of the system between those of the user and the assistant."""

    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, JsonValue]]


class WireTool(Value):
    """A tool; without `type` (or with `custom`) it is the client's own."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, JsonValue] | None = None
    defer_loading: bool = False


class WireToolChoice(Value):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class WireThinking(Value):
    type: str
    budget_tokens: int | None = None
    display: str | None = None


class WireFormat(Value):
    type: str
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None


class WireThread(Value):
    """A beta of the API: `continue` brings only what is new since that message."""

    type: Literal["create", "continue"]
    previous_message_id: str | None = None


class WireOutputConfig(Value):
    effort: str | None = None
    format: WireFormat | None = None


class MessagesBody(Value):
    """Members that are not named here are hints that reach nobody."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: Annotated[list[WireMessage], Field(min_length=1)]
    system: str | list[dict[str, JsonValue]] | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    tools: list[WireTool] = []
    tool_choice: WireToolChoice | None = None
    stream: bool = False
    thinking: WireThinking | None = None
    output_config: WireOutputConfig | None = None
    thread: WireThread | None = None
    temperature: float | None = None
    stop_sequences: list[str] = []
    mcp_servers: list[JsonValue] = []
    container: JsonValue = None
