"""GitHub Copilot CLI as an LLM that calls the host's tools: one process per conversation, in one of two modes."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import anyio
import platformdirs

from bridge_mcp.mapping import MappedTools, map_tools
from connectors._agent_session import AgentSession
from connectors._kept_policy import KeptPolicy, Unasked, check_kept, kept_policy, open_tools
from connectors._length_framer import LengthFramer
from connectors._options import check_taken
from connectors._process import open_process
from connectors._programs import ProgramVersions, Version, version_text
from connectors._recorded import RecordedProcesses, newest_note, process_note
from connectors._session_start import did_not_start, peer_started, pumping, tools_rewritten
from connectors._stall_watch import stall_limits
from connectors.acp.agent import SERVER_NAME
from connectors.acp.connector import capabilities_of, opened
from connectors.acp.opening import Start, server_of
from connectors.copilot.acp_protocol import CopilotAcpProtocol
from connectors.copilot.agent import (
    ASK_USER,
    COPILOT_ACP,
    EVENTS,
    HOW_TO_INSTALL,
    INTERNAL_TOOLS,
    MINIMUM,
    TESTED,
    UNASKED,
)
from connectors.copilot.argv import acp_launch, sdk_launch, session_params
from connectors.copilot.config import RESTRICTED_OPTIONS, CopilotOptions, read_options
from connectors.copilot.events import not_logged_in
from connectors.copilot.installed import find_program
from connectors.copilot.login import login_of
from connectors.copilot.sdk_protocol import CopilotSdkProtocol, SdkOpening
from harness.connector import Login, Session, SessionLog
from harness.contract.capabilities import (
    CallIds,
    Denial,
    InnerVersion,
    LlmCapabilities,
    Parallel,
    ResultOrder,
    Resume,
    SeedHistory,
    Streaming,
    ToolErrorFlag,
)
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, PeerLost, unwrapped
from harness.turn.events import notice

_RECORD = "copilot_session"
_MAX_RESULT_CHARS = 20_000
"""Longer ones are kept in a file and cut for the model."""


class _ResumeFailed(Exception):
    """Copilot does not have the session that was to be resumed."""


@dataclass(frozen=True, slots=True)
class _Plan:
    program: Path
    options: ConversationOptions
    copilot: CopilotOptions
    tools: MappedTools
    environ: Mapping[str, str]
    home: Path
    delegation: Delegation

    @property
    def policy(self) -> KeptPolicy:
        cwd = self.options.cwd or str(Path.cwd())
        return kept_policy("copilot", self.delegation, cwd, self.environ.get("HOME"))


class CopilotConnector(RecordedProcesses):
    """Reaches Copilot over the server mode of its SDKs, or over ACP and our bridge."""

    name = "copilot"
    variants: Mapping[str, Mapping[str, JsonValue]] = {"sdk": {"mode": "sdk"}, "acp": {"mode": "acp"}}
    restricted_options = RESTRICTED_OPTIONS

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._versions = ProgramVersions("copilot", HOW_TO_INSTALL, MINIMUM)

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        plan = self._plan(options)
        version = await self._version(plan)
        inner = InnerVersion(name="copilot", version=version_text(version), tested=version in TESTED)
        if login_of(plan.copilot, plan.environ, plan.home).is_there is False:
            raise not_logged_in(str(plan.program), inner)
        if _mode(plan, version) == "acp":
            acp_launch(str(plan.program), plan.copilot, options, plan.environ, plan.home)
            told = capabilities_of(COPILOT_ACP, options, inner)
            # a server on stdin is dropped without a word
            return told.model_copy(
                update={"delegatable_tool_sources": [ToolSourceKind.MCP_HTTP], "reports_usage": True}
            )
        return _sdk_capabilities(options, inner)

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        plan = self._plan(options)
        launch = acp_launch if plan.copilot.mode == "acp" else sdk_launch
        started = launch(str(plan.program), plan.copilot, options, plan.environ, plan.home)
        return {"argv": started.argv, "env": sorted(started.env), "cwd": started.params["cwd"]}

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open(options, delegation, log)

    async def login(self, options: ConversationOptions) -> Login:
        """Whether Copilot would find credentials."""
        plan = self._plan(options)
        return login_of(plan.copilot, plan.environ, plan.home)

    def check_delegation(self, options: ConversationOptions, delegation: Delegation) -> None:
        # which mode it will be is known when the version is: what holds in its ACP mode holds in both
        mode = read_options(options).mode
        check_kept(
            "copilot",
            delegation,
            options.internal_tools,
            UNASKED if mode == "sdk" else COPILOT_ACP.unasked or Unasked(),
        )

    @asynccontextmanager
    async def _open(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        self.check_delegation(options, delegation)
        plan = self._plan(options, delegation)
        version = await self._version(plan)
        plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            if _mode(plan, version) == "acp":
                yield await opened(stack, _acp_start(plan), log)
            else:
                yield await _opened_sdk(stack, plan, log)

    async def _version(self, plan: _Plan) -> Version:
        return await self._versions.version_of(
            plan.program, [str(plan.program), "--version"], plan.environ, {"COPILOT_AUTO_UPDATE": "false"}
        )

    def _plan(self, options: ConversationOptions, delegation: Delegation | None = None) -> _Plan:
        copilot = read_options(options)
        check_taken(options, "connector 'copilot'", {"effort"})
        delegation = delegation or Delegation()
        opened = {"internal_tools": open_tools(delegation.request_policy, options.internal_tools)}
        options = options.model_copy(update=opened)
        environ = dict(self._environ)
        return _Plan(
            program=find_program(copilot, environ),
            options=options,
            copilot=copilot,
            tools=map_tools(options.tools, prefix=f"{SERVER_NAME}-"),
            environ=environ,
            home=copilot.home or platformdirs.user_state_path("level2-harness") / "copilot-home",
            delegation=delegation,
        )


def _mode(plan: _Plan, version: Version) -> str:
    """The undocumented mode is taken by itself only where it was tried."""
    if plan.copilot.mode != "auto":
        return plan.copilot.mode
    return "sdk" if version in TESTED else "acp"


def _acp_start(plan: _Plan) -> Start:
    copilot = plan.copilot
    return Start(
        agent=COPILOT_ACP,
        launch=acp_launch(str(plan.program), copilot, plan.options, plan.environ, plan.home),
        options=plan.options,
        tools=plan.tools,
        stall=stall_limits(copilot),
        sources=[server_of(source) for source in plan.delegation.tool_sources],
        policy=plan.policy,
        capabilities={"_meta": {"github.com/copilot": {"events": list(EVENTS)}}},
        max_line_bytes=copilot.max_line_bytes,
        start_seconds=copilot.start_seconds,
        interrupt_seconds=copilot.interrupt_seconds,
        grace_seconds=copilot.grace_seconds,
        protocol=CopilotAcpProtocol,
    )


async def _opened_sdk(stack: AsyncExitStack, plan: _Plan, log: SessionLog) -> AgentSession:
    params = session_params(plan.copilot, plan.options, plan.tools.tools, plan.delegation.tool_sources)
    earlier = _recorded(log)
    if earlier is not None:
        try:
            return await stack.enter_async_context(
                _sdk_session(plan, SdkOpening(earlier, params, is_resumed=True), log)
            )
        except _ResumeFailed:
            text = f"Copilot does not have the session '{earlier}': the conversation starts afresh"
            log.notice(notice("history_lost", text))
    return await stack.enter_async_context(_sdk_session(plan, SdkOpening(str(uuid4()), params), log))


@asynccontextmanager
async def _sdk_session(plan: _Plan, opening: SdkOpening, log: SessionLog) -> AsyncGenerator[AgentSession]:
    copilot = plan.copilot
    launch = sdk_launch(str(plan.program), copilot, plan.options, plan.environ, plan.home)
    protocol = CopilotSdkProtocol(plan.options, dict(plan.tools.ours), opening, plan.policy)
    begun_at = time.monotonic()
    noted = opening.is_resumed

    def remember() -> None:
        nonlocal noted
        if not noted and protocol.has_spoken and protocol.session_id is not None:
            noted = True
            log.append({_RECORD: {"session_id": protocol.session_id, "version": protocol.version}})

    with unwrapped():
        async with open_process(
            launch.argv,
            env=launch.env,
            cwd=str(launch.params["cwd"]),
            name="copilot",
            grace_seconds=copilot.grace_seconds,
            framer=LengthFramer(max_message_bytes=copilot.max_line_bytes),
        ) as process:
            log.append(process_note(process.record))
            session = AgentSession(
                process,
                protocol,
                interrupt_seconds=copilot.interrupt_seconds,
                stall=stall_limits(copilot),
                has_read=remember,
            )
            protocol.connect()
            await _until_open(session, protocol, plan)
            started_now = peer_started(f"copilot {protocol.version}", plan.program, process.pid, begun_at)
            session.announce(started_now, *tools_rewritten(plan.tools.rewrites))
            async with pumping(session.pump):
                yield session


async def _until_open(session: AgentSession, protocol: CopilotSdkProtocol, plan: _Plan) -> None:
    seconds = plan.copilot.start_seconds
    try:
        with anyio.fail_after(seconds):
            await session.wait_until(lambda: protocol.session_id is not None or protocol.resume_failed)
    except TimeoutError:
        raise ConnectorUnavailable(
            f"'{plan.program}' opened no session within {seconds:g} s; use the option mode=acp, or {HOW_TO_INSTALL}"
        ) from None
    except PeerLost as error:
        raise did_not_start(plan.program, error, HOW_TO_INSTALL) from error
    if protocol.resume_failed:
        raise _ResumeFailed


def _sdk_capabilities(options: ConversationOptions, inner: InnerVersion) -> LlmCapabilities:
    return LlmCapabilities(
        supports_tools=True,
        supports_parallel_tool_calls=True,
        routable_request_kinds=[RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION],
        delegatable_tool_sources=[ToolSourceKind.MCP_STDIO, ToolSourceKind.MCP_HTTP],
        supports_request_policy_delegation=True,
        reports_delegated_calls=True,
        parallel=Parallel.ALL,
        resume=Resume.CONTINUED,
        seed_history=SeedHistory.AS_TEXT,
        denial=Denial.CONTINUES,
        result_order=ResultOrder.CALL,
        call_ids=CallIds.EXACT,
        tool_error_flag=ToolErrorFlag.TEXT_ONLY,
        images_in_prompt=True,
        max_result_chars=_MAX_RESULT_CHARS,
        internal_tools=[*INTERNAL_TOOLS, ASK_USER],
        web_search=False,
        streaming=Streaming.TOKEN,
        reports_usage=True,
        inner=inner,
    )


def _recorded(log: SessionLog) -> str | None:
    noted = newest_note(log.records(), _RECORD)
    return None if noted is None else str(noted["session_id"])
