"""Errors on the wire: RFC 9457 with our stable code, and back (pure)."""

from __future__ import annotations

import json
from typing import cast

from pydantic import Field

from harness.contract.value import Value
from harness.errors import HarnessError, Internal, from_code
from harness.wire.json_text import read_json, write_json

PROBLEM_TYPE = "application/problem+json"


class Problem(Value):
    """An error as `application/problem+json` (RFC 9457)."""

    title: str = "Internal"
    """The code in words."""
    status: int = 500
    detail: str = ""
    """What went wrong and the next step, for a person."""
    code: str = "internal"
    """What went wrong, for a program: the same in Python, on every wire and in the command line."""
    retryable: bool = False
    """Whether the same call may succeed later without a change by the caller."""
    detail_json: str | None = Field(default=None)
    """More facts as a JSON object, such as `rejected` or `errors`."""


def problem_of(error: HarnessError, status: int | None = None) -> Problem:
    return Problem(
        title=error.code.replace("_", " ").capitalize(),
        status=status or error.http_status,
        detail=error.message,
        code=error.code,
        retryable=error.retryable,
        detail_json=error.detail_json,
    )


def encode_problem(error: HarnessError, status: int | None = None) -> bytes:
    return write_json(problem_of(error, status))


def decode_problem(data: bytes, status: int) -> HarnessError:
    """The error a problem stands for; anything else that a server or a proxy answered becomes `Internal`."""
    try:
        problem = read_json(Problem, data)
        detail: object = json.loads(problem.detail_json or "{}")
    except (HarnessError, ValueError):
        return Internal(f"the server answered {status} without saying why", status=status)
    if not problem.detail:
        return Internal(f"the server answered {status}: {data[:200].decode('utf-8', 'replace')}", status=status)
    return from_code(problem.code, problem.detail, cast(dict[str, object], detail) if isinstance(detail, dict) else {})
