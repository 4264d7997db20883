"""What a scripted model received: values for tests, lines for the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import anyio
from pydantic import JsonValue

from harness.scripted_model.connection import HttpRequest
from harness.scripted_model.dialect import ModelRequest, PastCall

Ending: TypeAlias = Literal["answered", "dropped", "client_left", "server_closed"]

_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "proxy-authorization", "cookie")


@dataclass(eq=False)
class ReceivedRequest:
    """One HTTP request and what became of it.

    `entry` is the number (from 1) of the script's entry that answers it; None for a side request, and for a model
    call that the script does not fit.
    """

    at_ms: int
    method: str
    path: str
    headers: Mapping[str, str]
    body_text: str
    body: Mapping[str, JsonValue] | None
    """The parsed body; None when it is no JSON object."""
    model_request: ModelRequest = field(default_factory=ModelRequest)
    is_model_call: bool = False
    entry: int | None = None
    ending: Ending | None = None
    _ended: anyio.Event = field(default_factory=anyio.Event, repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools on offer, under the peer's names."""
        return self.model_request.tools

    @property
    def past_calls(self) -> tuple[PastCall, ...]:
        """The tool calls in the history with the results that the model received."""
        return self.model_request.past_calls

    async def wait_ended(self) -> Ending:
        """Waits until nothing more is sent; says whether the answer was complete, was cut, or the client left."""
        await self._ended.wait()
        return self.ending or "server_closed"

    def end(self, ending: Ending) -> None:
        self.ending = ending
        self._ended.set()

    def log_line(self) -> str:
        """The request as one line of JSON; the body is the text that came, so that numbers keep theirs."""
        head = {
            "at": self.at_ms,
            "method": self.method,
            "path": self.path,
            "entry": self.entry,
            "headers": self.headers,
        }
        # JSON has raw line breaks only between its tokens, never within a string.
        one_line = self.body_text.replace("\r", " ").replace("\n", " ")
        body = one_line if self.body is not None else json.dumps(self.body_text or None)
        return f'{json.dumps(head)[:-1]}, "body": {body}}}'


def received(request: HttpRequest, *, at_ms: int) -> ReceivedRequest:
    """The request as a value, its credentials replaced."""
    text = request.body.decode("utf-8", "replace")
    return ReceivedRequest(
        at_ms=at_ms,
        method=request.method,
        path=request.path,
        headers={name: "<key>" if name in _CREDENTIALS else value for name, value in request.headers.items()},
        body_text=text,
        body=_json_object(text),
    )


def _json_object(text: str) -> dict[str, JsonValue] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else None
