"""Claude Code as an LLM that calls the host's tools: one long-lived CLI process per conversation."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from uuid import uuid4

from connectors._recorded import RecordedProcesses
from connectors.claude.argv import Handed, Launch, Start
from connectors.claude.capabilities import capabilities_of
from connectors.claude.config import RESTRICTED_OPTIONS
from connectors.claude.installed import ProgramVersions, noted_version
from connectors.claude.login import login_of_program
from connectors.claude.memory import Memory, forked, memory_of
from connectors.claude.opening import opened
from connectors.claude.plan import Plan, planned
from connectors.claude.session import ClaudeSession, ResumeFailed
from connectors.claude.versions import TESTED, Version
from harness.connector import Login, Session, SessionLog
from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.turn.events import notice


class ClaudeConnector(RecordedProcesses):
    """Reaches the Claude Code CLI over its control protocol; the host's tools go through it, or over a bridge."""

    name = "claude"
    variants: Mapping[str, Mapping[str, JsonValue]] = {"bridge": {"route": "bridge"}}
    restricted_options = RESTRICTED_OPTIONS

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._versions = ProgramVersions()

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        plan = self._plan(options)
        version = await self._versions.version_of(plan.program, plan.environ)
        self._would_launch(plan, version)
        return capabilities_of(options, plan.claude, version)

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        plan = self._plan(options)
        started = self._would_launch(plan, noted_version(plan.program) or max(TESTED))
        return {"argv": [*started.argv], "env": sorted(started.env), "cwd": str(plan.cwd)}

    async def login(self, options: ConversationOptions) -> Login:
        """Whether the CLI of these options would find credentials."""
        plan = self._plan(options)
        version = await self._versions.version_of(plan.program, plan.environ)
        return await login_of_program(plan.program, self._would_launch(plan, version).env)

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open(self._plan(options, delegation), log)

    def forked(self, records: Sequence[JsonValue]) -> Sequence[JsonValue]:
        """What a conversation remembers that goes on from this one by itself."""
        return forked(records)

    @asynccontextmanager
    async def _open(self, plan: Plan, log: SessionLog) -> AsyncGenerator[Session]:
        version = await self._versions.version_of(plan.program, plan.environ)
        if plan.home is not None:
            plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            yield await self._take_up(plan, version, log, stack)

    async def _take_up(self, plan: Plan, version: Version, log: SessionLog, stack: AsyncExitStack) -> ClaudeSession:
        """The earlier session, the one to go on from, or a new one; a lost one is told."""
        memory = memory_of(log.records())
        shape = memory.turn_options or {}
        start = _start_of(memory)
        if start is not None:
            try:
                session = opened(plan.for_turn(shape), version, start, memory, shape, log)
                return await stack.enter_async_context(session)
            except ResumeFailed:
                known = memory.session_id or (memory.fork.session_id if memory.fork else "")
                text = f"Claude Code has no session '{known}' any more: the conversation starts afresh"
                log.notice(notice("history_lost", text))
        session = opened(plan.for_turn(shape), version, Start(str(uuid4())), Memory(), shape, log)
        return await stack.enter_async_context(session)

    def _plan(self, options: ConversationOptions, delegation: Delegation | None = None) -> Plan:
        return planned(options, dict(self._environ), delegation or Delegation())

    def _would_launch(self, plan: Plan, version: Version) -> Launch:
        return plan.launch(Start("<a new uuid>"), version, Handed())


def _start_of(memory: Memory) -> Start | None:
    """Null for a conversation that knows nothing yet."""
    if memory.session_id is not None:
        return Start(memory.session_id, resumes=True)
    return None if memory.fork is None else Start(str(uuid4()), fork=memory.fork)
