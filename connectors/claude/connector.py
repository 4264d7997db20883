"""Claude Code as an LLM that calls the host's tools: one long-lived CLI process per conversation."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from uuid import uuid4

import anyio
import platformdirs

from bridge_mcp.http import BridgeAddress, open_endpoint
from bridge_mcp.mapping import MAX_RESULT_CHARS, MappedTools, map_tools
from connectors._json import JsonObject
from connectors._process import open_process
from connectors.claude.argv import (
    MAX_CALL_WAIT_MS,
    SERVER_NAME,
    TOOL_PREFIX,
    Handed,
    Launch,
    launch,
    needs_isolated_home,
)
from connectors.claude.bridge_route import BridgeRoute
from connectors.claude.config import RESTRICTED_OPTIONS, ClaudeOptions, read_options
from connectors.claude.delegation import allowed_tool_names, delegated_servers, policy_flags
from connectors.claude.gate import Gate
from connectors.claude.host_tools import HostTools
from connectors.claude.installed import ProgramVersions, find_program
from connectors.claude.login import login_of_program
from connectors.claude.mcp_config import bridge_server, config_file
from connectors.claude.protocol import ClaudeProtocol, Setting
from connectors.claude.session import ClaudeSession, ResumeFailed
from connectors.claude.versions import TESTED, version_text
from harness.connector import Login, Session, SessionLog
from harness.contract.capabilities import (
    CallIds,
    Denial,
    InnerVersion,
    LlmCapabilities,
    Parallel,
    ResultOrder,
    Resume,
    Streaming,
    ToolErrorFlag,
)
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions, OutputDetail
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind
from harness.contract.value import JsonValue
from harness.errors import NotSupported, unwrapped
from harness.policy import Place
from harness.turn.events import notice

_RECORD = "claude_session"
INTERNAL_TOOLS = (
    *("Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskCreate", "TaskGet"),
    *("TaskList", "TaskStop", "TaskUpdate", "WebFetch", "WebSearch", "Write"),
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What opening a session needs to know, put together before anything is started."""

    program: Path
    options: ConversationOptions
    claude: ClaudeOptions
    tools: MappedTools
    environ: Mapping[str, str]
    cwd: Path
    home: Path | None
    delegation: Delegation

    def launch(self, session_id: str, *, resume: bool, handed: Handed) -> Launch:
        return launch(
            str(self.program),
            self.options,
            self.claude,
            session_id=session_id,
            resume=resume,
            environ=self.environ,
            home=self.home,
            handed=handed,
        )


class ClaudeConnector:
    """Reaches the Claude Code CLI over its control protocol, the tools tunnelled through it as an MCP server."""

    name = "claude"
    variants: Mapping[str, Mapping[str, JsonValue]] = {"bridge": {"route": "bridge"}}
    restricted_options = RESTRICTED_OPTIONS

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._versions = ProgramVersions()

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        plan = self._plan(options)
        plan.launch(str(uuid4()), resume=False, handed=Handed())
        version = await self._versions.version_of(plan.program, plan.environ)
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            routable_request_kinds=[RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION],
            delegatable_tool_sources=[ToolSourceKind.MCP_STDIO, ToolSourceKind.MCP_HTTP],
            supports_request_policy_delegation=True,
            reports_delegated_calls=True,
            parallel=Parallel.READ_ONLY,
            resume=Resume.CONTINUED,
            denial=Denial.CONTINUES,
            result_order=ResultOrder.COMPLETION,
            call_ids=CallIds.EXACT,
            tool_error_flag=ToolErrorFlag.KEPT,
            images_in_prompt=True,
            images_in_tool_results=True,
            max_result_chars=MAX_RESULT_CHARS,
            max_call_wait_ms=MAX_CALL_WAIT_MS,
            internal_tools=list(INTERNAL_TOOLS),
            web_search="WebSearch" in options.internal_tools,
            streaming=Streaming.TOKEN,
            reports_usage=True,
            reports_cost=True,
            inner=InnerVersion(name="claude-code", version=version_text(version), tested=version in TESTED),
        )

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        plan = self._plan(options)
        started = plan.launch("<a new uuid>", resume=False, handed=Handed())
        return {"argv": started.argv, "env": sorted(started.env), "cwd": str(plan.cwd)}

    async def login(self, options: ConversationOptions) -> Login:
        """Whether the CLI of these options would find credentials."""
        plan = self._plan(options)
        started = plan.launch(str(uuid4()), resume=False, handed=Handed())
        return await login_of_program(plan.program, started.env)

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open(options, delegation, log)

    @asynccontextmanager
    async def _open(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        plan = self._plan(options, delegation)
        await self._versions.version_of(plan.program, plan.environ)
        if plan.home is not None:
            plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            session: ClaudeSession | None = None
            earlier = _recorded_session(log)
            if earlier is not None:
                try:
                    session = await stack.enter_async_context(_opened(plan, earlier, resume=True, log=log))
                except ResumeFailed:
                    text = f"Claude Code has no session '{earlier}' any more: the conversation starts afresh"
                    log.notice(notice("history_lost", text))
            if session is None:
                session = await stack.enter_async_context(_opened(plan, str(uuid4()), resume=False, log=log))
            yield session

    def _plan(self, options: ConversationOptions, delegation: Delegation | None = None) -> _Plan:
        claude = read_options(options)
        if options.limits.token_budget is not None:
            raise NotSupported("connector 'claude' cannot keep a 'token_budget'; use 'cost_budget_usd'")
        if options.resume_from is not None:
            raise NotSupported("connector 'claude' cannot take up a session by 'resume_from'")
        environ = dict(self._environ)
        home: Path | None = None
        if needs_isolated_home(claude, environ):
            home = claude.home or platformdirs.user_state_path("level2-harness") / "claude-home"
        return _Plan(
            program=find_program(claude, environ),
            options=options,
            claude=claude,
            tools=map_tools(options.tools, prefix=TOOL_PREFIX),
            environ=environ,
            cwd=Path(options.cwd) if options.cwd is not None else Path.cwd(),
            home=home,
            delegation=delegation or Delegation(),
        )


@asynccontextmanager
async def _opened(plan: _Plan, session_id: str, *, resume: bool, log: SessionLog) -> AsyncGenerator[ClaudeSession]:
    """A running CLI that is ready for messages, in a new session or an earlier one."""
    is_bridged, delegation = plan.claude.route == "bridge", plan.delegation
    may_ask = bool(plan.options.internal_tools or delegation.tool_sources)
    tools = HostTools(plan.tools, approves=is_bridged and may_ask)
    place = Place(str(plan.cwd), plan.environ.get("HOME"), os.path.realpath)
    protocol = ClaudeProtocol(
        Setting(
            tools,
            Gate(delegation.request_policy, place, allowed_tool_names(delegation.tool_sources)),
            tunnels=not is_bridged,
            internal_tools=frozenset(plan.options.internal_tools),
            sources=frozenset(source.name for source in delegation.tool_sources),
            wants_raw=plan.options.output_detail == OutputDetail.RAW,
        )
    )
    route = BridgeRoute(tools, protocol) if is_bridged and tools.server.tools else None
    begun_at = time.monotonic()

    def remember(inner_id: str) -> None:
        log.append({_RECORD: {"session_id": inner_id, "cwd": str(plan.cwd), "home": str(plan.home or "")}})

    with unwrapped():
        async with AsyncExitStack() as stack:
            bridge: BridgeAddress | None = None
            servers = delegated_servers(delegation.tool_sources, plan.claude)
            if route is not None:
                bridge = await stack.enter_async_context(open_endpoint(tools.server, route.on_call))
                servers[SERVER_NAME] = bridge_server(bridge)
            mcp_config = stack.enter_context(config_file(servers))
            flags = tuple(policy_flags(delegation.request_policy))
            handed = Handed(mcp_config, tools.approve_name or "stdio", flags)
            started = plan.launch(session_id, resume=resume, handed=handed)
            process = await stack.enter_async_context(
                open_process(
                    started.argv,
                    env=started.env,
                    cwd=plan.cwd,
                    name="claude",
                    max_line_bytes=plan.claude.max_line_bytes,
                    grace_seconds=plan.claude.grace_seconds,
                )
            )
            session = ClaudeSession(process, protocol, plan.claude, route=route, begun=remember)
            version = await session.start(
                str(plan.program), plan.options.system_prompt, plan.options.system_prompt_mode, bridge
            )
            seconds = time.monotonic() - begun_at
            told = f"claude {version_text(version) if version else ''} at {plan.program}, pid {process.pid}"
            session.announce(
                notice("peer_started", f"{told}, ready in {seconds:.1f} s"),
                *(
                    notice("tool_rewritten", f"tool '{change.tool_name}': {change.rule}")
                    for change in plan.tools.rewrites
                ),
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.pump)
                try:
                    yield session
                finally:
                    tasks.cancel_scope.cancel()


def _recorded_session(log: SessionLog) -> str | None:
    """The id of the CLI's session that an earlier process of this conversation noted last."""
    for record in reversed(log.records()):
        if isinstance(record, dict) and _RECORD in record:
            return str(cast(JsonObject, record[_RECORD]).get("session_id"))
    return None
