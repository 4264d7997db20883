"""Where the surface hangs, and what answers there."""

from __future__ import annotations

from collections.abc import Sequence

from anyio.abc import TaskGroup
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.contract.value import JsonValue
from harness.surfaces.anthropic.errors import refusal
from harness.surfaces.anthropic.render import EventWriter, whole_message
from harness.surfaces.anthropic.request import MESSAGE_PREFIX, MessagesRequest, messages_request, read_body
from harness.surfaces.anthropic.side import count_tokens, is_claude_code, side_reply
from harness.surfaces.call import Call, Served
from harness.surfaces.compatible.answering import JsonObject, Wire, endpoint, guarded, json_body
from harness.surfaces.compatible.desk import Desk
from harness.surfaces.compatible.exchange import ModelRequest, Terms
from harness.surfaces.compatible.models import model_names, named_model
from harness.surfaces.compatible.reply import Reply, WholeReply
from harness.surfaces.dialect import Dialect, bearer_of

PREFIX = "/anthropic"
_MADE_AT = "1970-01-01T00:00:00Z"
"""Nobody knows when a connector's model was made, and the API's clients want a time."""


def _secret_of(headers: Headers) -> str | None:
    return headers.get("x-api-key") or bearer_of(headers)


def _is_knock(method: str, path: str) -> bool:
    """Claude Code knocks before it asks, without a key."""
    return method == "HEAD" and path.rstrip("/") == PREFIX


def _routes(served: Served, group: TaskGroup) -> Sequence[Route]:
    messages = endpoint(served, _Desk(served, group, surface="anthropic"), _WIRE)
    return [
        Route(f"{PREFIX}/v1/messages", messages, methods=["POST"]),
        Route(f"{PREFIX}/v1/messages/count_tokens", guarded(served, _count, refusal), methods=["POST"]),
        Route(f"{PREFIX}/v1/models", guarded(served, _models, refusal), methods=["GET"]),
        Route(f"{PREFIX}/v1/models/{{model:path}}", guarded(served, _model, refusal), methods=["GET"]),
        *(Route(path, _hello, methods=["HEAD"]) for path in (PREFIX, f"{PREFIX}/")),
    ]


ANTHROPIC = Dialect(
    PREFIX,
    _routes,
    refusal,
    secret_of=_secret_of,
    without_token=_is_knock,
    clients="anthropic",
    asked=("/messages", "/messages/count_tokens"),
)


class _Desk(Desk):
    """Answers what Claude Code asks on the side without a conversation."""

    async def ask(self, call: Call, request: ModelRequest, terms: Terms) -> Reply:
        parts = side_reply(request) if is_claude_code(call.http_request.headers) else None
        if parts is None:
            return await super().ask(call, request, terms)
        named_model(request.model, call.served.connectors)
        reply = Reply(request.model)
        reply.add(*parts)
        return reply


def _read(body: JsonObject, headers: Headers) -> MessagesRequest:
    return messages_request(read_body(body))


def _stream(request: ModelRequest, reply: Reply) -> EventWriter:
    assert isinstance(request, MessagesRequest)
    return EventWriter(_message_id(reply), request)


def _whole(request: ModelRequest, reply: Reply, whole: WholeReply) -> JsonObject:
    assert isinstance(request, MessagesRequest)
    return whole_message(_message_id(reply), request, whole)


_WIRE = Wire(_read, _stream, _whole, refusal)


def _message_id(reply: Reply) -> str:
    return f"{MESSAGE_PREFIX}{reply.reply_id}"


async def _count(call: Call) -> Response:
    body = read_body(await json_body(call))
    named_model(body.model, call.served.connectors)
    return JSONResponse({"input_tokens": count_tokens(body)})


async def _models(call: Call) -> Response:
    names = model_names(call.served.connectors)
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return JSONResponse({"data": [_described(name) for name in names], "has_more": False, **ends})


async def _model(call: Call) -> Response:
    name = str(call.http_request.path_params["model"])
    named_model(name, call.served.connectors)
    return JSONResponse(_described(name))


def _described(name: str) -> JsonValue:
    return {"type": "model", "id": name, "display_name": name, "created_at": _MADE_AT}


async def _hello(http_request: Request) -> Response:
    return Response()
