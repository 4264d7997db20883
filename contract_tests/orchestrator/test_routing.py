"""Who runs a tool source, and why. The table of docs/delegation.md is written from the same cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.contract import LlmCapabilities, ToolSourceDescriptor, ToolSourceKind
from harness.contract.value import Label
from harness.errors import InvalidArgument
from harness.orchestrator.routing import (
    Delegate,
    PeerPlace,
    Reason,
    Route,
    decide_route,
    holds_secrets,
    is_loopback,
    is_private,
)

DOCUMENT = ROOT / "docs" / "delegation.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"

ALL = LlmCapabilities(delegatable_tool_sources=list(ToolSourceKind), reports_delegated_calls=True)
BLIND = ALL.model_copy(update={"reports_delegated_calls": False})
CLOUD = LlmCapabilities(delegatable_tool_sources=["provider_mcp"], reports_delegated_calls=True)
NONE = LlmCapabilities()

STDIO = ToolSourceDescriptor(name="s", kind="mcp_stdio", command="server")
PUBLIC = ToolSourceDescriptor(name="s", kind="mcp_http", url="https://mcp.example.com/mcp")
HERE = PUBLIC.model_copy(update={"url": "http://127.0.0.1:8000/mcp"})
LAN = PUBLIC.model_copy(update={"url": "http://printer.local/mcp"})
SECRET = PUBLIC.model_copy(update={"headers": [Label(name="Authorization", value="x")]})
SHARED = SECRET.model_copy(update={"share_secrets": True})

BESIDE, SERVER, AWAY = PeerPlace.BESIDE_US, PeerPlace.BEHIND_A_SERVER, PeerPlace.ON_ANOTHER_MACHINE


@dataclass(frozen=True)
class Case:
    source: ToolSourceDescriptor
    capabilities: LlmCapabilities
    place: PeerPlace
    route: Route
    reason: Reason
    wish: Delegate = Delegate.AUTO
    members: dict[str, Any] = field(default_factory=dict)


R, D = Route.ROUTED, Route.DELEGATED
CASES = [
    Case(STDIO, ALL, BESIDE, R, Reason.NOT_WANTED, Delegate.NEVER),
    Case(STDIO, NONE, BESIDE, R, Reason.NOT_TAKEN),
    Case(STDIO, CLOUD, BESIDE, R, Reason.NOT_TAKEN),
    Case(STDIO, ALL, BESIDE, R, Reason.RENAMED, members={"tied_by": Reason.RENAMED}),
    Case(STDIO, ALL, BESIDE, R, Reason.DIRECTORY, members={"tied_by": Reason.DIRECTORY}),
    Case(STDIO, ALL, AWAY, R, Reason.PROGRAM),
    Case(HERE, ALL, AWAY, R, Reason.LOOPBACK),
    Case(HERE, CLOUD, BESIDE, R, Reason.LOOPBACK),
    Case(LAN, ALL, AWAY, R, Reason.PRIVATE),
    Case(LAN, CLOUD, BESIDE, R, Reason.PRIVATE),
    Case(SECRET, ALL, BESIDE, R, Reason.SECRETS),
    Case(SECRET, CLOUD, BESIDE, R, Reason.SECRETS),
    Case(STDIO, BLIND, BESIDE, R, Reason.NOT_SHOWN),
    Case(STDIO, ALL, SERVER, R, Reason.SERVER_PROGRAM),
    Case(STDIO, ALL, BESIDE, D, Reason.TAKEN),
    Case(HERE, ALL, BESIDE, D, Reason.TAKEN),
    Case(HERE, ALL, SERVER, D, Reason.TAKEN),
    Case(LAN, ALL, SERVER, D, Reason.TAKEN),
    Case(PUBLIC, ALL, AWAY, D, Reason.TAKEN),
    Case(PUBLIC, CLOUD, BESIDE, D, Reason.TAKEN),
    Case(SHARED, ALL, AWAY, D, Reason.TAKEN),
    Case(STDIO, BLIND, BESIDE, D, Reason.REQUIRED, Delegate.REQUIRE),
    Case(STDIO, ALL, SERVER, D, Reason.REQUIRED, Delegate.REQUIRE),
]
SOURCES = {
    id(STDIO): "stdio",
    id(PUBLIC): "HTTP, public address",
    id(HERE): "HTTP, loopback address",
    id(LAN): "HTTP, private or `.local` address",
    id(SECRET): "HTTP, with a secret",
    id(SHARED): "HTTP, with a secret marked `shareSecrets`",
}
ADDED = {None: "", Reason.RENAMED: ", with a `prefix`", Reason.DIRECTORY: ", with a `cwd`"}
PEERS = {
    id(ALL): "takes the kind",
    id(BLIND): "takes the kind, does not report its calls",
    id(CLOUD): "a provider's API with its own MCP client",
    id(NONE): "takes none",
}
PLACES = {
    BESIDE: "beside us",
    SERVER: "behind a server on this machine",
    AWAY: "on another machine",
    PeerPlace.IN_A_CLOUD: "in a cloud",
}


@requirement("orchestrator:routing:decision")
@pytest.mark.parametrize("case", CASES)
def test_decision_and_its_reason(case: Case) -> None:
    decided = decide_route(case.source, case.wish, case.capabilities, case.place, **case.members)
    assert (decided.source, decided.route, decided.reason) == ("s", case.route, case.reason)
    assert (decided.kind is not None) == (case.route == Route.DELEGATED)


@requirement("orchestrator:routing:decision")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.route == R and case.wish == Delegate.AUTO], ids=lambda case: case.reason
)
def test_require_fails_with_the_reason_or_goes_against_a_mere_preference(case: Case) -> None:
    def decide() -> Any:
        return decide_route(case.source, Delegate.REQUIRE, case.capabilities, case.place, **case.members)

    if case.reason in (Reason.NOT_SHOWN, Reason.SERVER_PROGRAM):
        assert decide().route == Route.DELEGATED
    else:
        with pytest.raises(InvalidArgument) as caught:
            decide()
        assert case.reason in caught.value.message and "'s'" in caught.value.message


@requirement("orchestrator:routing:decision")
def test_every_reason_has_a_case() -> None:
    assert {case.reason for case in CASES} == set(Reason)


@requirement("orchestrator:routing:provider")
def test_public_server_is_handed_to_a_provider_as_a_source_of_its_kind() -> None:
    assert decide_route(PUBLIC, Delegate.AUTO, CLOUD, BESIDE).kind == "provider_mcp"
    assert decide_route(PUBLIC, Delegate.AUTO, ALL, BESIDE).kind == "mcp_http"


@requirement("orchestrator:routing:reach")
@pytest.mark.parametrize(
    ("url", "loopback", "private"),
    [
        ("http://127.0.0.1:1/", True, True),
        ("http://127.9.9.9/", True, True),
        ("http://[::1]/", True, True),
        ("http://localhost/", True, True),
        ("http://api.localhost/", True, True),
        ("http://10.0.0.4/", False, True),
        ("http://172.16.1.1/", False, True),
        ("http://192.168.1.1/", False, True),
        ("http://169.254.1.1/", False, True),
        ("http://100.64.0.1/", False, True),
        ("http://[fd00::1]/", False, True),
        ("http://[fe80::1]/", False, True),
        ("http://0.0.0.0/", False, True),
        ("http://printer/", False, True),
        ("http://nas.local/", False, True),
        ("http://NAS.Local./", False, True),
        ("http://db.internal/", False, True),
        ("http://router.lan/", False, True),
        ("https://8.8.8.8/", False, False),
        ("https://example.com/", False, False),
        ("https://local.example.com/", False, False),
    ],
)
def test_what_an_address_means_elsewhere(url: str, loopback: bool, private: bool) -> None:
    assert (is_loopback(url), is_private(url)) == (loopback, private)


@requirement("orchestrator:routing:secrets")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, False),
        ({"headers": [Label(name="X-Anything", value="1")]}, True),
        ({"env": [Label(name="GITHUB_TOKEN", value="1")]}, True),
        ({"env": [Label(name="API_KEY", value="1")]}, True),
        ({"env": [Label(name="DATABASE_PASSWORD", value="1")]}, True),
        ({"env": [Label(name="NODE_ENV", value="production")]}, False),
        ({"args": ["--api-key", "1"]}, True),
        ({"args": ["--token=1"]}, True),
        ({"args": ["monkey", "--root", "/srv"]}, False),
        ({"url": "https://user:word@example.com/"}, True),
        ({"url": "https://example.com/?api_key=1"}, True),
        ({"url": "https://example.com/?page=1"}, False),
    ],
)
def test_what_counts_as_a_secret(members: dict[str, Any], expected: bool) -> None:
    assert holds_secrets(ToolSourceDescriptor(name="s", kind="mcp_http", **members)) == expected


def table() -> str:
    rows = ["| source | peer | the peer is | `delegate` | decision | reason |", "|---|---|---|---|---|---|"]
    for case in CASES:
        place = PLACES[PeerPlace.IN_A_CLOUD if case.capabilities is CLOUD and case.source is not STDIO else case.place]
        source = SOURCES[id(case.source)] + ADDED[case.members.get("tied_by")]
        cells = [source, PEERS[id(case.capabilities)], place, f"`{case.wish}`", f"**{case.route}**", case.reason]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


@requirement("orchestrator:routing:table")
def test_table_of_the_documentation_is_that_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written == table(), f"write this between the marks of {DOCUMENT.name}:\n{table()}"
