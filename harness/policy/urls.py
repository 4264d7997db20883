"""URLs against hosts: `domain:example.org`, or `domain:*.example.org` for what lies below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_WANTED = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d+)?|\*")
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?([/?#][!-\[\]-~]*)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def wanted_host(pattern: str) -> str | None:
    """The host that a pattern names; null if it is no such pattern."""
    host = pattern.removeprefix("domain:")
    return host.lower() if _WANTED.fullmatch(host) else None


def url_is_surely(pattern: str, url: str) -> bool:
    """Whether every client would go to this host: plain http(s), no user name, nothing unusual."""
    wanted = wanted_host(pattern)
    if wanted is None or _URL.fullmatch(url) is None or "@" in url.split("/", 3)[2]:
        return False
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    if _HOST.fullmatch(host) is None or ".." in host:
        return False
    name, _, wanted_port = wanted.partition(":")
    if str(port or _DEFAULT_PORTS[parts.scheme]) != (wanted_port or str(_DEFAULT_PORTS[parts.scheme])):
        return False
    return _host_fits(name, host)


def url_may_be(pattern: str, url: str) -> bool:
    """Whether any client might go to this host."""
    wanted = wanted_host(pattern)
    if wanted is None:
        return True
    return any(_host_fits(wanted.partition(":")[0], host) for host in _possible_hosts(url))


def _possible_hosts(url: str) -> Iterator[str]:
    """Every text in it that could be read as a host."""
    for text in (url, unquote(url)):
        cleaned = re.sub(r"[\s\x00-\x1f]", "", text).replace("\\", "/").lower()
        cleaned = cleaned.translate({0x3002: ".", 0xFF0E: ".", 0xFF61: "."})
        for piece in re.split(r"[/@?#:]+", cleaned):
            yield piece.rstrip(".")
            try:
                yield piece.encode("idna").decode().rstrip(".")
            except UnicodeError:
                continue


def _host_fits(wanted: str, host: str) -> bool:
    if wanted == "*":
        return bool(host)
    if wanted.startswith("*."):
        return host.endswith(wanted[1:]) and len(host) > len(wanted) - 1
    return host == wanted
