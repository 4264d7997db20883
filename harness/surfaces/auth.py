"""Who may call: Host and Origin first, then the bearer token.

Host and Origin are looked at before anything else, because a page in the user's browser can reach a loopback server
under a name of its own (DNS rebinding), and must not even learn whether a token is right.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.errors import Forbidden, HarnessError, Unauthorized
from harness.server_record import is_loopback
from harness.surfaces.dialect import Dialect, dialect_for
from harness.surfaces.tokens import Token, note_token

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Lets a request through to `app`, or answers it with the reason why not."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Sequence[Token],
        host: str,
        dialects: Sequence[Dialect] = (),
        allowed_hosts: Collection[str] = (),
        allowed_origins: Collection[str] = (),
    ) -> None:
        self._app = app
        self._dialects = dialects
        self._tokens = [(token.secret.encode(), token) for token in tokens]
        self._hosts = _host_names(host) | {name.lower() for name in allowed_hosts}
        self._any_address = _is_wildcard(host)
        self._origins = frozenset(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        dialect = dialect_for(scope["path"], self._dialects)
        refusal = self._wrong_address(headers) or self._wrong_origin(headers)
        is_open = dialect.without_token(scope["method"], scope["path"]) or _is_preflight(scope, headers)
        if refusal is None and not is_open:
            refusal = self._wrong_token(scope, dialect.secret_of(headers))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await dialect.refusal(*refusal)(scope, receive, send)

    def _wrong_address(self, headers: Headers) -> tuple[HarnessError, int] | None:
        values = headers.getlist("host")
        name = _name_of(values[0]) if len(values) == 1 else None
        if name is not None and (name in self._hosts or (self._any_address and _is_address(name))):
            return None
        return Forbidden(f"this server does not answer to the host '{', '.join(values)}'"), 421

    def _wrong_origin(self, headers: Headers) -> tuple[HarnessError, int] | None:
        origins = headers.getlist("origin")
        foreign = [origin for origin in origins if origin not in self._origins]
        if not foreign:
            return None
        return Forbidden(f"pages from '{foreign[0]}' may not use this server"), 403

    def _wrong_token(self, scope: Scope, given: str | None) -> tuple[HarnessError, int] | None:
        secret = (given or "").encode()
        found: Token | None = None
        for known, token in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known, secret):
                found = token
        if given and found is not None:
            note_token(scope, found)
            return None
        problem = "a bearer token is needed" if not given else "the bearer token is not one of this server's"
        return Unauthorized(f"{problem}: send 'Authorization: Bearer TOKEN'"), 401


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    """A browser asks whether a page may call; it has no token yet. Its Origin was allowed, or we are not here."""
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _host_names(host: str) -> set[str]:
    if is_loopback(host):
        return {*LOOPBACK_NAMES, host}
    names = {host.lower()}
    if _is_wildcard(host):
        names |= {*LOOPBACK_NAMES, gethostname().lower()}
    return names


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    """A page can only give its own *name* to our address, so an address in Host is never a rebinding."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _name_of(host_header: str) -> str | None:
    """The host without its port; tunnels change the port, so it says nothing."""
    try:
        return urlsplit(f"//{host_header}").hostname
    except ValueError:
        return None
