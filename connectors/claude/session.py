"""One CLI process and the turns it runs: moves bytes between the process and the protocol, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

import anyio

from bridge_mcp.http import BridgeAddress
from connectors._process import PeerProcess
from connectors.claude.bridge_route import BridgeRoute
from connectors.claude.config import ClaudeOptions
from connectors.claude.protocol import ClaudeProtocol
from connectors.claude.versions import HOW_TO_INSTALL, KEEPS_USER_TEXT, Version, check_version, version_text
from harness.connector import SessionGone, TurnSink
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.options import SystemPromptMode, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import ConnectorUnavailable, ContentNotSupported, HarnessError, NotSupported, PeerLost, unwrapped
from harness.turn.events import TurnEvent


class ResumeFailed(Exception):
    """The CLI does not have the session that was to be resumed."""


class ClaudeSession:
    """The `Session` of the claude connector. `start` and `pump` are driven by whoever opened the process."""

    def __init__(
        self,
        process: PeerProcess,
        protocol: ClaudeProtocol,
        claude: ClaudeOptions,
        *,
        route: BridgeRoute | None,
        begun: Callable[[str], None],
    ) -> None:
        self._process = process
        self._protocol = protocol
        self._claude = claude
        self._route = route
        self._begun = begun
        self._first_notices: list[TurnEvent] = []
        self._has_begun = False
        self._sink: TurnSink | None = None
        self._over: anyio.Event | None = None
        self._lost: HarnessError | None = None

    async def start(
        self, program: str, system_prompt: str | None, mode: SystemPromptMode, bridge: BridgeAddress | None
    ) -> Version | None:
        """Waits until the CLI is ready for the first message, tools included; its version, where it tells one.

        Raises:
            ConnectorUnavailable: it cannot be used; one line with the remedy.
            ResumeFailed: it has no such session.
        """
        self._protocol.initialize(system_prompt, mode)
        try:
            with anyio.move_on_after(self._claude.start_seconds):
                self._flush()
                while self._protocol.ready is None:
                    await self._read()
            ready = self._protocol.ready
            if ready is None:
                raise self._no_start(f"'{program}' was not ready within {self._claude.start_seconds:g} s")
            if ready.version is not None:
                check_version(ready.version, program)
            if bridge is not None:
                await self._until_listed(bridge.tools_listed, program)
        except PeerLost as error:
            if self._protocol.resume_failed or "No conversation found" in error.stderr_tail:
                raise ResumeFailed from error
            raise self._no_start(f"'{program}' did not start: {error.message}", error) from error
        return ready.version

    async def _read(self) -> None:
        self._protocol.receive(await self._process.receive())
        self._flush()

    async def _until_listed(self, listed: anyio.Event, program: str) -> None:
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
            ready = self._protocol.ready
            version = version_text(ready.version) if ready and ready.version else "of an unknown version"
            raise ConnectorUnavailable(
                f"'{program}' (Claude Code {version}) did not ask for the host's tools within "
                f"{self._claude.tools_seconds:g} s; try the connector option route=tunnel",
                reason="tools_unavailable",
            )

    def announce(self, *notices: TurnEvent) -> None:
        """To be told with the first turn."""
        self._first_notices += notices

    async def pump(self) -> None:
        """Feeds the CLI's lines to the protocol, and what comes of them to the turn, until the CLI is gone."""
        try:
            async for lines in self._process.lines():
                events = self._protocol.receive(lines)
                self._flush()
                self._note_session()
                if self._route is not None:
                    self._route.has_read()
                if self._sink is not None:
                    self._sink.emit(*events)
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
        self._check(content, options)
        self._protocol.start_turn(content, str(uuid4()))
        self._sink, self._over = sink, anyio.Event()
        if self._route is not None:
            self._route.begin(sink)
        try:
            notices, self._first_notices = self._first_notices, []
            sink.emit(*notices)
            if not self._flush():
                raise SessionGone
            await self._over.wait()
            if self._lost is not None and not self._protocol.turn_is_over:
                raise self._lost
        finally:
            self._sink = self._over = None
            if self._route is not None:
                self._route.end()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise NotSupported("connector 'claude' cannot go on with a turn of a process that died")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        self._protocol.respond(request, response)
        self._flush()

    async def interrupt(self) -> None:
        """Asks the CLI; if it does not stop in time, ends it. Calls it left open are closed with the turn's end."""
        over = self._over
        if over is None:
            return
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

    def _note_session(self) -> None:
        session_id = self._protocol.session_id
        if session_id is not None and not self._has_begun:
            self._has_begun = True
            self._begun(session_id)

    def _check(self, content: Sequence[ContentBlock], options: TurnOptions) -> None:
        asked = sorted(options.model_dump(exclude_none=True).keys() - {"client_key"})
        if asked:
            raise NotSupported(f"connector 'claude' cannot change '{asked[0]}' for one turn")
        version = self._protocol.ready.version if self._protocol.ready else None
        starts_a_command = any(isinstance(block, TextBlock) and block.text.startswith("/") for block in content)
        if starts_a_command and version is not None and version < KEEPS_USER_TEXT:
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
