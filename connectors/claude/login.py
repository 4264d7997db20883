"""Whether the CLI would find credentials: asks it, which costs a start of a third of a second and no traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import anyio

from connectors._process import open_process
from connectors.claude.outcome import HOW_TO_LOG_IN
from harness.connector import Login
from harness.errors import PeerLost

_SECONDS = 20.0
_KINDS = {"api_key": "an API key", "claude.ai": "a subscription", "oauth_token": "a token of a subscription"}


async def login_of_program(program: Path, env: Mapping[str, str]) -> Login:
    """What `claude auth status` says in the environment that a conversation would get."""
    printed: list[bytes] = []
    try:
        with anyio.fail_after(_SECONDS):
            async with open_process([str(program), "auth", "status"], env=dict(env), name="claude") as cli:
                async for lines in cli.lines():
                    printed += lines
    except (PeerLost, TimeoutError):
        pass  # it ends with an error when nobody is logged in, having said so
    return _read(b"".join(printed))


def _read(printed: bytes) -> Login:
    try:
        status: object = json.loads(printed)
    except ValueError:
        return Login(None, "the CLI does not tell")
    told = cast("dict[str, object]", status) if isinstance(status, dict) else {}
    if told.get("loggedIn") is not True:
        return Login(False, "nobody is logged in", HOW_TO_LOG_IN) if "loggedIn" in told else Login(None, "unknown")
    method = str(told.get("authMethod"))
    return Login(True, _KINDS.get(method, method))
