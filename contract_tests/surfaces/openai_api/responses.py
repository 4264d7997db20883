"""The Responses API of the `openai` package before a server of ours, and a strict eye on its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

import openai
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from contract_tests.surfaces.openai_api.chat import Place
from harness.surfaces.compatible.headers import CONVERSATION, IGNORED

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CLOCK: Any = {"type": "function", "name": "clock"}
EVENTS: dict[str, type[BaseModel]] = {
    get_args(one.model_fields["type"].annotation)[0]: one for one in get_args(get_args(ResponseStreamEvent)[0])
}
"""The package's own types, by the event that they describe."""


@dataclass
class Talker:
    """One client's view of a conversation: the items it keeps, or the id of the last response."""

    client: openai.AsyncOpenAI
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    by_id: bool = False
    """Whether only what is new is sent, with `previous_response_id`."""
    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    last: str | None = None
    conversation: str | None = None
    """What the last answer named."""
    ignored: str | None = None

    async def say(self, content: Any, **options: Any) -> Response:
        return await self.send({"role": "user", "content": content}, **options)

    async def answer(self, results: dict[str, Any], **options: Any) -> Response:
        return await self.send(*outputs(results), **options)

    async def send(self, *new: dict[str, Any], **options: Any) -> Response:
        """The response; its items are kept as the client would keep them."""
        arguments = {"model": "fake", "tools": [WEATHER], **self.options, **options}
        chained = {"previous_response_id": self.last, "input": new}
        given = chained if self.by_id and self.last is not None else {"input": [*self.items, *new]}
        raw = await self.client.responses.with_raw_response.create(**{**given, **arguments})
        self.conversation, self.ignored = raw.headers[CONVERSATION], raw.headers.get(IGNORED)
        parsed: Any = raw.parse()
        response: Response = await collected(parsed) if arguments.get("stream") else parsed
        self.items += [*new, *kept(response)]
        self.last = response.id
        return response


def talker(place: Place, token: int = 0, *, by_id: bool = False, **options: Any) -> Talker:
    return Talker(place.client(token), options, by_id)


async def collected(stream: Any) -> Response:
    """What the stream ends with; every event of it is as the package says."""
    events = [event async for event in stream]
    for number, event in enumerate(events):
        assert strictly(event.to_dict()).sequence_number == number
    return events[-1].response


def strictly(event: dict[str, Any]) -> Any:
    """The event as the package's type, without a member that this does not know."""
    read = EVENTS[event["type"]].model_validate(event, strict=True)
    assert [*unknown_members(read)] == []
    return read


def unknown_members(value: Any) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in type(value).model_fields:
            yield from unknown_members(getattr(value, name))
    elif isinstance(value, list):
        for one in value:
            yield from unknown_members(one)


def kept(response: Response) -> list[dict[str, Any]]:
    return [item.to_dict() for item in response.output]


def outputs(results: dict[str, Any]) -> Any:
    return [{"type": "function_call_output", "call_id": one, "output": output} for one, output in results.items()]


def calls_of(response: Response) -> list[tuple[str, str, str]]:
    return [(one.call_id, one.name, one.arguments) for one in response.output if one.type == "function_call"]
