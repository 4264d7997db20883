"""The MCP servers of one conversation: who runs each, and those that run here, open for its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.contract.capabilities import LlmCapabilities
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.tools import ToolSourceDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.lines import SourceLine
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.policy_desk import Elsewhere
from harness.orchestrator.routing import PeerPlace, Route, RouteDecision, decide_route

if TYPE_CHECKING:
    from harness.orchestrator.mcp_source import McpSource


@dataclass(frozen=True, slots=True)
class Sources:
    decisions: Sequence[RouteDecision] = ()
    routed: Sequence[McpSource] = ()
    delegated: Sequence[ToolSourceDescriptor] = ()

    @property
    def lines(self) -> list[SourceLine]:
        """The decisions as the first lines of a run."""
        return [SourceLine(source=one.source, route=one.route, reason=one.reason) for one in self.decisions]


def decide_routes(servers: Sequence[McpServer], capabilities: LlmCapabilities, place: PeerPlace) -> list[RouteDecision]:
    """One decision for each server, in their order.

    Raises:
        InvalidArgument: two have one name, or delegation is required and cannot be.
    """
    for name, count in Counter(server.name for server in servers).items():
        if count > 1:
            raise InvalidArgument(f"{count} MCP servers are called '{name}'; give each a name of its own")
    return [
        decide_route(server.source, server.delegate, capabilities, place, tied_by=server.tied_by) for server in servers
    ]


def place_of(llm: ConversationalLLM) -> PeerPlace:
    """Where the LLM's peer is, as far as the LLM tells: one that does not runs in this process."""
    if not isinstance(llm, Elsewhere):
        return PeerPlace.BESIDE_US
    return PeerPlace.ON_ANOTHER_MACHINE if llm.is_elsewhere else PeerPlace.BEHIND_A_SERVER


@asynccontextmanager
async def open_sources(
    llm: ConversationalLLM, servers: Sequence[McpServer], capabilities: LlmCapabilities
) -> AsyncGenerator[Sources]:
    """Decides about each server and opens those that are routed, with all their tools.

    Raises:
        InvalidArgument: see `decide_routes`.
        ConnectorUnavailable: a routed server cannot be started or reached.
    """
    if not servers:
        yield Sources()
        return
    from harness.orchestrator.mcp_source import open_mcp_source

    decisions = decide_routes(servers, capabilities, place_of(llm))
    async with AsyncExitStack() as stack:
        routed: list[McpSource] = []
        delegated: list[ToolSourceDescriptor] = []
        for server, decision in zip(servers, decisions, strict=True):
            if decision.route == Route.DELEGATED:
                delegated.append(server.source.model_copy(update={"kind": decision.kind}))
            else:
                routed.append(await stack.enter_async_context(open_mcp_source(server)))
        yield Sources(decisions, routed, delegated)
