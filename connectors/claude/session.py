"""One CLI process and the turns it runs: moves bytes between the process and the protocol, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import anyio

from bridge_mcp.http import BridgeAddress
from connectors._history_text import history_notice, with_history
from connectors._process import PeerProcess
from connectors._stall_watch import StallWatch
from connectors.claude.bridge_route import BridgeRoute
from connectors.claude.memory import session_begun, turn_ended, turn_options_changed
from connectors.claude.plan import Plan
from connectors.claude.protocol import ClaudeProtocol
from connectors.claude.turn_shape import shape_of
from connectors.claude.versions import HOW_TO_INSTALL, Version, check_version, features_of, version_text
from harness.connector import SessionGone, SessionLog, TurnSink
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.options import TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.errors import (
    ConnectorUnavailable,
    ContentNotSupported,
    HarnessError,
    NotSupported,
    PeerLost,
    unwrapped,
)
from harness.turn.events import TurnEvent


class ResumeFailed(Exception):
    """The CLI does not have the session that was to be resumed."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a session was opened for."""

    plan: Plan
    version: Version
    shape: Mapping[str, JsonValue]
    """What the turn asked for of its own that this process was started with."""
    is_fresh: bool
    """Whether the CLI knows nothing of the conversation yet."""


class ClaudeSession:
    """The `Session` of the claude connector. `start` and `pump` are driven by whoever opened the process."""

    def __init__(
        self,
        process: PeerProcess,
        protocol: ClaudeProtocol,
        conditions: Conditions,
        *,
        watch: StallWatch,
        route: BridgeRoute | None,
        log: SessionLog,
    ) -> None:
        self._process = process
        self._protocol = protocol
        self._conditions = conditions
        self._claude = conditions.plan.claude
        self._watch = watch
        self._route = route
        self._log = log
        self._first_notices: list[TurnEvent] = []
        self._noted_session: str | None = None
        self._needs_history = conditions.is_fresh and bool(conditions.plan.options.history)
        self._sink: TurnSink | None = None
        self._over: anyio.Event | None = None
        self._lost: HarnessError | None = None

    async def start(self, bridge: BridgeAddress | None) -> Version | None:
        """Waits until the CLI is ready for the first message, tools included; its version, where it tells one.

        Raises:
            ConnectorUnavailable: it cannot be used; one line with the remedy.
            ResumeFailed: it has no such session.
        """
        program, options = self._conditions.plan.program, self._conditions.plan.options
        self._protocol.initialize(options.system_prompt, options.system_prompt_mode)
        try:
            with anyio.move_on_after(self._claude.start_seconds):
                self._flush()
                while self._protocol.ready is None:
                    await self._read()
            ready = self._protocol.ready
            if ready is None:
                raise self._no_start(f"'{program}' was not ready within {self._claude.start_seconds:g} s")
            if ready.version is not None:
                check_version(ready.version, str(program))
            if bridge is not None:
                await self._until_listed(bridge.tools_listed)
        except PeerLost as error:
            # a message to go on from may be missing as well as the whole session
            if self._protocol.resume_failed or "found with" in error.stderr_tail:
                raise ResumeFailed from error
            raise self._no_start(f"'{program}' did not start: {error.message}", error) from error
        return ready.version

    def announce(self, *notices: TurnEvent) -> None:
        """To be told with the first turn."""
        self._first_notices += notices

    async def pump(self) -> None:
        """Feeds the CLI's lines to the protocol, and what comes of them to the turn, until the CLI is gone."""
        try:
            async for lines in self._process.lines():
                events = self._protocol.receive(lines)
                self._flush()
                self._remember()
                self._watch.moved()
                if self._route is not None:
                    self._route.has_read()
                if self._sink is not None:
                    self._sink.emit(*self._watch.with_stall(events))
                if self._over is not None and self._protocol.turn_is_over:
                    self._over.set()
        except HarnessError as error:
            self._lost = error
            self._process.end_soon()
        finally:
            self._lost = self._lost or PeerLost("'claude' was ended")
            if self._over is not None:
                self._over.set()

    # Session

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        if self._lost is not None or self._process.returncode is not None:
            raise SessionGone
        self._check_text(content)
        shape = shape_of(options)
        if shape != self._conditions.shape:
            # the CLI takes these at its start only: the same turn runs in a process that was started with them
            self._log.append(turn_options_changed(shape))
            raise SessionGone
        history = self._conditions.plan.options.history if self._needs_history else []
        self._protocol.start_turn(with_history(history, content), str(uuid4()))
        self._sink, self._over = sink, anyio.Event()
        if self._route is not None:
            self._route.begin(sink)
        try:
            notices, self._first_notices = self._first_notices, []
            sink.emit(*notices, *([history_notice(history)] if history else []))
            if not self._flush():
                raise SessionGone
            await self._watch.until(self._over, sink, self.interrupt)
            if self._lost is not None and not self._protocol.turn_is_over:
                raise self._watch.given_up or self._lost
        finally:
            self._sink = self._over = None
            if self._route is not None:
                self._route.end()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise NotSupported("connector 'claude' cannot go on with a turn of a process that died")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        self._protocol.respond(request, response)
        self._flush()
        self._watch.moved()

    async def interrupt(self) -> None:
        """Asks the CLI; if it does not stop in time, ends it. Calls it left open are closed with the turn's end."""
        over = self._over
        if over is None:
            return
        self._watch.rest()
        self._protocol.interrupt()
        self._flush()
        with anyio.move_on_after(self._claude.interrupt_seconds):
            await over.wait()
            return
        await self._process.end()

    # inside

    def _flush(self) -> bool:
        """Writes what waits. False when the CLI is gone: whoever reads finds its last words first, then its end."""
        data = self._protocol.data_to_send()
        if not data:
            return True
        try:
            self._process.write(data)
        except PeerLost:
            return False
        return True

    async def _read(self) -> None:
        self._protocol.receive(await self._process.receive())
        self._flush()

    async def _until_listed(self, listed: anyio.Event) -> None:
        """A first turn without the tools would look like one whose model does not want them."""

        async def read_on() -> None:
            while True:
                await self._read()

        with anyio.move_on_after(self._claude.tools_seconds), unwrapped():
            async with anyio.create_task_group() as reading:
                reading.start_soon(read_on)
                await listed.wait()
                reading.cancel_scope.cancel()
        if not listed.is_set():
            raise ConnectorUnavailable(
                f"'{self._conditions.plan.program}' (Claude Code {version_text(self._conditions.version)}) did not ask "
                f"for the host's tools within {self._claude.tools_seconds:g} s; try the connector option route=tunnel",
                reason="tools_unavailable",
            )

    def _remember(self) -> None:
        """Durable before what the lines brought becomes visible."""
        session_id, ended = self._protocol.session_id, self._protocol.take_ended()
        if session_id is not None and session_id != self._noted_session:
            self._noted_session = session_id
            self._needs_history = False
            plan = self._conditions.plan
            version = version_text(self._conditions.version)
            self._log.append(session_begun(session_id, cwd=str(plan.cwd), home=str(plan.home or ""), version=version))
        if ended is not None:
            self._log.append(turn_ended(ended.message_uuid, ended.last_message, ended.totals))

    def _check_text(self, content: Sequence[ContentBlock]) -> None:
        version = self._conditions.version
        if features_of(version).keeps_user_text:
            return
        if any(isinstance(block, TextBlock) and block.text.startswith("/") for block in content):
            raise ContentNotSupported(
                f"Claude Code {version_text(version)} takes a text that starts with '/' for a command of its own; "
                f"type: {HOW_TO_INSTALL}"
            )

    def _no_start(self, problem: str, lost: PeerLost | None = None) -> ConnectorUnavailable:
        stray = self._protocol.stray_line
        if stray is not None:
            problem += f"; it printed '{stray}': is it Claude Code?"
        is_old = lost is not None and "unknown option" in lost.stderr_tail
        return ConnectorUnavailable(
            f"{problem}; type: {HOW_TO_INSTALL}",
            reason="wrong_version" if is_old or stray is not None else "not_installed",
            exit_code=lost.exit_code if lost else None,
            stderr_tail=(lost.stderr_tail or None) if lost else None,
        )
