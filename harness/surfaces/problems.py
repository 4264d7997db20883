"""Errors as HTTP answers: application/problem+json with our stable code."""

from __future__ import annotations

import os

from starlette.responses import Response

from harness.errors import HarnessError
from harness.trace.redaction import Redactor, secrets_of_environment
from harness.wire.problem import PROBLEM_TYPE, encode_problem


def problem_response(error: HarnessError, status: int | None = None) -> Response:
    error = Redactor(secrets_of_environment(os.environ)).error(error)
    headers: dict[str, str] = {}
    if error.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    retry_after_ms = error.detail.get("retry_after_ms")
    if isinstance(retry_after_ms, int):
        headers["Retry-After"] = str(-(-retry_after_ms // 1000))
    return Response(
        encode_problem(error, status), status or error.http_status, headers=headers, media_type=PROBLEM_TYPE
    )
