"""A running CLI that is ready for messages: endpoint, configuration file, process and session, one around the other."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bridge_mcp.http import BridgeAddress, open_endpoint
from connectors._process import PeerProcess, open_process
from connectors._recorded import process_note
from connectors._session_start import peer_started, pumping, tools_rewritten
from connectors._stall_watch import StallWatch, stall_limits
from connectors.claude.argv import SERVER_NAME, Handed, Start
from connectors.claude.bridge_route import BridgeRoute
from connectors.claude.delegation import allowed_tool_names, delegated_servers, tools_denied_whole
from connectors.claude.gate import Gate
from connectors.claude.history_check import HistoryCheck
from connectors.claude.host_tools import HostTools
from connectors.claude.mcp_config import bridge_server, config_file
from connectors.claude.memory import Memory
from connectors.claude.plan import Plan
from connectors.claude.protocol import ClaudeProtocol, Setting
from connectors.claude.session import ClaudeSession, Conditions
from connectors.claude.versions import Version, version_notices, version_text
from harness.connector import SessionLog
from harness.contract.options import OutputDetail
from harness.contract.value import JsonValue
from harness.errors import unwrapped
from harness.policy import Place
from harness.turn.events import TurnEvent, notice


@asynccontextmanager
async def opened(
    plan: Plan, version: Version, start: Start, memory: Memory, shape: Mapping[str, JsonValue], log: SessionLog
) -> AsyncGenerator[ClaudeSession]:
    """The session; `shape` is what the next turn asked for, as `plan` has it.

    Raises:
        ConnectorUnavailable: it cannot be used; one line with the remedy.
        ResumeFailed: it has no such session.
    """
    is_bridged, delegation = plan.claude.route == "bridge", plan.delegation
    may_ask = bool(plan.options.internal_tools or delegation.tool_sources)
    tools = HostTools(plan.tools, approves=is_bridged and may_ask)
    protocol = ClaudeProtocol(_setting(plan, tools, start, memory))
    watch = StallWatch("Claude Code", protocol, stall_limits(plan.claude))
    route = BridgeRoute(tools, protocol, watch) if is_bridged and tools.server.tools else None
    begun_at = time.monotonic()
    with unwrapped():
        async with AsyncExitStack() as stack:
            servers = delegated_servers(delegation.tool_sources, plan.claude)
            bridge: BridgeAddress | None = None
            if route is not None:
                endpoint = open_endpoint(tools.server, route.on_call, before_withdrawal=route.before_withdrawal)
                bridge = await stack.enter_async_context(endpoint)
                servers[SERVER_NAME] = bridge_server(bridge)
            handed = Handed(
                stack.enter_context(config_file(servers)),
                tools.approve_name or "stdio",
                tuple(tools_denied_whole(delegation.request_policy)),
            )
            process = await stack.enter_async_context(_process(plan, version, start, handed))
            log.append(process_note(process.record))
            conditions = Conditions(plan, version, shape, is_fresh=not start.resumes and start.fork is None)
            session = ClaudeSession(process, protocol, conditions, watch=watch, route=route, log=log)
            told = await session.start(bridge)
            session.announce(*_first_notices(plan, told or version, process, begun_at))
            async with pumping(session.pump):
                yield session


def _setting(plan: Plan, tools: HostTools, start: Start, memory: Memory) -> Setting:
    delegation = plan.delegation
    place = Place(str(plan.cwd), plan.environ.get("HOME"), os.path.realpath)
    return Setting(
        tools,
        Gate(delegation.request_policy, place, allowed_tool_names(delegation.tool_sources)),
        tunnels=plan.claude.route == "tunnel",
        internal_tools=frozenset(plan.options.internal_tools) - {*tools_denied_whole(delegation.request_policy)},
        sources=frozenset(source.name for source in delegation.tool_sources),
        wants_raw=plan.options.output_detail == OutputDetail.RAW,
        output_schema_json=plan.options.output_schema_json,
        history=HistoryCheck(memory.turns if start.resumes else (), _finds_in),
        totals=memory.totals if start.resumes else None,
    )


@asynccontextmanager
async def _process(plan: Plan, version: Version, start: Start, handed: Handed) -> AsyncGenerator[PeerProcess]:
    started = plan.launch(start, version, handed)
    async with open_process(
        started.argv,
        env=started.env,
        cwd=plan.cwd,
        name="claude",
        max_line_bytes=plan.claude.max_line_bytes,
        grace_seconds=plan.claude.grace_seconds,
    ) as process:
        yield process


def _first_notices(plan: Plan, version: Version, process: PeerProcess, begun_at: float) -> list[TurnEvent]:
    return [
        peer_started(f"claude {version_text(version)}", plan.program, process.pid, begun_at),
        *(notice(code, text) for code, text in version_notices(version)),
        *tools_rewritten(plan.tools.rewrites),
    ]


def _finds_in(path: str, wanted: Sequence[str]) -> list[str]:
    try:
        text = Path(path).read_bytes()
    except OSError:
        return []
    return [one for one in wanted if one.encode() in text]
