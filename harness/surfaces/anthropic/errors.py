"""Errors in the API's shape, our stable `code` beside it."""

from __future__ import annotations

import json
import os
import secrets

from starlette.responses import Response

from harness.errors import ContextOverflow, HarnessError, ProviderError, TurnInProgress
from harness.surfaces.call import JSON_TYPE
from harness.surfaces.compatible.refusals import REPLY_NOT_FOUND, retry_headers, wire_status
from harness.trace.redaction import Redactor, secrets_of_environment
from harness.wire.anthropic import error_type

_REASONS = {"overloaded": 529, "billing": 402}
"""Statuses that only this API has."""
_LOST_THREAD = "thread_not_found"
_BUSY_THREAD = "thread_continue_in_flight"
"""By these the SDK knows that it should send the whole history."""


def refusal(error: HarnessError, status: int | None = None) -> Response:
    """An error instead of an answer, with a word on whether to repeat the call."""
    status = _status(error) if status in (None, error.http_status, wire_status(error)) else status
    request_id = f"req_{secrets.token_hex(12)}"
    headers = {"request-id": request_id, **retry_headers(error)}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(error_body(error, status, request_id), status, headers=headers, media_type=JSON_TYPE)


def error_body(error: HarnessError, status: int | None = None, request_id: str | None = None) -> bytes:
    """The same in mid-stream, where no status and no header can be sent any more."""
    error = Redactor(secrets_of_environment(os.environ)).error(error)
    status = status or _status(error)
    kind = error_type(status)
    told = {"type": kind, "message": _message(error), "code": error.code}
    thread_code = _thread_code(error)
    details = {"details": {"error_code": thread_code}} if thread_code is not None else {}
    named = {"request_id": request_id} if request_id is not None else {}
    return json.dumps({"type": "error", "error": {**told, **details}, **named}).encode()


def _status(error: HarnessError) -> int:
    if _is_lost_thread(error):
        return 404
    special = _REASONS.get(str(error.detail.get("reason"))) if isinstance(error, ProviderError) else None
    return special or wire_status(error)


def _thread_code(error: HarnessError) -> str | None:
    if isinstance(error, TurnInProgress):
        return _BUSY_THREAD
    return _LOST_THREAD if _is_lost_thread(error) else None


def _is_lost_thread(error: HarnessError) -> bool:
    return error.detail.get("reason") == REPLY_NOT_FOUND


def _message(error: HarnessError) -> str:
    """Clients that can shorten their history know by these words that they should."""
    return f"prompt is too long: {error.message}" if isinstance(error, ContextOverflow) else error.message
