"""Who runs a tool source: this host (routed) or the peer itself (delegated). A pure decision, with its reason."""

from __future__ import annotations

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


class PeerPlace(StrEnum):
    """Where the peer is that would reach a delegated source."""

    BESIDE_US = "beside_us"
    """On this machine, started by this process."""
    BEHIND_A_SERVER = "behind_a_server"
    """On this machine, started by another harness."""
    ON_ANOTHER_MACHINE = "on_another_machine"
    IN_A_CLOUD = "in_a_cloud"
    """A provider's API connects to the source, from the internet."""


class Route(StrEnum):
    ROUTED = "routed"
    DELEGATED = "delegated"


@dataclass(frozen=True, slots=True)
class RouteDecision:
    source: str
    route: Route
    reason: str
    kind: ToolSourceKind | str | None = None
    """As what the peer is given it; null where it is routed."""


class Reason(StrEnum):
    """Why a source is routed or delegated: the rows of the table in `docs/delegation.md`, the first that fits wins."""

    NOT_WANTED = "the caller wants it routed"
    NOT_TAKEN = "the peer does not take sources of this kind"
    RENAMED = "its tools have other names here"
    DIRECTORY = "it wants a working directory, which the peer is not told"
    PROGRAM = "it is a program of this machine, and the peer is elsewhere"
    LOOPBACK = "its address is this machine's own, and the peer is elsewhere"
    PRIVATE = "its address is private, and the peer is elsewhere"
    SECRETS = "it holds secrets that are not marked shareable"
    NOT_SHOWN = "the peer would not show the calls it makes itself"
    SERVER_PROGRAM = "it is a program, and a server starts programs only for callers it trusts"
    TAKEN = "the peer takes it and reaches it"
    REQUIRED = "the caller requires it, and the peer takes it and reaches it"


_AGAINST_AUTO_ONLY = frozenset({Reason.NOT_SHOWN, Reason.SERVER_PROGRAM})
"""These make routing the better choice; they do not make delegation impossible."""


def decide_route(
    source: ToolSourceDescriptor,
    wish: Delegate,
    capabilities: LlmCapabilities,
    place: PeerPlace,
    *,
    tied_by: Reason | None = None,
) -> RouteDecision:
    """Who runs the source's tools; `tied_by` is what the host adds to it that a peer could not be given.

    Raises:
        InvalidArgument: delegation is required and something stands in its way, which the message names.
    """
    if wish == Delegate.NEVER:
        return RouteDecision(source.name, Route.ROUTED, Reason.NOT_WANTED)
    kind = _taken_as(source, capabilities)
    obstacle = Reason.NOT_TAKEN if kind is None else _obstacle(source, kind, capabilities, place, tied_by)
    if wish == Delegate.REQUIRE:
        if obstacle is not None and obstacle not in _AGAINST_AUTO_ONLY:
            raise InvalidArgument(
                f"tool source '{source.name}' cannot be delegated, which 'delegate: require' asks for: {obstacle}; "
                "set 'delegate' to 'auto' or 'never' to have it run here"
            )
        return RouteDecision(source.name, Route.DELEGATED, Reason.REQUIRED, kind)
    if obstacle is not None:
        return RouteDecision(source.name, Route.ROUTED, obstacle)
    return RouteDecision(source.name, Route.DELEGATED, Reason.TAKEN, kind)


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


def _taken_as(source: ToolSourceDescriptor, capabilities: LlmCapabilities) -> ToolSourceKind | str | None:
    """A server with an address may also be handed to the provider's own MCP client."""
    taken = capabilities.delegatable_tool_sources
    if source.kind in taken:
        return source.kind
    if source.kind == ToolSourceKind.MCP_HTTP and ToolSourceKind.PROVIDER_MCP in taken:
        return ToolSourceKind.PROVIDER_MCP
    return None


def _obstacle(
    source: ToolSourceDescriptor,
    kind: ToolSourceKind | str,
    capabilities: LlmCapabilities,
    place: PeerPlace,
    tied_by: Reason | None,
) -> Reason | None:
    if tied_by is not None:
        return tied_by
    unreachable = _unreachable(source, PeerPlace.IN_A_CLOUD if kind == ToolSourceKind.PROVIDER_MCP else place)
    if unreachable is not None:
        return unreachable
    if holds_secrets(source) and not source.share_secrets:
        return Reason.SECRETS
    if not capabilities.reports_delegated_calls:
        return Reason.NOT_SHOWN
    if source.kind == ToolSourceKind.MCP_STDIO and place == PeerPlace.BEHIND_A_SERVER:
        return Reason.SERVER_PROGRAM
    return None


def _unreachable(source: ToolSourceDescriptor, place: PeerPlace) -> Reason | None:
    if place in (PeerPlace.BESIDE_US, PeerPlace.BEHIND_A_SERVER):
        return None
    if source.kind == ToolSourceKind.MCP_STDIO:
        return Reason.PROGRAM
    if source.url is not None and is_loopback(source.url):
        return Reason.LOOPBACK
    if source.url is not None and is_private(source.url):
        return Reason.PRIVATE
    return None
