"""A model on loopback that follows a script: connections, waiting, the log. What it says is `playback.py`'s affair."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TextIO

import anyio
from anyio.abc import SocketAttribute, SocketStream
from pydantic import JsonValue

from harness.errors import ConfigError, unwrapped
from harness.scripted_model.anthropic import AnthropicDialect
from harness.scripted_model.connection import ClientLeft, Connection
from harness.scripted_model.dialect import Dialect, ModelRequest, Reply
from harness.scripted_model.gemini import GeminiDialect
from harness.scripted_model.ollama import OllamaDialect
from harness.scripted_model.openai_chat import OpenAiChatDialect
from harness.scripted_model.openai_responses import OpenAiResponsesDialect
from harness.scripted_model.playback import Playback, Played, ScriptMismatch
from harness.scripted_model.received import Ending, ReceivedRequest, received
from harness.scripted_model.script import Script, ScriptedError, ScriptEntry, ScriptSource, read_script
from harness.scripted_model.words import without_words

DIALECTS: tuple[Dialect, ...] = (
    AnthropicDialect(),
    OpenAiResponsesDialect(),
    OpenAiChatDialect(),
    OllamaDialect(),
    GeminiDialect(),
)


class ScriptedModel:
    """A running scripted model. Open one with `open_scripted_model`."""

    def __init__(self, script: Script, *, url: str, log: TextIO | None, words: re.Pattern[str] | None) -> None:
        self.url = url
        self.requests: list[ReceivedRequest] = []
        """The model calls of the peer's main loop, in order of arrival."""
        self.side_requests: list[ReceivedRequest] = []
        """All else: probes, token counts, unknown paths."""
        self._playback = Playback(script, run=secrets.token_hex(6))
        self._log = log
        self._words = words
        self._arrived = anyio.Event()

    async def wait_for_request(self, number: int) -> ReceivedRequest:
        """The model call with this number, from 1; waits until it has arrived."""
        while len(self.requests) < number:
            await self._arrived.wait()
        return self.requests[number - 1]

    async def serve_client(self, socket: SocketStream) -> None:
        """Answer one client's requests until it leaves."""
        async with socket:
            connection = Connection(socket)
            try:
                while (http_request := await connection.next_request()) is not None:
                    request = received(http_request, at_ms=time.time_ns() // 1_000_000)
                    if await self._answer_while_heard(connection, request) != "answered":
                        return
            except ClientLeft:
                return

    async def _answer_while_heard(self, connection: Connection, request: ReceivedRequest) -> Ending:
        """Answer until done or until the client leaves, whichever comes first."""
        ending: Ending = "server_closed"

        async def stop_when_client_leaves() -> None:
            nonlocal ending
            await connection.wait_for_departure()
            ending = "client_left"
            answering.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as answering:
                answering.start_soon(stop_when_client_leaves)
                try:
                    ending = await self._answer(connection, request)
                except ClientLeft:
                    ending = "client_left"
                answering.cancel_scope.cancel()
        finally:
            request.end(ending)
        return ending

    async def _answer(self, connection: Connection, request: ReceivedRequest) -> Ending:
        plan = self._plan(request)
        self._record(request)
        if isinstance(plan, Reply):
            await connection.send_reply(plan, without_body=request.method == "HEAD")
            return "answered"
        dialect, played = plan
        return await _perform(connection, request, dialect, played)

    def _plan(self, request: ReceivedRequest) -> Reply | tuple[Dialect, Played]:
        """The answer at hand, or the entry to perform; the request learns which entry that is."""
        dialect = next((dialect for dialect in DIALECTS if dialect.speaks(request.path)), None)
        found = dialect.lookup(request.path) if dialect is not None and request.method == "GET" else None
        if found is not None:
            return found
        if dialect is None or request.method != "POST":
            # The Claude CLI knocks with HEAD before it asks, and wants no error.
            return Reply(200) if request.method == "HEAD" else _not_found(request)
        if request.body is None:
            return dialect.error(ScriptedError(status=400, message="the body is no JSON object"))
        side_reply = dialect.side_reply(request.path, request.body)
        if side_reply is not None:
            return side_reply
        request.is_model_call = True
        request.model_request = self._read(dialect, request.path, request.body)
        try:
            played = self._playback.next_for(request.model_request, dialect)
        except ScriptMismatch as mismatch:
            return dialect.error(ScriptedError(status=400, message=str(mismatch)))
        request.entry = played.number
        return dialect, played

    def _read(self, dialect: Dialect, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        read = dialect.read(path, body)
        return read if self._words is None else without_words(read, self._words)

    def _record(self, request: ReceivedRequest) -> None:
        (self.requests if request.is_model_call else self.side_requests).append(request)
        if self._log is not None:
            self._log.write(request.log_line() + "\n")
            self._log.flush()
        self._arrived.set()
        self._arrived = anyio.Event()


async def _perform(connection: Connection, request: ReceivedRequest, dialect: Dialect, played: Played) -> Ending:
    """Do what the entry says, in its time."""
    entry, body = played.entry, request.body or {}
    await anyio.sleep(entry.delay_seconds)
    if entry.error is not None:
        await connection.send_reply(dialect.error(entry.error))
        return "answered"
    streams = request.model_request.stream
    if streams:
        await connection.start_stream(dialect.stream_headers)
        await _send_frames(connection, dialect.stream(body, played.answer), entry)
    if entry.drop:
        return "dropped"
    if entry.hang:
        await anyio.sleep_forever()
    if streams:
        await _send_frames(connection, dialect.stream_end(body, played.answer), entry)
        await connection.end_stream()
    else:
        await connection.send_reply(dialect.reply(body, played.answer))
    return "answered"


async def _send_frames(connection: Connection, frames: Iterator[bytes], entry: ScriptEntry) -> None:
    for frame in frames:
        await connection.send_chunk(frame)
        await anyio.sleep(entry.chunk_delay_seconds)


def _not_found(request: ReceivedRequest) -> Reply:
    # The shape that the vendors' clients share: an object "error" with a message.
    message = f"the scripted model has no '{request.method} {request.path}'"
    error: JsonValue = {"type": "error", "error": {"type": "not_found_error", "message": message}}
    return Reply(404, json.dumps(error).encode(), {"content-type": "application/json"})


@asynccontextmanager
async def open_scripted_model(
    script: ScriptSource, *, port: int = 0, log: Path | None = None, words: re.Pattern[str] | None = None
) -> AsyncGenerator[ScriptedModel]:
    """A scripted model on 127.0.0.1 while the context lasts; port 0 takes a free one.

    All clients follow the one script, in the order in which their model calls arrive. `log` gets a line of JSON for
    each request, appended and flushed before it is answered. Leaving the context cuts what is still being answered.
    `words` is what the peer puts around every result: it matches such a result, and its first group is the bare one.

    Raises:
        ConfigError: the script, the log file or the port cannot be used.
    """
    entries = read_script(script)
    with ExitStack() as files:
        try:
            log_file = files.enter_context(log.open("a", encoding="utf-8")) if log is not None else None
        except OSError as error:
            raise ConfigError(f"cannot write the log '{log}': {error.strerror}", file=str(log)) from error
        try:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
        except OSError as error:
            problem = f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}; port 0 takes a free one"
            raise ConfigError(problem, key="port") from error
        model = ScriptedModel(
            entries, url=f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}", log=log_file, words=words
        )
        with unwrapped():
            async with listener, anyio.create_task_group() as clients:
                clients.start_soon(listener.serve, model.serve_client)
                yield model
                clients.cancel_scope.cancel()
