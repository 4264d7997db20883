"""Any ACP agent as an LLM that calls the host's tools: one process with one session per conversation."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from bridge_mcp.mapping import MappedTools, map_tools
from connectors._agent_session import AgentSession
from connectors._environment import base_environment
from connectors._kept_policy import check_kept, kept_policy, open_tools
from connectors._options import check_taken
from connectors._programs import ProgramVersions, Version, version_text
from connectors._recorded import RecordedProcesses
from connectors._stall_watch import stall_limits
from connectors.acp.agent import AGENTS, SERVER_NAME, UNKNOWN, Agent
from connectors.acp.argv import Launch, launch
from connectors.acp.client_calls import NO_RIGHTS, ClientRights
from connectors.acp.config import RESTRICTED_OPTIONS, AcpOptions, read_options
from connectors.acp.installed import find_program
from connectors.acp.login import login_of
from connectors.acp.opening import ResumeFailed, Start, open_agent_session, server_of
from connectors.acp.records import recorded_session
from harness.connector import Login, Session, SessionLog
from harness.contract.capabilities import (
    InnerVersion,
    LlmCapabilities,
    ResultOrder,
    Resume,
    SeedHistory,
    Streaming,
)
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind
from harness.contract.value import JsonValue
from harness.turn.events import notice

TOOL_PREFIX = f"mcp__{SERVER_NAME}__"
"""The longest that an agent puts before a tool's name."""


@dataclass(frozen=True, slots=True)
class _Plan:
    agent: Agent
    acp: AcpOptions
    options: ConversationOptions
    tools: MappedTools
    launch: Launch
    program: Path
    environ: Mapping[str, str]

    @property
    def rights(self) -> ClientRights:
        return ClientRights(self.acp.client_files, self.acp.client_terminals)


class AcpConnector(RecordedProcesses):
    """Reaches agents over the Agent Client Protocol, the host's tools through our MCP bridge."""

    name = "acp"
    variants: Mapping[str, Mapping[str, JsonValue]] = {name: {"agent": name} for name in AGENTS}
    restricted_options = RESTRICTED_OPTIONS

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._versions = {name: ProgramVersions(name, agent.remedy) for name, agent in AGENTS.items()}

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        plan = self._plan(options)
        version = await self._version(plan)
        told = None if version is None else version_text(version)
        inner = InnerVersion(name=plan.agent.name, version=told, tested=version in plan.agent.tested)
        return capabilities_of(plan.agent, options, inner, rights=plan.rights)

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        started = self._plan(options).launch
        return {"argv": started.argv, "env": sorted(started.env), "cwd": started.params["cwd"]}

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open(options, delegation, log)

    async def login(self, options: ConversationOptions) -> Login:
        """Whether the agent of these options would find credentials."""
        plan = self._plan(options)
        return login_of(plan.agent, plan.launch.env)

    def check_delegation(self, options: ConversationOptions, delegation: Delegation) -> None:
        agent = _agent_of(read_options(options))
        if agent.unasked is not None:
            check_kept(f"acp:{agent.name}", delegation, options.internal_tools, agent.unasked)

    @asynccontextmanager
    async def _open(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        self.check_delegation(options, delegation)
        plan = self._plan(options, delegation)
        acp = plan.acp
        start = Start(
            agent=plan.agent,
            launch=plan.launch,
            options=plan.options,
            tools=plan.tools,
            stall=stall_limits(acp),
            sources=[server_of(source) for source in delegation.tool_sources],
            bridge=acp.bridge,
            mode=acp.mode or plan.agent.mode,
            rights=plan.rights,
            policy=kept_policy(
                f"acp:{plan.agent.name}", delegation, str(plan.launch.params["cwd"]), plan.environ.get("HOME")
            ),
            command_env=base_environment(
                plan.environ, extra={name: plan.launch.env[name] for name in ("HOME",) if name in plan.launch.env}
            ),
            auth_method=acp.auth_method or _auth_method(plan),
            max_line_bytes=acp.max_line_bytes,
            start_seconds=acp.start_seconds,
            interrupt_seconds=acp.interrupt_seconds,
            grace_seconds=acp.grace_seconds,
        )
        async with AsyncExitStack() as stack:
            yield await opened(stack, start, log)

    async def _version(self, plan: _Plan) -> Version | None:
        """Of an agent that is only named by its command nobody knows how to ask."""
        versions = self._versions.get(plan.agent.name)
        if versions is None or plan.acp.command is not None:
            return None
        return await versions.version_of(plan.program, [str(plan.program), "--version"], plan.launch.env)

    def _plan(self, options: ConversationOptions, delegation: Delegation | None = None) -> _Plan:
        acp = read_options(options)
        agent = _agent_of(acp)
        delegation = delegation or Delegation()
        check_taken(options, f"'{agent.name}'", {"limits.max_turns"} if agent.name == "claude-agent-acp" else ())
        opened = {"internal_tools": open_tools(delegation.request_policy, options.internal_tools)}
        options = options.model_copy(update=opened)
        environ = dict(self._environ)
        program = Path(acp.command[0]) if acp.command is not None else acp.program or find_program(agent, environ)
        command = acp.command or [str(program), *agent.arguments]
        home = acp.home or platformdirs.user_state_path("level2-harness") / agent.name
        tools = map_tools(options.tools, prefix=TOOL_PREFIX)
        started = launch(
            command,
            agent,
            options,
            environ,
            home,
            tools=list(tools.ours),
            sources=[source.name for source in delegation.tool_sources],
            extra=acp.env,
            isolated=acp.isolated_home,
            has_policy=delegation.request_policy is not None,
        )
        return _Plan(agent, acp, options, tools, started, program, environ)


def _agent_of(acp: AcpOptions) -> Agent:
    agent = AGENTS[acp.agent] if acp.agent is not None else UNKNOWN
    return agent if acp.resume_by is None else replace(agent, resume=acp.resume_by)


async def opened(stack: AsyncExitStack, start: Start, log: SessionLog) -> AgentSession:
    """The session of an earlier process if the agent still has it, else a new one, which is told."""
    earlier = recorded_session(log, start.agent)
    if earlier is not None:
        text = f"{start.agent.name} does not have the session '{earlier}': the conversation starts afresh"
        if start.agent.resume is not None:
            try:
                return await stack.enter_async_context(open_agent_session(start, earlier, log))
            except ResumeFailed:
                pass
        log.notice(notice("history_lost", text))
    return await stack.enter_async_context(open_agent_session(start, None, log))


def capabilities_of(
    agent: Agent, options: ConversationOptions, inner: InnerVersion, *, rights: ClientRights = NO_RIGHTS
) -> LlmCapabilities:
    kinds = [RequestKind.TOOL_CALL]
    if agent.asks_approvals or rights.allows_acts:
        kinds.append(RequestKind.APPROVAL)
    if agent.asks_questions:
        kinds.append(RequestKind.USER_QUESTION)
    return LlmCapabilities(
        supports_tools=True,
        supports_parallel_tool_calls=True,
        routable_request_kinds=list(kinds),
        delegatable_tool_sources=[ToolSourceKind.MCP_STDIO, ToolSourceKind.MCP_HTTP] if agent.takes_sources else [],
        supports_request_policy_delegation=agent.unasked is not None,
        reports_delegated_calls=agent.takes_sources,
        parallel=agent.parallel,
        resume=Resume.CONTINUED if agent.resume is not None else Resume.NONE,
        seed_history=SeedHistory.AS_TEXT,
        denial=agent.denial,
        result_order=ResultOrder.CALL,
        call_ids=agent.call_ids,
        tool_error_flag=agent.error_flag,
        images_in_prompt=agent.images_in_prompt,
        images_in_tool_results=agent.images_in_results,
        max_result_chars=agent.max_result_chars,
        max_call_wait_ms=agent.max_call_wait_ms,
        internal_tools=list(agent.internal_tools),
        web_search=agent.web_search_tool is not None and agent.web_search_tool in options.internal_tools,
        streaming=Streaming.TOKEN,
        reports_usage=agent.usage != "none",
        reports_cost=agent.reports_cost,
        inner=inner,
    )


def _auth_method(plan: _Plan) -> str | None:
    """With a key at hand the agent is told to use it; else it has the user's login."""
    has_key = any(name.endswith("_API_KEY") and name in plan.launch.env for name in plan.agent.variables)
    return plan.agent.auth_method if has_key else None
