"""Starts an agent, opens its session with the bridge to our tools, and gives the session when it can take a message."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bridge_mcp.answers import AnswerMode
from bridge_mcp.http import BridgeAddress, open_endpoint, relay_command
from bridge_mcp.mapping import MappedTools
from bridge_mcp.protocol import CallRaised, McpServer
from connectors._agent_session import AgentSession
from connectors._json import JsonObject, object_in, plain_text_in
from connectors._kept_policy import KeptPolicy
from connectors._process import open_process
from connectors._recorded import process_note
from connectors._session_start import did_not_start, peer_started, pumping, tools_rewritten
from connectors._stall_watch import StallLimits
from connectors.acp.agent import SERVER_NAME, Agent
from connectors.acp.argv import Launch
from connectors.acp.bridge import AcpBridge
from connectors.acp.client_calls import NO_RIGHTS, ClientRights
from connectors.acp.client_side import ClientSide
from connectors.acp.handshake import Opening
from connectors.acp.names import ToolNames
from connectors.acp.protocol import AcpProtocol
from connectors.acp.records import CallNotes, note_session
from connectors.acp.terminals import Terminals
from harness.connector import SessionLog
from harness.contract.options import ConversationOptions
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.errors import ConnectorUnavailable, NotSupported, PeerLost, unwrapped
from harness.turn.events import TurnEvent, notice


class ResumeFailed(Exception):
    """The agent does not have the session that was to be taken up."""


@dataclass(frozen=True, slots=True)
class Start:
    """What opening a session needs to know, put together before anything is started."""

    agent: Agent
    launch: Launch
    options: ConversationOptions
    tools: MappedTools
    stall: StallLimits
    sources: list[JsonObject] = field(default_factory=list[JsonObject])
    bridge: str = "auto"
    mode: str | None = None
    auth_method: str | None = None
    capabilities: JsonObject | None = None
    rights: ClientRights = NO_RIGHTS
    policy: KeptPolicy | None = None
    command_env: Mapping[str, str] = field(default_factory=dict[str, str])
    """In which the commands run that the agent leaves to us."""
    max_line_bytes: int = 64 * 1024 * 1024
    start_seconds: float = 60.0
    interrupt_seconds: float = 8.0
    grace_seconds: float = 3.0
    protocol: Callable[[Agent, ConversationOptions, ToolNames, Opening], AcpProtocol] = AcpProtocol


@asynccontextmanager
async def open_agent_session(start: Start, earlier: str | None, log: SessionLog) -> AsyncGenerator[AgentSession]:
    """A running agent with its session, a new one or an earlier one.

    Raises:
        ConnectorUnavailable: it cannot be used as asked, or does not see our tools.
        ResumeFailed: it has no such session.
    """
    agent, launch = start.agent, start.launch
    begun_at = time.monotonic()
    _prepare(launch)
    opening = Opening(
        launch.params,
        earlier,
        launch.model,
        start.mode,
        start.auth_method,
        start.capabilities,
        start.rights,
        start.policy,
    )
    names = ToolNames(SERVER_NAME, start.tools.ours)
    protocol = start.protocol(agent, start.options, names, opening)
    server = McpServer(start.tools.tools, name=SERVER_NAME, call_id_of=_told_id(agent))
    notes = CallNotes(log, agent)
    session: AgentSession | None = None
    bridge: AcpBridge | None = None
    client: ClientSide | None = None

    async def on_call(call: CallRaised) -> JsonObject:
        assert session is not None and bridge is not None, "no session is open before there is a bridge"
        with session.watch.host_is_asked():
            return await bridge.on_call(call)

    with unwrapped():
        async with (
            open_endpoint(server, on_call, mode=AnswerMode.STREAM) as address,
            open_process(
                launch.argv,
                env=launch.env,
                cwd=str(launch.params["cwd"]),
                name=agent.name,
                max_line_bytes=start.max_line_bytes,
                grace_seconds=start.grace_seconds,
            ) as process,
        ):
            log.append(process_note(process.record))
            noted = earlier is not None

            def has_read() -> None:
                nonlocal noted
                if not noted and protocol.has_prompted and protocol.session_id is not None:
                    noted = True
                    note_session(log, agent, protocol.session_id, protocol.version)
                assert bridge is not None
                bridge.has_read()
                if protocol.turn_is_over:
                    notes.all_closed()
                if client is not None:
                    client.has_read()
                _check_tools(protocol, address, agent, has_tools=bool(start.tools.tools))

            def cancelled() -> None:
                if client is not None:
                    client.stop()

            session = AgentSession(
                process,
                protocol,
                interrupt_seconds=start.interrupt_seconds,
                stall=start.stall,
                has_read=has_read,
                cancelled=cancelled,
            )
            bridge = AcpBridge(start.tools, protocol, lambda: session.sink, notes)
            await _until_open(session, protocol, start, address)
            started_now = peer_started(f"{agent.name} {protocol.version}", launch.argv[0], process.pid, begun_at)
            forgotten = _forgotten(notes, agent) if earlier is not None else []
            session.announce(started_now, *tools_rewritten(start.tools.rewrites), *forgotten)
            async with pumping(session.pump) as tasks:
                terminals = Terminals(tasks, start.command_env, grace_seconds=start.grace_seconds)
                root = Path(str(launch.params["cwd"]))
                client = ClientSide(
                    protocol.requests, tasks, root, terminals, sink=lambda: session.sink, flush=session.flush
                )
                yield session


def _prepare(launch: Launch) -> None:
    for path, text in launch.files.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path, target in launch.links.items():
        if target.exists() and not path.exists():
            path.unlink(missing_ok=True)
            path.symlink_to(target)


async def _until_open(session: AgentSession, protocol: AcpProtocol, start: Start, address: BridgeAddress) -> None:
    agent, seconds = start.agent, start.start_seconds
    try:
        with anyio.fail_after(seconds):
            protocol.initialize()
            await session.wait_until(lambda: protocol.is_initialized)
            protocol.open_session(_servers(start, protocol, address))
            await session.wait_until(lambda: protocol.session_id is not None or protocol.resume_failed)
            if protocol.resume_failed:
                raise ResumeFailed
            if start.tools.tools and not agent.lists_tools_late:
                await _until_listed(session, address)
    except TimeoutError:
        is_open = protocol.session_id is not None
        what = "did not ask for the host's tools" if is_open else "opened no session"
        raise ConnectorUnavailable(
            f"'{agent.name}' {protocol.version} {what} within {seconds:g} s; {agent.remedy}",
            reason="tools_unavailable" if is_open else "not_installed",
        ) from None
    except PeerLost as error:
        raise did_not_start(start.launch.argv[0], error, agent.remedy) from error


async def _until_listed(session: AgentSession, address: BridgeAddress) -> None:
    """Reads on while the agent connects to the bridge: the first message is held until it has our tools."""

    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            await session.wait_until(address.tools_listed.is_set)

        tasks.start_soon(read)
        await address.tools_listed.wait()
        tasks.cancel_scope.cancel()


def _check_tools(protocol: AcpProtocol, address: BridgeAddress, agent: Agent, *, has_tools: bool) -> None:
    """An agent that connects late must have our tools before its model says anything."""
    if has_tools and agent.lists_tools_late and protocol.has_heard and not address.tools_listed.is_set():
        raise ConnectorUnavailable(
            f"'{agent.name}' {protocol.version} started without the host's tools; {agent.remedy}",
            reason="tools_unavailable",
        )


def _servers(start: Start, protocol: AcpProtocol, address: BridgeAddress) -> list[JsonObject]:
    servers = list(start.sources)
    if not start.tools.tools:
        return servers
    if start.bridge == "http" or (start.bridge == "auto" and protocol.takes_http):
        headers = [{"name": "Authorization", "value": f"Bearer {address.token}"}]
        return [{"type": "http", "name": SERVER_NAME, "url": address.url, "headers": headers}, *servers]
    argv, env = relay_command(address)
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return [{"name": SERVER_NAME, "command": argv[0], "args": argv[1:], "env": variables}, *servers]


def server_of(source: ToolSourceDescriptor) -> JsonObject:
    """A tool source that the agent may use itself, in its words.

    Raises:
        NotSupported: of another kind, or with secrets that are not to be shared.
    """
    if (source.env or source.headers) and not source.share_secrets:
        raise NotSupported(f"the tool source '{source.name}' has 'env' or 'headers', which the agent would be told")
    match source.kind:
        case ToolSourceKind.MCP_STDIO:
            env = [{"name": pair.name, "value": pair.value} for pair in source.env]
            return {"name": source.name, "command": source.command, "args": source.args, "env": env}
        case ToolSourceKind.MCP_HTTP:
            headers = [{"name": pair.name, "value": pair.value} for pair in source.headers]
            return {"type": "http", "name": source.name, "url": source.url, "headers": headers}
        case _:
            raise NotSupported(f"an ACP agent cannot be given a tool source of kind '{source.kind}'")


def _forgotten(notes: CallNotes, agent: Agent) -> list[TurnEvent]:
    named = ", ".join(f"'{tool}'" for tool in notes.take_forgotten())
    told = (
        f"{agent.name} has forgotten calls that were open when it died: its model does not know that it called {named}"
    )
    return [notice("history_lost", told)] if named else []


def _told_id(agent: Agent) -> Callable[[JsonObject], str | None]:
    member = agent.call_id_meta

    def told(params: JsonObject) -> str | None:
        return plain_text_in(object_in(params.get("_meta")).get(member)) or None if member is not None else None

    return told
