"""What `harness chat` does: the person's side in this thread, the conversation in an event loop of another.

Readline and Ctrl-C belong to the main thread; so the keyboard needs no loop, and a busy tool does not hold it up.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

import anyio
import typer
from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness.cli.activity import Line, Style
from harness.cli.chat import ChatArguments
from harness.cli.chat_commands import command_of
from harness.cli.chat_input import Keyboard, open_keyboard
from harness.cli.chat_room import Approvals, Room, open_room
from harness.cli.failures import complain
from harness.cli.interrupts import INTERRUPTED
from harness.cli.logs import set_up_logs
from harness.cli.run import Approve, Output, RunArguments
from harness.cli.run_plan import Plan, plan_of
from harness.cli.run_views import view_for
from harness.cli.terminal import Terminal, open_terminal
from harness.errors import HarnessError
from harness.orchestrator.approvals import ApprovalMode, Approver, Denying, approver_for

T = TypeVar("T")
_NOBODY = "Nobody is there to ask: allow it beforehand with --approve or --policy."
_CANCELLING = b"\nharness: cancelling; once more ends everything at once\n"


def run_chat(arguments: ChatArguments) -> None:
    """Talks until the person leaves."""
    set_up_logs(verbose=arguments.verbose)
    run_arguments = _as_run(arguments)
    plan = plan_of(run_arguments, has_prompt=False)
    with open_terminal(plain=arguments.plain) as terminal, open_keyboard() as keyboard, _ends_in_order():
        code = Chat(run_arguments, plan, terminal, keyboard).talk()
    raise typer.Exit(code)


class Chat:
    """One chat at a terminal."""

    def __init__(self, arguments: RunArguments, plan: Plan, terminal: Terminal, keyboard: Keyboard) -> None:
        self._arguments = arguments
        self._plan = plan
        self._terminal = terminal
        self._keyboard = keyboard
        self._view = view_for(arguments, terminal)

    def talk(self) -> int:
        """The exit code: 0, or 130 after two Ctrl-C."""
        with ExitStack() as stack:
            approvals = self._approvals(stack)
            portal = stack.enter_context(start_blocking_portal("asyncio"))
            opened = open_room(self._plan, approvals, Path.cwd())
            room = stack.enter_context(portal.wrap_async_context_manager(opened))
            self._greet(portal, room)
            if room.unfinished is not None:
                self._turn(portal, room, None)
            code = self._messages(portal, room, approvals)
            self._say_goodbye(portal, room)
            return code

    def _messages(self, portal: BlockingPortal, room: Room, approvals: Approvals) -> int:
        was_interrupted = False
        while True:
            try:
                text = self._keyboard.message()
                was_interrupted = False
            except KeyboardInterrupt:
                self._terminal.write_note("\n")
                if was_interrupted:
                    return INTERRUPTED
                was_interrupted = True
                self._tell("once more leaves, and so does Ctrl-D")
                continue
            if text is None:
                self._terminal.write_note("\n")
                return 0
            if not text:
                continue
            if not text.startswith("/") or text.startswith("//"):
                self._turn(portal, room, text.removeprefix("/") if text.startswith("//") else text)
            elif self._leaves(portal, room, approvals, text):
                return 0

    def _leaves(self, portal: BlockingPortal, room: Room, approvals: Approvals, text: str) -> bool:
        try:
            command, argument = command_of(text)
            if command is None:
                return True
            for line in portal.call(command.do, room, approvals, argument):
                self._tell(line)
        except HarnessError as error:
            complain(error.message)
        return False

    def _turn(self, portal: BlockingPortal, room: Room, text: str | None) -> None:
        """Shows the answer as it comes. The first Ctrl-C cancels it."""
        self._view = view = view_for(self._arguments, self._terminal)
        stop = portal.call(anyio.Event)
        with _interrupts(portal, stop):
            try:
                completion = _result(portal.start_task_soon(room.ask, text, view, stop))
            except HarnessError as error:
                view.write_line(Line(Style.BAD, f"harness: {error.message}"))
                return
        view.end(completion)

    def _approvals(self, stack: ExitStack) -> Approvals:
        approvers: dict[ApprovalMode, Approver] = {
            ApprovalMode.ALLOW: approver_for(ApprovalMode.ALLOW),
            ApprovalMode.DENY: Denying(_NOBODY) if self._plan.is_unattended else approver_for(ApprovalMode.DENY),
        }
        wanted = ApprovalMode(self._plan.approve)
        if self._keyboard.has_person or wanted == ApprovalMode.ASK:
            from harness.cli.asking import open_person  # terminals as POSIX knows them

            directory = Path(self._plan.options.cwd or ".").resolve() if self._plan.url is None else None
            person = stack.enter_context(open_person(lambda line: self._view.write_line(line), directory))
            approvers[ApprovalMode.ASK] = approver_for(ApprovalMode.ASK, person)
        return Approvals(wanted, approvers)

    def _greet(self, portal: BlockingPortal, room: Room) -> None:
        info = portal.call(room.info)
        began = f": {info.first_message.splitlines()[0]}" if info.first_message else ""
        self._tell(f"{info.connector}, conversation {info.conversation_id}{began}")
        self._tell("/help tells what may be typed, Ctrl-D leaves")

    def _say_goodbye(self, portal: BlockingPortal, room: Room) -> None:
        try:
            said_something = portal.call(room.info).turns > 0
        except HarnessError:
            return  # its harness is gone, and has said so
        if said_something and _keeps_conversations(self._plan):
            where = f" --url {self._plan.url}" if self._plan.url is not None else ""
            self._tell(f"harness chat --resume {room.conversation_id}{where} goes on")

    def _tell(self, text: str) -> None:
        self._view.write_line(Line(Style.QUIET, f"· {text}"))


def _keeps_conversations(plan: Plan) -> bool:
    from harness.cli.journals import MEMORY

    return plan.url is not None or (plan.store or plan.journal.store) != MEMORY


def _result(future: Future[T]) -> T:
    """Waits for it. A lock would not do: a signal that comes just before it is taken would wait with us."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        earlier = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

        def wake(_: Future[T]) -> None:
            with suppress(OSError):  # nobody waits any more, or is woken already
                theirs.send(b"\0")

        future.add_done_callback(wake)
        try:
            while not future.done():
                ours.recv(64)
            return future.result()
        finally:
            signal.set_wakeup_fd(earlier)


@contextmanager
def _interrupts(portal: BlockingPortal, stop: anyio.Event) -> Generator[None]:
    """While a turn runs: the first Ctrl-C cancels it, the second ends us, and the reaper our peers."""
    count = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            os._exit(INTERRUPTED)
        os.write(2, _CANCELLING)  # whatever was interrupted may hold the lock of sys.stderr
        portal.start_task_soon(stop.set)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ends_in_order() -> Generator[None]:
    """A terminal that is closed, or a polite kill, ends the conversation as leaving does."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    earlier = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _as_run(arguments: ChatArguments) -> RunArguments:
    """A chat is run after run in one conversation, shown as text."""
    return RunArguments(
        prompt=None,
        connector=arguments.connector,
        model=arguments.model,
        system=arguments.system,
        tools=arguments.tools,
        mcp_config=arguments.mcp_config,
        openapi=arguments.openapi,
        ujmw=arguments.ujmw,
        internal_tools=arguments.internal_tools,
        cwd=arguments.cwd,
        approve=None if arguments.approve is None else Approve(arguments.approve),
        policy=arguments.policy,
        config=arguments.config,
        max_turns=arguments.max_turns,
        max_output_tokens=None,
        effort=arguments.effort,
        timeout=None,
        tool_timeout=arguments.tool_timeout,
        output=Output.TEXT,
        full=arguments.full,
        show_thinking=arguments.show_thinking,
        show_usage=arguments.show_usage,
        plain=arguments.plain,
        url=arguments.url,
        latest=arguments.latest,
        resume=arguments.resume,
        fork=arguments.fork,
        store=arguments.store,
        option=arguments.option,
        dry_run=False,
        skip_canary=False,
        verbose=arguments.verbose,
    )
