"""Where OpenAI's wire hangs, and what answers there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.routing import Route

from harness.contract.value import JsonValue
from harness.surfaces.call import JSON_TYPE, Call, Served
from harness.surfaces.compatible.answering import Wire, endpoint, guarded
from harness.surfaces.compatible.desk import Desk
from harness.surfaces.compatible.models import model_names, named_model
from harness.surfaces.dialect import Dialect
from harness.surfaces.openai.chat_reply import ChunkWriter, completion_of
from harness.surfaces.openai.chat_request import chat_request
from harness.surfaces.openai.errors import refusal

PREFIX = "/openai/v1"

CHAT = Wire(
    read=chat_request,
    stream=lambda request, reply: ChunkWriter(reply, with_usage=request.tells_usage),
    whole=lambda request, reply, whole: completion_of(reply, whole),
    refusal=refusal,
)


def _routes(served: Served, group: TaskGroup) -> Sequence[Route]:
    desk = Desk(served, group, surface="openai")
    return [
        Route(f"{PREFIX}/chat/completions", endpoint(served, desk, CHAT), methods=["POST"]),
        Route(f"{PREFIX}/models", guarded(served, _models, refusal), methods=["GET"]),
        Route(f"{PREFIX}/models/{{model:path}}", guarded(served, _model, refusal), methods=["GET"]),
    ]


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


OPENAI = Dialect(PREFIX, _routes, refusal, clients="openai")
