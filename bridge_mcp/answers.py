"""How an answer travels over HTTP: as one JSON body, or as a stream of events. Both see the peer leave."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from enum import StrEnum

import anyio
from starlette.types import Receive, Send

from bridge_mcp.endpoint import Exchange
from bridge_mcp.protocol import JsonObject


class AnswerMode(StrEnum):
    """`json` for peers whose time limit can be raised, `stream` for those that want signs of life."""

    JSON = "json"
    STREAM = "stream"


async def send_answer(
    mode: AnswerMode, exchange: Exchange, receive: Receive, send: Send, *, ping_seconds: float
) -> None:
    """Waits for the answer and sends it; returns early when the peer has gone."""
    async with anyio.create_task_group() as tasks:

        async def until_sent(answer: Callable[[], Awaitable[None]]) -> None:
            await answer()
            tasks.cancel_scope.cancel()

        if mode == AnswerMode.JSON:
            tasks.start_soon(until_sent, lambda: _send_json(exchange, send))
        else:
            tasks.start_soon(until_sent, lambda: _send_stream(exchange, send, ping_seconds))
        await _until_gone(receive)
        tasks.cancel_scope.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_json(exchange: Exchange, send: Send) -> None:
    message = await exchange.next()
    while "method" in message:  # there is no place for anything but the answer
        message = await exchange.next()
    body = json_bytes(message)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_stream(exchange: Exchange, send: Send, ping_seconds: float) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    # the headers leave with the first byte of the body
    await send({"type": "http.response.body", "body": b": waiting\n\n", "more_body": True})
    has_answered = False
    while not has_answered:
        event = b": waiting\n\n"
        with anyio.move_on_after(ping_seconds):
            message = await exchange.next()
            has_answered = "method" not in message
            event = b"event: message\ndata: " + json_bytes(message) + b"\n\n"
        await send({"type": "http.response.body", "body": event, "more_body": not has_answered})


def json_bytes(message: JsonObject) -> bytes:
    """JSON in UTF-8; half characters, which UTF-8 cannot say, stay escapes."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode()
