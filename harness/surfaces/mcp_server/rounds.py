"""Asks that go on between two calls of their client.

Since the protocol of 2026-07-28 a server may not call its client: a tool that needs a person returns the form as its
result, and the client repeats the call with the answer. The turn runs on meanwhile; `request_state` finds it again.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import anyio
import mcp_types as types
from anyio.abc import TaskGroup

from harness.errors import HarnessError, InvalidArgument
from harness.surfaces.mcp_server.ask import ASK
from harness.surfaces.mcp_server.forms import Form
from harness.surfaces.mcp_server.people import Elicit
from harness.surfaces.mcp_server.progress import Progress, Report
from harness.surfaces.mcp_server.tools import error_result, fault_result

KEPT_SECONDS = 600.0
"""How long the result of an ask waits for a client that has not repeated its call."""
_INPUT = "answer"

Work: TypeAlias = Callable[[Elicit, Progress], Awaitable[types.CallToolResult]]
CallResult: TypeAlias = types.CallToolResult | types.InputRequiredResult


class Rounds:
    """All asks that go on; they live in the server's task group."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._open: dict[str, _Ask] = {}

    async def call(self, owner: str, params: types.CallToolRequestParams, work: Work, report: Report) -> CallResult:
        """One round: the result, or what a person has to fill in first. Cancelling this call cancels the ask."""
        ask = self._begin(owner, work) if params.request_state is None else self._found(owner, params.request_state)
        ask.progress.to(report)
        if params.input_responses is not None:
            ask.hear(params.input_responses)
        is_between_rounds = False
        try:
            step = await ask.next()
            is_between_rounds = isinstance(step, Form)
        finally:
            ask.progress.to(_to_nobody)
            if not is_between_rounds:
                ask.leave()
        return _input_required(step, ask.state) if isinstance(step, Form) else step

    def _begin(self, owner: str, work: Work) -> _Ask:
        ask = _Ask(owner, secrets.token_urlsafe(24))
        self._open[ask.state] = ask
        self._group.start_soon(self._run, ask, work)
        return ask

    def _found(self, owner: str, state: str) -> _Ask:
        ask = self._open.get(state)
        if ask is None or ask.owner != owner:
            raise InvalidArgument("this 'requestState' is of no ask that goes on here: call 'ask' anew")
        return ask

    async def _run(self, ask: _Ask, work: Work) -> None:
        try:
            await ask.run(work)
        finally:
            del self._open[ask.state]


class _Ask:
    def __init__(self, owner: str, state: str) -> None:
        self.owner = owner
        self.state = state
        self.progress = Progress(_to_nobody)
        self._scope = anyio.CancelScope()
        self._form: Form | None = None
        self._answer: types.ElicitResult | None = None
        self._result: types.CallToolResult | None = None
        self._changed = anyio.Event()
        self._left = anyio.Event()

    async def run(self, work: Work) -> None:
        with self._scope:
            try:
                self._result = await work(self._elicit, self.progress)
            except HarnessError as error:
                self._result = error_result(error)
            except Exception:
                self._result = fault_result(ASK)
            self._note()
            with anyio.move_on_after(KEPT_SECONDS):
                await self._left.wait()

    async def next(self) -> Form | types.CallToolResult:
        """Waits until the ask is over, or until a person is needed."""
        while self._result is None:
            if self._form is not None and self._answer is None:
                return self._form
            await self._changed.wait()
        return self._result

    def hear(self, given: Mapping[str, types.InputResponse]) -> None:
        answer = given.get(_INPUT)
        if self._form is None:
            return  # resolved otherwise meanwhile: the turn went on without it
        if not isinstance(answer, types.ElicitResult):
            raise InvalidArgument(f"'inputResponses' must have '{_INPUT}', the answer to the form")
        self._answer = answer
        self._note()

    def leave(self) -> None:
        """The client has its result, or does not want one any more."""
        self._left.set()
        if self._result is None:
            self._scope.cancel()

    async def _elicit(self, form: Form) -> types.ElicitResult:
        self._form, self._answer = form, None
        self._note()
        try:
            while self._answer is None:
                await self._changed.wait()
            return self._answer
        finally:
            self._form = self._answer = None

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _to_nobody(count: int, message: str) -> None:
    """Between two rounds nobody is there to be told."""


def _input_required(form: Form, state: str) -> types.InputRequiredResult:
    asked = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
    )
    return types.InputRequiredResult(input_requests={_INPUT: asked}, request_state=state)
