"""Where OpenAI's wire hangs, and what answers there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from anyio.abc import TaskGroup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.contract.value import JsonValue
from harness.errors import HarnessError, InvalidArgument
from harness.surfaces.call import JSON_TYPE, Call, Served
from harness.surfaces.compatible.answering import JsonObject, Wire, endpoint, guarded
from harness.surfaces.compatible.desk import Desk
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.models import model_names, named_model
from harness.surfaces.compatible.reply import Reply, WholeReply
from harness.surfaces.dialect import Dialect
from harness.surfaces.openai.chat_reply import ChunkWriter, completion_of
from harness.surfaces.openai.chat_request import chat_request
from harness.surfaces.openai.errors import refusal
from harness.surfaces.openai.responses_events import ResponseWriter, whole_response
from harness.surfaces.openai.responses_request import ResponsesRequest, responses_request

PREFIX = "/openai/v1"

CHAT = Wire(
    read=chat_request,
    stream=lambda request, reply: ChunkWriter(reply, with_usage=request.tells_usage),
    whole=lambda request, reply, whole: completion_of(reply, whole),
    refusal=refusal,
)


def _responses_stream(request: ModelRequest, reply: Reply) -> ResponseWriter:
    assert isinstance(request, ResponsesRequest)
    return ResponseWriter(request, reply)


def _responses_whole(request: ModelRequest, reply: Reply, whole: WholeReply) -> JsonObject:
    assert isinstance(request, ResponsesRequest)
    return whole_response(request, reply)


def _responses_refusal(error: HarnessError, status: int | None = None) -> Response:
    """This API has its messages in `input`."""
    if error.detail.get("param") == "messages":
        error.detail["param"] = "input"
    return refusal(error, status)


RESPONSES = Wire(responses_request, _responses_stream, _responses_whole, _responses_refusal)


def _routes(served: Served, group: TaskGroup) -> Sequence[Route]:
    desk = Desk(served, group, surface="openai")
    return [
        Route(f"{PREFIX}/chat/completions", endpoint(served, desk, CHAT), methods=["POST"]),
        Route(f"{PREFIX}/responses", endpoint(served, desk, RESPONSES), methods=["POST"]),
        Route(f"{PREFIX}/responses/{{response:path}}", _no_response, methods=["GET", "DELETE", "POST"]),
        Route(f"{PREFIX}/models", guarded(served, _models, refusal), methods=["GET"]),
        Route(f"{PREFIX}/models/{{model:path}}", guarded(served, _model, refusal), methods=["GET"]),
    ]


async def _no_response(http_request: Request) -> Response:
    message = (
        f"no '{http_request.method} {http_request.url.path}' here: responses are told once and not kept; one can be "
        "continued by 'previous_response_id' as long as its conversation lives"
    )
    return refusal(InvalidArgument(message, reason="response_not_found"), 404)


async def _models(call: Call) -> Response:
    names = model_names(call.served.connectors)
    return _json({"object": "list", "data": [_model_object(name) for name in names]})


async def _model(call: Call) -> Response:
    name = str(call.http_request.path_params["model"])
    named_model(name, call.served.connectors)
    return _json(_model_object(name))


def _model_object(name: str) -> dict[str, JsonValue]:
    # when a connector was made tells nobody anything, and clients want a number
    return {"id": name, "object": "model", "created": 0, "owned_by": "harness"}


def _json(value: JsonValue) -> Response:
    return Response(json.dumps(value), media_type=JSON_TYPE)


OPENAI = Dialect(PREFIX, _routes, refusal, clients="openai", asked=("/chat/completions", "/responses"))
