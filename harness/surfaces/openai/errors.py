"""Errors in OpenAI's shape (pure but for the environment's secrets, which no error tells)."""

from __future__ import annotations

import json
import os

from starlette.responses import Response

from harness.contract.value import JsonValue
from harness.errors import ContextOverflow, HarnessError, InvalidArgument, ProviderError
from harness.surfaces.call import JSON_TYPE
from harness.surfaces.compatible.refusals import retry_headers, wire_status
from harness.trace.redaction import Redactor, secrets_of_environment

_PROVIDER_CODES = {"rate_limit": "rate_limit_exceeded", "billing": "insufficient_quota", "auth": "invalid_api_key"}


def refusal(error: HarnessError, status: int | None = None) -> Response:
    """An error instead of a reply."""
    status = wire_status(error) if status is None or status == error.http_status else status
    headers = retry_headers(error)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(json.dumps({"error": error_object(error, status)}), status, headers=headers, media_type=JSON_TYPE)


def error_object(error: HarnessError, status: int | None = None) -> dict[str, JsonValue]:
    """What stands under `error`, in a response and in a stream."""
    error = Redactor(secrets_of_environment(os.environ)).error(error)
    return {
        "message": error.message,
        "type": _type(status or wire_status(error)),
        "param": error.detail.get("param"),
        "code": _code(error),
    }


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def _code(error: HarnessError) -> str:
    """OpenAI's code where it has one for this, else ours."""
    reason = error.detail.get("reason")
    if isinstance(error, InvalidArgument) and isinstance(reason, str):
        return reason
    if isinstance(error, ProviderError):
        return _PROVIDER_CODES.get(str(reason), error.code)
    if isinstance(error, ContextOverflow):
        return "context_length_exceeded"
    return "invalid_api_key" if error.code == "unauthorized" else error.code
