"""Server-sent events as bytes (pure): what the server writes and what the client reads of it.

https://html.spec.whatwg.org/multipage/server-sent-events.html, with data of one line: ours is JSON without line breaks.
"""

from __future__ import annotations

from dataclasses import dataclass

HEARTBEAT = b": heartbeat\n\n"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    event: str
    data: bytes
    id: str | None = None


def encode_event(event: str, data: bytes, *, event_id: str | None = None) -> bytes:
    """One event; the data must not hold a line break."""
    id_line = f"id: {event_id}\n" if event_id is not None else ""
    return b"".join((f"event: {event}\n{id_line}data: ".encode("ascii"), data, b"\n\n"))


class SseReader:
    """Takes bytes as they come, however they are cut; gives whole events. Comments and unknown fields are skipped.

    Lines end with LF or CRLF; a bare CR is not taken for a line's end, as nobody sends it.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._event = "message"
        self._id: str | None = None
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        self._rest += chunk
        events: list[ServerSentEvent] = []
        start = 0
        # a long line that arrives in many chunks is searched once, not once per chunk
        while (end := self._rest.find(b"\n", max(start, self._searched))) >= 0:
            event = self._take_line(bytes(self._rest[start:end]).removesuffix(b"\r"))
            if event is not None:
                events.append(event)
            start = end + 1
            self._searched = start
        del self._rest[:start]
        self._searched = len(self._rest)
        return events

    def _take_line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._take_event()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id":
                self._id = value.decode("utf-8", "replace")
            case b"data":
                self._data.append(value)
            case _:
                pass
        return None

    def _take_event(self) -> ServerSentEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], "message"
        return ServerSentEvent(event, b"\n".join(data), self._id) if data else None
