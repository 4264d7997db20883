"""What a wire dialect brings to the scripted model. One file per dialect; a new one is listed in `server.py`.

Pure: bytes and JSON in, bytes out. Who waits, counts entries and cuts connections is `server.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from harness.scripted_model.script import ScriptedError, ScriptedUsage


@dataclass(frozen=True)
class PastCall:
    """A tool call in a request's history, under the peer's name; `result` is null while none came back."""

    call_id: str
    name: str
    result: str | None = None
    """The text the model received: all text blocks, joined."""
    is_error: bool = False
    had_words: bool = False
    """Whether the peer had put words of its own around the result, which were taken off."""


@dataclass(frozen=True)
class ModelRequest:
    """What a request for an answer says, in neutral words."""

    stream: bool = False
    tools: tuple[str, ...] = ()
    """The peer's names of the tools on offer."""
    past_calls: tuple[PastCall, ...] = ()


@dataclass(frozen=True)
class ModelCall:
    """A tool call about to be sent: `name` is the peer's, `arguments_json` goes out as it is."""

    call_id: str
    name: str
    arguments_json: str


@dataclass(frozen=True)
class ModelAnswer:
    """An entry of the script made ready for one request: ids given, names found, results quoted."""

    message_id: str
    thinking: tuple[str, ...]
    text: tuple[str, ...]
    calls: tuple[ModelCall, ...]
    stop: str | None
    usage: ScriptedUsage


@dataclass(frozen=True)
class Reply:
    """A whole HTTP answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Dialect(Protocol):
    """One vendor's wire."""

    call_id_prefix: str
    message_id_prefix: str
    stream_headers: Mapping[str, str]

    def speaks(self, path: str) -> bool:
        """Whether requests to this path (query included) are ours."""
        ...

    def lookup(self, path: str) -> Reply | None:
        """The answer to a GET of this path; None: there is nothing."""
        ...

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        """The answer to what is no model call of the peer's main loop and takes no entry; None: it is one."""
        ...

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        """The request in neutral words; what is missing or odd in it reads as absent."""
        ...

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        """The answer in one piece."""
        ...

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        """The answer in frames, each sent by itself, up to where `drop` and `hang` end."""
        ...

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        """The frames that follow `stream` in an answer that ends well."""
        ...

    def error(self, error: ScriptedError) -> Reply:
        """The provider's error."""
        ...
