"""What one HTTP request means and how its answer went, as lines of a recording (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from harness.scripted_model.connection import HttpRequest

Ending: TypeAlias = Literal["complete", "cut", "left"]
"""`cut`: the peer broke off in the middle; `left`: we did."""

FREE_HEADERS: Mapping[str, str] = {
    "accept-encoding": "what this installation can unpack",
    "connection": "the transport's own affair",
    "content-length": "the body is compared itself",
    "host": "every run has a port of its own",
    "transfer-encoding": "the transport's own affair",
    "user-agent": "names the version of a package",
    "x-stainless-arch": "names this machine",
    "x-stainless-async": "names how the vendor's package is used",
    "x-stainless-lang": "names this machine",
    "x-stainless-os": "names this machine",
    "x-stainless-package-version": "names the version of a package",
    "x-stainless-raw-response": "names how the vendor's package is used",
    "x-stainless-read-timeout": "the vendor's package tells its own time limit",
    "x-stainless-retry-count": "the vendor's package makes no retries here",
    "x-stainless-runtime": "names this machine",
    "x-stainless-runtime-version": "names this machine",
}
"""Headers of ours that a replay does not look at, and why."""
SECRET_HEADERS = ("authorization", "x-api-key")
KEY = "<key>"


def meaning_of(request: HttpRequest) -> dict[str, Any]:
    """What is compared: method, target, the headers that mean something, and the body as JSON where it is JSON."""
    headers = {name: value for name, value in request.headers.items() if name not in FREE_HEADERS}
    text = request.body.decode("utf-8", "surrogateescape")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = text
    return {"method": request.method, "path": request.path, "headers": headers, "body": body}


def keys_in(request: HttpRequest) -> list[str]:
    """The keys that a request carries."""
    values = (request.headers[name] for name in SECRET_HEADERS if name in request.headers)
    return [value.removeprefix("Bearer ") for value in values]


def without_keys(meaning: dict[str, Any], keys: Sequence[str]) -> str:
    """A request as a line of a recording, with a name in the place of its keys wherever they stand."""
    headers = {
        name: _hidden(value, keys) if name in SECRET_HEADERS else value for name, value in meaning["headers"].items()
    }
    # what is as short as a word is no key, and found everywhere
    return _hidden(
        json.dumps({**meaning, "headers": headers}, ensure_ascii=False), [one for one in keys if len(one) > 7]
    )


def _hidden(text: str, keys: Sequence[str]) -> str:
    for key in keys:
        text = text.replace(key, KEY)
    return text


def as_text(chunk: bytes) -> str:
    return chunk.decode("utf-8", "surrogateescape")


def as_bytes(chunk: str) -> bytes:
    return chunk.encode("utf-8", "surrogateescape")
