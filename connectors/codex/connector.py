"""Codex as an LLM that calls the host's tools: one `codex app-server` process with one thread per conversation."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import platformdirs

from connectors._agent_session import AgentSession
from connectors._json import JsonObject
from connectors._kept_policy import check_kept, kept_policy, open_tools
from connectors._options import check_taken
from connectors._process import open_process
from connectors._programs import ProgramVersions, Version, version_text
from connectors._recorded import RecordedProcesses, newest_note, process_note
from connectors._session_start import did_not_start, peer_started, pumping, tools_rewritten
from connectors._stall_watch import stall_limits
from connectors.codex.argv import Launch, launch, login_of
from connectors.codex.config import RESTRICTED_OPTIONS, CodexOptions, read_options
from connectors.codex.installed import find_program, link_login, user_login
from connectors.codex.outcome import not_logged_in
from connectors.codex.protocol import CodexProtocol
from connectors.codex.rules import UNASKED
from connectors.codex.thread import (
    ASK_USER,
    DELEGATABLE,
    INTERNAL_TOOLS,
    MAX_RESULT_CHARS,
    WEB_SEARCH,
    DynamicTools,
    dynamic_tools,
    thread_params,
)
from connectors.codex.versions import HOW_TO_INSTALL, HOW_TO_LOG_IN, MINIMUM, TESTED
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
    StructuredOutput,
    ToolErrorFlag,
)
from harness.contract.delegation import Delegation, PolicyMode
from harness.contract.options import ConversationOptions
from harness.contract.requests import RequestKind
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, PeerLost, unwrapped
from harness.turn.events import notice

_RECORD = "codex_thread"


class _ResumeFailed(Exception):
    """Codex does not have the thread that was to be resumed."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What opening a session needs to know, put together before anything is started."""

    program: Path
    options: ConversationOptions
    codex: CodexOptions
    tools: DynamicTools
    environ: Mapping[str, str]
    cwd: Path
    home: Path
    delegation: Delegation

    @property
    def sandbox(self) -> str:
        """Where nothing may be changed, what is allowed gets no right to."""
        policy = self.delegation.request_policy
        return "read-only" if policy is not None and policy.mode == PolicyMode.READ_ONLY else self.codex.sandbox

    @property
    def login(self) -> Login:
        if login_of(self.codex, self.environ) == "key":
            return Login(True, "a provider of your own" if self.codex.base_url else "an API key")
        if user_login(self.environ) is not None:
            return Login(True, "the login of 'codex login'")
        return Login(False, "nobody is logged in", HOW_TO_LOG_IN)

    @property
    def launch(self) -> Launch:
        return launch(str(self.program), self.codex, self.environ, self.home)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What an earlier process of this conversation noted."""

    thread_id: str
    turns: int


class CodexConnector(RecordedProcesses):
    """Reaches `codex app-server`; the host's tools are dynamic tools of its thread."""

    name = "codex"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = RESTRICTED_OPTIONS

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._versions = ProgramVersions("codex", HOW_TO_INSTALL, MINIMUM)

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        plan = self._plan(options)
        version = await self._version(plan)
        inner = InnerVersion(name="codex", version=version_text(version), tested=version in TESTED)
        if plan.login.is_there is False:
            raise not_logged_in(str(plan.program), inner)
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            routable_request_kinds=[RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION],
            delegatable_tool_sources=list(DELEGATABLE),
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
            images_in_tool_results=True,
            max_result_chars=MAX_RESULT_CHARS,
            structured_output=StructuredOutput.TURN,
            internal_tools=list(INTERNAL_TOOLS),
            web_search=WEB_SEARCH in options.internal_tools,
            streaming=Streaming.TOKEN,
            turn_options=["model", "output_schema_json"],
            reports_usage=True,
            inner=inner,
        )

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        plan = self._plan(options)
        return {"argv": plan.launch.argv, "env": sorted(plan.launch.env), "cwd": str(plan.cwd)}

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open(options, delegation, log)

    async def login(self, options: ConversationOptions) -> Login:
        """Whether Codex would find credentials."""
        return self._plan(options).login

    def check_delegation(self, options: ConversationOptions, delegation: Delegation) -> None:
        check_kept("codex", delegation, options.internal_tools, UNASKED)

    @asynccontextmanager
    async def _open(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        self.check_delegation(options, delegation)
        plan = self._plan(options, delegation)
        await self._version(plan)
        plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        login = user_login(plan.environ)
        if login is not None and login_of(plan.codex, plan.environ) == "user":
            link_login(login, plan.home)
        params = thread_params(plan.options, str(plan.cwd), plan.sandbox, delegation.tool_sources)
        async with AsyncExitStack() as stack:
            session: AgentSession | None = None
            earlier = _recorded(log)
            if earlier is not None:
                try:
                    session = await stack.enter_async_context(_opened(plan, params, earlier, log))
                except _ResumeFailed:
                    log.notice(notice("history_lost", _lost(earlier)))
            if session is None:
                session = await stack.enter_async_context(_opened(plan, params, None, log))
            yield session

    async def _version(self, plan: _Plan) -> Version:
        return await self._versions.version_of(plan.program, [str(plan.program), "--version"], plan.environ)

    def _plan(self, options: ConversationOptions, delegation: Delegation | None = None) -> _Plan:
        codex = read_options(options)
        check_taken(options, "connector 'codex'", {"limits.max_turns", "effort"})
        delegation = delegation or Delegation()
        opened = {"internal_tools": open_tools(delegation.request_policy, options.internal_tools)}
        environ = dict(self._environ)
        return _Plan(
            program=find_program(codex, environ),
            options=options.model_copy(update=opened),
            codex=codex,
            tools=dynamic_tools(options.tools),
            environ=environ,
            cwd=Path(options.cwd) if options.cwd is not None else Path.cwd(),
            home=codex.home or platformdirs.user_state_path("level2-harness") / "codex-home",
            delegation=delegation,
        )


@asynccontextmanager
async def _opened(
    plan: _Plan, params: JsonObject, earlier: _Earlier | None, log: SessionLog
) -> AsyncGenerator[AgentSession]:
    """A running Codex with its thread open, a new one or an earlier one."""
    policy = kept_policy("codex", plan.delegation, str(plan.cwd), plan.environ.get("HOME"))
    protocol = CodexProtocol(plan.options, plan.tools, policy)
    begun_at = time.monotonic()
    started = plan.launch
    with unwrapped():
        async with open_process(
            started.argv,
            env=started.env,
            cwd=plan.cwd,
            name="codex",
            max_line_bytes=plan.codex.max_line_bytes,
            grace_seconds=plan.codex.grace_seconds,
        ) as process:
            log.append(process_note(process.record))
            noted = earlier.turns if earlier else None

            def remember() -> None:
                nonlocal noted
                thread = protocol.thread
                if thread is not None and protocol.turns is not None and protocol.turns != noted:
                    noted = protocol.turns
                    version = protocol.version
                    log.append({_RECORD: {"thread_id": thread.thread_id, "turns": noted, "version": version}})

            session = AgentSession(
                process,
                protocol,
                interrupt_seconds=plan.codex.interrupt_seconds,
                stall=stall_limits(plan.codex),
                has_read=remember,
            )
            protocol.open_thread(params, earlier.thread_id if earlier else None)
            await _start(session, protocol, plan)
            thread = protocol.thread
            if thread is None:
                raise _ResumeFailed
            if earlier is not None and thread.turns < earlier.turns:
                log.notice(notice("history_lost", f"{_lost(earlier)} in full"))
            started_now = peer_started(f"codex {protocol.version}", plan.program, process.pid, begun_at)
            if ASK_USER not in plan.options.internal_tools:
                text = f"Codex always shows its model '{ASK_USER}', and answers it that this is unavailable"
                session.announce(notice("surplus_tools", text))
            session.announce(started_now, *tools_rewritten(plan.tools.rewrites))
            async with pumping(session.pump):
                yield session


async def _start(session: AgentSession, protocol: CodexProtocol, plan: _Plan) -> None:
    """Waits until the thread is open, or is found to be gone.

    Raises:
        ConnectorUnavailable: Codex cannot be used as asked; one line with the remedy.
    """
    seconds = plan.codex.start_seconds
    try:
        with anyio.fail_after(seconds):
            await session.wait_until(lambda: protocol.thread is not None or protocol.resume_failed)
    except TimeoutError:
        raise ConnectorUnavailable(f"'{plan.program}' was not ready within {seconds:g} s; {HOW_TO_INSTALL}") from None
    except PeerLost as error:
        raise did_not_start(plan.program, error, HOW_TO_INSTALL, reason="wrong_version") from error


def _recorded(log: SessionLog) -> _Earlier | None:
    noted = newest_note(log.records(), _RECORD)
    return None if noted is None else _Earlier(str(noted.get("thread_id")), int(noted.get("turns", 0)))


def _lost(earlier: _Earlier) -> str:
    return f"Codex does not have the thread '{earlier.thread_id}'"
