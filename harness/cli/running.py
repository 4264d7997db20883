"""One turn from its beginning to its end, with tools and approver at this terminal, and Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from signal import Signals

import anyio

from harness.cli.advising import open_advisor
from harness.cli.failures import complain, exit_code_of
from harness.cli.interrupts import INTERRUPTED, open_interrupts
from harness.cli.resuming import Directory, taken_up
from harness.cli.run import Approve
from harness.cli.run_plan import Plan
from harness.cli.run_views import View
from harness.cli.tool_sources import open_services
from harness.contract.options import TurnOptions
from harness.contract.output import ErrorInfo, StopReason, TurnStatus
from harness.errors import HarnessError, unwrapped
from harness.orchestrator.approvals import ApprovalMode, Approver, Denying, approver_for
from harness.orchestrator.broken_run import RunSoFar
from harness.orchestrator.completion import Completion
from harness.orchestrator.exit_codes import exit_code
from harness.orchestrator.lines import Line, StartedLine
from harness.orchestrator.run import run_to_completion
from harness.registry import Registry
from harness.settings import Settings

_CANCELLING = "harness: cancelling; once more ends everything at once\n"


class Run:
    """One run and what was seen of it, also when a call breaks."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._registry = Registry()
        self._so_far = RunSoFar()
        self._began = time.monotonic()
        self._has_turn = False

    async def complete(self, plan: Plan) -> Completion:
        """The turn; the first Ctrl-C cancels it.

        Raises:
            HarnessError: a call broke.
        """
        stop = anyio.Event()
        with open_interrupts(told=_CANCELLING) as signals, unwrapped():
            async with anyio.create_task_group() as group:
                group.start_soon(self._stop_on_signal, signals, stop, group.cancel_scope)
                chosen = await with_connector(plan, self._registry)
                await check_program(chosen, self._registry)
                completion = await self._ask(chosen, stop)
                group.cancel_scope.cancel()
                return completion
        return self._cancelled()

    def failed(self, error: HarnessError) -> Completion:
        completion = self._so_far.failed(error)
        if self._has_turn:
            return completion
        # nothing has begun: a wrong argument is what somebody typed
        return completion.model_copy(update={"exit_code": exit_code_of(error.code)})

    async def _ask(self, plan: Plan, stop: anyio.Event) -> Completion:
        with _open_approver(plan, self.view) as approver:
            async with (
                open_llm(plan, self._registry) as llm,
                open_services(plan.openapi, plan.ujmw) as services,
                open_advisor(plan.advisor, self._registry, plan.prices) as advisors,
            ):
                # a conversation of before knows its options itself
                options, conversation_id, turn_id = plan.options, None, None
                if plan.earlier:
                    found = await taken_up(llm, plan.earlier, Path.cwd(), has_message=plan.prompt is not None)
                    options, conversation_id, turn_id = None, found.conversation_id, found.turn_id
                return await run_to_completion(
                    llm,
                    plan.prompt,
                    tools=[*plan.tools, *services, *advisors],
                    servers=plan.servers,
                    approver=approver,
                    policy=plan.policy,
                    options=options,
                    turn_options=_turn_options(plan),
                    conversation_id=conversation_id,
                    turn_id=turn_id,
                    on_line=self._see,
                    stop=stop,
                )

    def _see(self, line: Line) -> None:
        self._has_turn = self._has_turn or isinstance(line, StartedLine)
        self._so_far.see(line)
        self.view.see(line)

    async def _stop_on_signal(
        self, signals: AsyncIterator[Signals], stop: anyio.Event, everything: anyio.CancelScope
    ) -> None:
        async for _ in signals:
            stop.set()
            if not self._has_turn:
                everything.cancel()

    def _cancelled(self) -> Completion:
        """There was no turn yet."""
        return Completion(
            status=TurnStatus.CANCELLED,
            stop_reason=StopReason.CANCELLED,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            error=ErrorInfo(code="cancelled", message="Cancelled before the turn began."),
            exit_code=INTERRUPTED,
        )


def exit_code_of_run(completion: Completion) -> int:
    """The table of the contract, section 3."""
    if completion.exit_code is not None:
        return completion.exit_code
    return exit_code(completion.status, completion.stop_reason)


async def with_connector(plan: Plan, registry: Registry) -> Plan:
    """The plan with a connector: the named one, else the first usable, which is told with the reason.

    Raises:
        InvalidArgument: no such connector.
        ConnectorUnavailable: none is usable; the message has the shortest way to get one.
    """
    if plan.url is not None or plan.earlier:
        return plan
    if plan.options.connector is not None:
        registry.resolve(plan.options)
        return plan
    name, refusals = await registry.first_usable(plan.options)
    reasons = "".join(f"; not usable: {refusal.message}" for refusal in refusals)
    complain(f"connector '{name}', the first usable one{reasons}; --connector or HARNESS_CONNECTOR chooses another")
    return plan.with_connector(name)


async def check_program(plan: Plan, registry: Registry) -> None:
    """Whether a program that is to use tools of its own asks before it acts: tried once for each binary.

    Raises:
        ConnectorUnavailable: it does not.
    """
    if plan.url is None and not plan.earlier and plan.flies_canary and plan.options.internal_tools:
        from harness.cli.canary import check_before  # brings the scripted model with it

        await check_before(plan.options, registry)


def _turn_options(plan: Plan) -> TurnOptions | None:
    """What may differ from turn to turn."""
    model, effort = plan.options.model, plan.options.effort
    if not plan.earlier or (model is None and effort is None):
        return None
    return TurnOptions(model=model, effort=effort)


@asynccontextmanager
async def open_llm(plan: Plan, registry: Registry) -> AsyncGenerator[Directory]:
    """The harness that the plan names: another process's, or one in this process."""
    # each brings half a house with it, and a run needs only one of them
    if plan.url is not None:
        from harness.remote import RemoteHarness

        async with RemoteHarness(plan.url) as remote:
            yield remote
        return
    from harness.cli.journals import journal_for
    from harness.local import LocalHarness

    # what other runs have left is theirs: only the conversation that is asked for is taken up
    journal = journal_for(plan.store, plan.journal)
    harness = LocalHarness(registry, settings=Settings(prices=plan.prices), store=journal, takes_up_turns=False)
    async with harness as local:
        yield local


@contextmanager
def _open_approver(plan: Plan, view: View) -> Generator[Approver]:
    if plan.is_unattended:
        yield Denying("Nobody is there to ask: allow it beforehand with --approve or --policy.")
        return
    if plan.approve != Approve.ASK:
        yield approver_for(ApprovalMode(plan.approve))
        return
    from harness.cli.asking import open_person  # terminals as POSIX knows them

    directory = Path(plan.options.cwd or ".").resolve() if plan.url is None else None
    with open_person(view.write_line, directory) as person:
        yield approver_for(ApprovalMode.ASK, person)
