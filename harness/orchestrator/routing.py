"""Who runs a tool source: this host (routed) or the peer itself (delegated). A pure decision, with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from harness.contract.capabilities import LlmCapabilities
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.errors import InvalidArgument

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
_SECRET_WORDS = ("auth", "key", "token", "secret", "password", "passwd", "cookie", "credential")


class Delegate(StrEnum):
    """What the caller wants for a source."""

    AUTO = "auto"
    """Delegated only where nothing speaks against it."""
    NEVER = "never"
    REQUIRE = "require"
    """An error where it cannot be."""


class Place(StrEnum):
    """From where a delegated source would be reached."""

    SAME_MACHINE = "same_machine"
    """An inner harness that runs beside us, as our user."""
    OTHER_MACHINE = "other_machine"
    """Behind another harness, over HTTP."""
    CLOUD = "cloud"
    """A provider's API connects to it, from the internet."""


class Route(StrEnum):
    ROUTED = "routed"
    DELEGATED = "delegated"


@dataclass(frozen=True, slots=True)
class RouteDecision:
    source: str
    route: Route
    reason: str


def decide_route(
    source: ToolSourceDescriptor,
    wish: Delegate,
    capabilities: LlmCapabilities,
    place: Place,
    *,
    has_prefix: bool = False,
) -> RouteDecision:
    """The first line of the table in `docs/delegation.md` that fits.

    Raises:
        InvalidArgument: delegation is required and something stands in its way, which the message names.
    """
    if wish == Delegate.NEVER:
        return RouteDecision(source.name, Route.ROUTED, "the caller wants it routed")
    obstacle = _obstacle(source, capabilities, place, has_prefix=has_prefix)
    if obstacle is None and wish == Delegate.AUTO and not capabilities.reports_delegated_calls:
        obstacle = "the peer would not show the calls it makes itself"
    if obstacle is None:
        wanted = "the caller requires it, and " if wish == Delegate.REQUIRE else ""
        return RouteDecision(source.name, Route.DELEGATED, f"{wanted}the peer takes it and reaches it")
    if wish == Delegate.REQUIRE:
        raise InvalidArgument(
            f"tool source '{source.name}' cannot be delegated, which 'delegate: require' asks for: {obstacle}; "
            "set 'delegate' to 'auto' or 'never' to have it run here"
        )
    return RouteDecision(source.name, Route.ROUTED, obstacle)


def is_secret_name(name: str) -> bool:
    """Whether a header or variable of this name is taken for a secret: by the words in it, generously."""
    lowered = name.lower()
    return any(word in lowered for word in _SECRET_WORDS)


def holds_secrets(source: ToolSourceDescriptor) -> bool:
    """Every header counts, since it is there to be let in; variables, options and URL parameters by their names."""
    url = urlsplit(source.url or "")
    named = [variable.name for variable in source.env]
    named += [argument for argument in source.args if argument.startswith("-")]
    named += [pair.partition("=")[0] for pair in url.query.split("&")]
    return bool(source.headers or url.password or url.username or any(map(is_secret_name, named)))


def is_private(url: str) -> bool:
    """Whether an address means something only inside its own network, or on its own machine."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def is_loopback(url: str) -> bool:
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def told(decisions: Iterable[RouteDecision]) -> Sequence[str]:
    """One line each, for the trace and for people."""
    return [f"tool source '{one.source}' is {one.route}: {one.reason}" for one in decisions]


def _obstacle(
    source: ToolSourceDescriptor, capabilities: LlmCapabilities, place: Place, *, has_prefix: bool
) -> str | None:
    if source.kind not in capabilities.delegatable_tool_sources:
        return f"the peer does not take sources of kind '{source.kind}'"
    if has_prefix:
        return "its tools are given other names here"
    unreachable = _unreachable(source, place)
    if unreachable is not None:
        return unreachable
    if holds_secrets(source) and not source.share_secrets:
        return "it holds secrets that are not marked shareable"
    return None


def _unreachable(source: ToolSourceDescriptor, place: Place) -> str | None:
    if place == Place.SAME_MACHINE:
        return None
    where = "another machine" if place == Place.OTHER_MACHINE else "the provider's cloud"
    if source.kind == ToolSourceKind.MCP_STDIO:
        return f"it is a program of this machine, and the peer runs on {where}"
    if source.url is None:
        return None
    if is_loopback(source.url):
        return f"its address is this machine's own, and the peer runs on {where}"
    if is_private(source.url):
        return f"its address is private, and the peer runs on {where}"
    return None
