"""Plays a recorded provider over real sockets: what we send is matched by meaning, the answer comes chunk by chunk."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio

from harness.scripted_model.connection import Connection, HttpRequest
from harness.scripted_model.dialect import Reply
from harness.testing.peers.exchanges import as_bytes, keys_in, meaning_of, without_keys
from harness.testing.peers.heard import open_loopback
from harness.testing.peers.replay_cli import Difference, Names

_AHEAD = 6
"""So many of our requests may come in another order than recorded."""


@dataclass
class Exchange:
    """One request of ours, and how the peer answered it."""

    line: int
    """Of the file, from 1."""
    request: Any
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: list[str] = field(default_factory=list[str])
    ending: str = "left"


def exchanges_of(lines: Sequence[str]) -> list[Exchange]:
    """The exchanges of a recording, in the order of their requests."""
    found: dict[int, Exchange] = {}
    for number, line in enumerate(lines[1:], 2):
        record = json.loads(line)
        if record.get("from") == "host":
            found[record["exchange"]] = Exchange(number, json.loads(record["line"]))
            continue
        exchange = found[record["exchange"]]
        if "status" in record:
            exchange.status, exchange.headers = record["status"], record["headers"]
        elif "chunk" in record:
            exchange.chunks.append(record["chunk"])
        else:
            exchange.ending = record["end"]
    return list(found.values())


class HttpReplay:
    """Plays each exchange once; `difference` says where we first said something else, in one line."""

    def __init__(self, exchanges: Sequence[Exchange], directory: Path, cuts: Sequence[int] = ()) -> None:
        """`cuts` are the sizes, in turn, of the pieces in which the recorded bytes are sent; empty: as recorded."""
        self._open = list(exchanges)
        self._names = Names({"<directory>": str(directory)})
        self._cuts = cuts
        self.difference: str | None = None

    async def answer(self, connection: Connection, request: HttpRequest) -> bool:
        exchange = self._matching(request)
        if exchange is None:
            text = json.dumps({"error": {"type": "invalid_request_error", "message": self.difference}})
            await connection.send_reply(Reply(400, text.encode(), {"content-type": "application/json"}))
            return False
        if exchange.status:
            await connection.start_stream(exchange.headers, exchange.status)
        for piece in self._pieces([as_bytes(self._names.spoken(chunk)) for chunk in exchange.chunks]):
            await connection.send_chunk(piece)
        if exchange.ending == "left":
            await anyio.sleep_forever()  # until we go, as then
        if exchange.ending == "complete":
            await connection.end_stream()
        return exchange.ending == "complete"

    def missing(self) -> str | None:
        """What was recorded and never came."""
        if not self._open:
            return None
        first = self._open[0]
        told = f"'{first.request['method']} {first.request['path']}' of line {first.line}"
        return f"replay diverged: {len(self._open)} recorded request(s) never came, the first is {told}"

    def _matching(self, request: HttpRequest) -> Exchange | None:
        found = meaning_of(request)
        first: Difference | None = None
        for exchange in self._open[:_AHEAD]:
            try:
                bound = self._names.match(exchange.request, found)
            except Difference as difference:
                first = first or difference
                continue
            self._names.live.update(bound)
            self._open.remove(exchange)
            return exchange
        expected = f"line {self._open[0].line}" if self._open else "no more requests"
        shown = without_keys(found, keys_in(request))
        text = f"replay diverged: expected {expected}; {first or 'nothing more was recorded'}; got: {shown[:300]}"
        self.difference = self.difference or text
        return None

    def _pieces(self, chunks: list[bytes]) -> Iterator[bytes]:
        if not self._cuts:
            yield from chunks
            return
        data, at = b"".join(chunks), 0
        for size in cycle(self._cuts):
            if at >= len(data):
                return
            yield data[at : at + size]
            at += size


@asynccontextmanager
async def open_http_replay(
    lines: Sequence[str], directory: Path, cuts: Sequence[int] = ()
) -> AsyncGenerator[tuple[str, HttpReplay]]:
    """The address of the stand-in, and what it found."""
    replay = HttpReplay(exchanges_of(lines), directory, cuts)
    async with open_loopback(replay.answer) as url:
        yield url, replay
