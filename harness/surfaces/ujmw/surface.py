"""The UJMW surface: one route whose path says who is asked for what, and replies that are 200 even where they fail."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from anyio.abc import TaskGroup
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from harness.contract.options import ConversationOptions
from harness.contract.requests import HostResponse, OptionKind
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, Forbidden, HarnessError, Internal, InvalidArgument, Unauthorized
from harness.surfaces.call import JSON_TYPE, Call, Served
from harness.surfaces.dialect import Dialect
from harness.surfaces.openapi import OpenApiPart
from harness.surfaces.operations import ContractOperation
from harness.surfaces.ujmw.codec import decode, encode
from harness.surfaces.ujmw.envelope import UjmwCall, read_call, write_fault, write_result
from harness.surfaces.ujmw.information import information
from harness.surfaces.ujmw.names import pascal
from harness.surfaces.ujmw.place import DOCUMENT, PREFIX, Place, place_of
from harness.surfaces.ujmw.schema import all_paths, components, document_at
from harness.surfaces.ujmw.settings import UjmwSettings
from harness.trace.redaction import Redactor, secrets_of_environment
from harness.wire.ujmw import MEDIA_TYPE

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_READING = frozenset({"GET", "HEAD"})
_SHOWN_CHARS = 200

logger = logging.getLogger(__name__)


def ujmw_dialect(settings: UjmwSettings | None = None) -> Dialect:
    """The surface as these settings want it."""
    return Dialect(
        PREFIX,
        partial(_routes, settings or UjmwSettings()),
        plain_refusal,
        secret_of=secret_of,
        # to read is to read what the service is, never what it holds
        without_token=lambda method, path: method in _READING,
        described=lambda: OpenApiPart(all_paths(), components()),
    )


def plain_refusal(error: HarnessError, status: int) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response(f"[{error.code}] {error.message}", status, headers=headers, media_type="text/plain")


def secret_of(headers: Headers) -> str | None:
    """What `Authorization` says, behind any scheme or none."""
    scheme, _, given = headers.get("authorization", "").strip().partition(" ")
    return (given.strip() or scheme) or None


def _routes(settings: UjmwSettings, served: Served, group: TaskGroup) -> Sequence[Route]:
    answer = partial(_answer, settings, served)
    routes = [Route(path, answer, methods=_METHODS) for path in (PREFIX, PREFIX + "/{rest:path}")]
    for route in routes:
        route.path_regex = re.compile(route.path_regex.pattern, re.IGNORECASE)  # as with servers of its home
    return routes


async def _answer(settings: UjmwSettings, served: Served, http_request: Request) -> Response:
    path: str = http_request.scope["path"]
    place = place_of(path)
    if place is None or (place.member not in (None, DOCUMENT) and place.operation is None):
        return plain_refusal(InvalidArgument(f"no operation at '{path}'; GET '{Place().base}' lists them"), 404)
    if place.operation is None:
        return _read(settings, place, http_request)
    if http_request.method != "POST":
        refusal = plain_refusal(InvalidArgument("an operation is called by POST"), 405)
        refusal.headers["Allow"] = "POST"
        return refusal
    return await _called(settings, Call(served, http_request), place, place.operation)


def _read(settings: UjmwSettings, place: Place, http_request: Request) -> Response:
    if http_request.method not in _READING:
        refusal = plain_refusal(InvalidArgument("this is read by GET; operations stand below it"), 405)
        refusal.headers["Allow"] = "GET, HEAD"
        return refusal
    server_url = str(http_request.base_url)
    if place.member is None:
        return Response(information(place, server_url, settings), media_type=MEDIA_TYPE)
    return Response(json.dumps(document_at(place, server_url)), media_type=JSON_TYPE)


async def _called(settings: UjmwSettings, call: Call, place: Place, operation: ContractOperation) -> Response:
    """Every end of a call but a refusal is 200: clients throw the body of anything else away."""
    asked: UjmwCall | None = None
    try:
        asked = read_call(await call.body_bytes())
        _trace(operation, asked)
        if operation.starts_work and call.served.waiters.settled:
            raise ConnectorUnavailable("this server is stopping", reason="stopping")
        given = await _result(call, place, operation, asked.arguments)
    except (Unauthorized, Forbidden) as error:
        return plain_refusal(_redacted(error), error.http_status)
    except HarnessError as error:
        return _fault(settings, _redacted(error), asked)
    except ClientDisconnect:
        return Response(status_code=499)  # nobody reads it
    except RecursionError:
        return _fault(settings, InvalidArgument("the body is nested too deeply"), asked)
    except Exception:
        logger.exception("UJMW operation '%s' failed", operation.name)
        return _fault(settings, Internal("an internal error; the server's log has the details"), asked)
    value = encode(given, enums_as_integers=settings.enums_as_integers)
    return Response(write_result(value, is_void=operation.gives is None), media_type=MEDIA_TYPE)


async def _result(
    call: Call, place: Place, operation: ContractOperation, arguments: Mapping[str, JsonValue]
) -> JsonValue:
    named = dict(decode(operation.takes, arguments))
    answer = cast("Callable[..., JsonValue]", getattr(call.llm, operation.name))
    match operation.name:
        case "get_capabilities" | "begin_conversation":
            named["options"] = place.preset(cast("ConversationOptions | None", named["options"]))
        case "submit_responses":
            named["responses"] = await _with_option_ids(call, named["conversation_id"], named["responses"])
        case "poll_turn":
            # clients whose numbers are never null send 0 where they mean nothing
            named["since_sequence_no"] = max(0, named["since_sequence_no"])
            named["max_items"] = named["max_items"] if named["max_items"] > 0 else 1000
            answer = call.poll_turn
        case _:
            pass
    return await answer(**named)


async def _with_option_ids(call: Call, conversation_id: str, responses: Sequence[HostResponse]) -> list[HostResponse]:
    """`AllowOnce` is how this wire writes a kind, unless the peer itself has an option of that name."""
    kinds = {pascal(kind.value): kind for kind in OptionKind}
    if not any(response.selected_option in kinds for response in responses):
        return list(responses)
    waiting = [one.request for one in await call.llm.list_requests() if one.conversation_id == conversation_id]
    offered = {(request.request_id, option.id) for request in waiting for option in request.options}
    return [
        response.model_copy(update={"selected_option": kinds[response.selected_option]})
        if response.selected_option in kinds and (response.request_id, response.selected_option) not in offered
        else response
        for response in responses
    ]


def _trace(operation: ContractOperation, asked: UjmwCall) -> None:
    if asked.side_channel:
        entries = " ".join(f"{name}={text}" for name, text in asked.side_channel.items())
        shown = " ".join(entries[:_SHOWN_CHARS].splitlines())  # a caller writes no lines of our log
        logger.info("UJMW operation '%s' with %s", operation.name, shown)


def _fault(settings: UjmwSettings, error: HarnessError, asked: UjmwCall | None) -> Response:
    if settings.hide_fault_details:
        logger.warning("a UJMW call failed: [%s] %s", error.code, error.message)
    has_side_channel = asked is not None and asked.side_channel is not None
    body = write_fault(error, hide_details=settings.hide_fault_details, tells_more=has_side_channel)
    return Response(body, media_type=MEDIA_TYPE)


def _redacted(error: HarnessError) -> HarnessError:
    return Redactor(secrets_of_environment(os.environ)).error(error)


UJMW = ujmw_dialect()
