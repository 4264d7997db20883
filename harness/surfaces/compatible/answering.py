"""HTTP around a reply, the same for every wire: what a wire adds is how to read a request and write parts."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, cast

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, HarnessError, Internal
from harness.surfaces.call import JSON_TYPE, Call, Served
from harness.surfaces.compatible.desk import Desk
from harness.surfaces.compatible.exchange import ModelRequest, ReplyFailed, ReplyPart
from harness.surfaces.compatible.headers import failure_headers, reply_headers, terms_of
from harness.surfaces.compatible.refusals import refused, wire_status
from harness.surfaces.compatible.reply import Reply, WholeReply
from harness.surfaces.compatible.tips import fingerprint_of
from harness.wire.json_text import read_plain

JsonObject: TypeAlias = dict[str, JsonValue]

_READ_BY = ("stream", "stream_options")
_LAST_WORDS_SECONDS = 1.0

logger = logging.getLogger(__name__)


class StreamWriter(Protocol):
    """A reply as one reader's server-sent events: bytes of whole events."""

    def opening(self) -> bytes:
        """What comes before the first part."""
        ...

    def part(self, part: ReplyPart) -> bytes:
        """The part's events, with the last one all that ends the stream; none where the wire does not show it."""
        ...

    def ping(self) -> bytes:
        """What keeps the line busy; at first after `opening`."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to ask for a reply."""

    read: Callable[[JsonObject, Headers], ModelRequest]
    """The request; `InvalidArgument` with `detail.reason` and `detail.param` where it cannot be one."""
    stream: Callable[[ModelRequest, Reply], StreamWriter]
    whole: Callable[[ModelRequest, Reply, WholeReply], JsonObject]
    """The body of a reply in one piece."""
    refusal: Callable[[HarnessError, int], Response]
    """An error in the wire's shape; the same as the dialect's."""


Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def endpoint(served: Served, desk: Desk, wire: Wire) -> Endpoint:
    """What answers `POST` on a path of this wire."""

    async def answer(call: Call) -> Response:
        request = await _request(call, wire)
        reply = await desk.ask(call, request, terms_of(call.http_request.headers))
        try:
            return await (_streamed if request.streams else _whole)(call, wire, request, reply)
        except HarnessError as error:
            error.detail["conversation_id"] = reply.conversation_id  # a peer's error may name one of its own
            raise

    return guarded(served, answer, wire.refusal)


def guarded(
    served: Served,
    answer: Callable[[Call], Awaitable[Response]],
    refusal: Callable[[HarnessError, int], Response],
) -> Endpoint:
    """An endpoint whose errors are answered in the wire's shape, with the conversation where one is known."""

    async def answered(http_request: Request) -> Response:
        try:
            return await answer(Call(served, http_request))
        except HarnessError as error:
            failed = error
        except ClientDisconnect:
            return _nobody()
        except RecursionError:
            failed = refused("the body is nested too deeply")
        except Exception:
            logger.exception("'%s %s' failed", http_request.method, http_request.url.path)
            failed = Internal("an internal error; the server's log has the details")
        response = refusal(failed, wire_status(failed))
        response.headers.update(failure_headers(failed))
        return response

    return answered


async def json_body(call: Call) -> JsonObject:
    """The body as a JSON object.

    Raises:
        InvalidArgument: it is none.
    """
    body = read_plain(await call.body_bytes(), "the body", finite=True)
    if not isinstance(body, dict):
        raise refused("the body must be a JSON object")
    return cast(JsonObject, body)


async def _request(call: Call, wire: Wire) -> ModelRequest:
    body = await json_body(call)
    request = wire.read(body, call.http_request.headers)
    return request if request.fingerprint else replace(request, fingerprint=fingerprint_of(body, _READ_BY))


def _nobody() -> Response:
    return Response(status_code=499)


async def _streamed(call: Call, wire: Wire, request: ModelRequest, reply: Reply) -> Response:
    async with call.served.waiters.parked(call.http_request.receive):
        with reply.read(), anyio.move_on_after(call.served.compatible.first_look_seconds):
            await reply.has_grown(0)
    if reply.has_failed and len(reply.parts) == 1:
        await reply.whole()  # raises
    return _StreamedReply(call.served, reply, wire.stream(request, reply))


async def _whole(call: Call, wire: Wire, request: ModelRequest, reply: Reply) -> Response:
    async with call.served.waiters.parked(call.http_request.receive):
        with reply.read(), anyio.move_on_after(call.served.compatible.patience_seconds) as patience:
            await reply.whole_or_broken()
    if reply.is_over:
        body = _encoded(wire.whole(request, reply, await reply.whole()))
        reply.was_told = True
        return Response(body, headers=reply_headers(reply), media_type=JSON_TYPE)
    if patience.cancelled_caught:
        return _PatientReply(call.served, reply, lambda whole: wire.whole(request, reply, whole))
    if call.served.waiters.settled:
        raise ConnectorUnavailable("this server is stopping", reason="stopping")
    return _nobody()


def _encoded(body: JsonObject) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode("ascii")


class _StreamedReply(Response):
    """All parts from the beginning, then those that come; pings while there are none."""

    def __init__(self, served: Served, reply: Reply, writer: StreamWriter) -> None:
        super().__init__(
            headers={**reply_headers(reply), "cache-control": "no-store", "x-accel-buffering": "no"},
            media_type="text/event-stream",
        )
        del self.headers["content-length"]
        self._served = served
        self._reply = reply
        self._writer = writer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._reply.was_streamed = True
        is_whole = False
        async with self._served.waiters.parked(receive), aclosing(self._frames()) as frames:
            with self._reply.read():
                async for frame in frames:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
            is_whole = True
        last = b"" if is_whole else self._writer.part(ReplyFailed(Internal("this server is stopping")))
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _frames(self) -> AsyncGenerator[bytes]:
        yield self._writer.opening()
        number = 0
        while True:
            with anyio.move_on_after(self._served.heartbeat_seconds) as silence:
                await self._reply.has_grown(number)
            if silence.cancelled_caught:
                yield self._writer.ping()
                continue
            ready = self._reply.parts[number:]
            number += len(ready)
            yield b"".join(self._writer.part(part) for part in ready)
            if self._reply.is_over and number == len(self._reply.parts):
                self._reply.was_told = True
                return


class _PatientReply(Response):
    """White space until the reply is over: JSON may begin with it, and no proxy takes the line for dead.

    A reply that breaks now has had its status. The line is cut then, so that no client takes it for an answer.
    """

    def __init__(self, served: Served, reply: Reply, render: Callable[[WholeReply], JsonObject]) -> None:
        super().__init__(headers=reply_headers(reply), media_type=JSON_TYPE)
        del self.headers["content-length"]
        self._served = served
        self._reply = reply
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with self._served.waiters.parked(receive):
            with self._reply.read():
                while not self._reply.is_over:
                    await send({"type": "http.response.body", "body": b" ", "more_body": True})
                    with anyio.move_on_after(self._served.heartbeat_seconds):
                        await self._reply.whole_or_broken()
        if not self._reply.is_over:
            return
        whole = await self._reply.whole()
        await send({"type": "http.response.body", "body": _encoded(self._render(whole)), "more_body": False})
        self._reply.was_told = True
