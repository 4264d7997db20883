"""Bearer tokens: a secret, whose it is, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import Scope

from harness.settings import Rights

_TOKEN_KEY = "harness.token"


@dataclass(frozen=True, slots=True)
class Token:
    """A secret, whose it is, and what it allows."""

    secret: str = field(repr=False)
    owner: str
    rights: Rights = field(default_factory=lambda: Rights(programs=False, cwd_roots=()))


def note_token(scope: Scope, token: Token) -> None:
    scope[_TOKEN_KEY] = token


def token_of(http_request: Request) -> Token:
    """The token that let this request in."""
    token = http_request.scope[_TOKEN_KEY]
    assert isinstance(token, Token)
    return token
