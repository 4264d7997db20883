"""The conversation of a chat, as long as it is open: what lives in the event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from harness.cli.advising import open_advisor
from harness.cli.resuming import Directory, earlier_conversation
from harness.cli.run_plan import Plan
from harness.cli.run_views import View
from harness.cli.running import check_program, open_llm, with_connector
from harness.cli.tool_sources import open_services
from harness.contract.capabilities import LlmCapabilities
from harness.contract.options import TurnOptions
from harness.contract.requests import HostRequest
from harness.contract.state import ConversationInfo
from harness.contract.tools import ToolDescriptor
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError, InvalidArgument
from harness.orchestrator.approvals import ApprovalMode, Approver, Decision
from harness.orchestrator.completion import Completion
from harness.orchestrator.conversation import ConversationHandle
from harness.orchestrator.opening import open_conversation
from harness.registry import Registry


class Approvals:
    """An `Approver` that a person sets while the conversation goes on."""

    def __init__(self, mode: ApprovalMode, approvers: Mapping[ApprovalMode, Approver]) -> None:
        self.mode = mode
        self._approvers = approvers

    async def decide(self, request: HostRequest) -> Decision | None:
        return await self._approvers[self.mode].decide(request)

    def use(self, mode: str) -> None:
        """Raises:
        InvalidArgument: no such way to answer here.
        """
        if mode not in self._approvers:
            known = ", ".join(self._approvers)
            raise InvalidArgument(f"'/approve {mode}' is not possible here; possible: {known}")
        self.mode = ApprovalMode(mode)


class Room:
    """One open conversation. Its methods run in the event loop."""

    def __init__(self, plan: Plan, llm: Directory, handle: ConversationHandle, unfinished: str | None) -> None:
        self._llm = llm
        self._handle = handle
        self._effort = plan.options.effort if plan.earlier else None
        self._is_begun_here = not plan.earlier
        self.model: str | None = plan.options.model if plan.earlier else None
        """For the turns to come; null: what the conversation was begun with."""
        self.unfinished = unfinished
        """A turn of before that goes on."""
        self._one_turn = anyio.Lock()
        self._asking = anyio.CancelScope()

    @property
    def conversation_id(self) -> str:
        return self._handle.conversation_id

    @property
    def tools(self) -> list[ToolDescriptor]:
        return self._handle.tools

    @property
    def capabilities(self) -> LlmCapabilities | None:
        """Null for a conversation of before: it was begun with options that are not known here."""
        return self._handle.capabilities if self._is_begun_here else None

    async def info(self) -> ConversationInfo:
        return await self._llm.get_conversation(self.conversation_id)

    async def ask(self, text: str | None, view: View, stop: anyio.Event) -> Completion:
        """The answer to a message; without one, the end of the turn that goes on.

        Raises:
            HarnessError: a call broke; the conversation may go on.
        """
        options = TurnOptions(model=self.model, effort=self._effort)
        turn_id, self.unfinished = self.unfinished, None
        async with self._one_turn:
            with anyio.CancelScope() as self._asking:
                if text is None:
                    return await self._handle.ask(turn_id=turn_id, on_line=view.see, stop=stop)
                return await self._handle.ask(text, turn_options=options, on_line=view.see, stop=stop)
            raise InvalidArgument("the chat ends")

    async def settle(self) -> None:
        """Cancels the turn that nobody waits for any more, and returns when it is over."""
        self._asking.cancel()
        async with self._one_turn:
            return

    def use_model(self, name: str | None) -> None:
        """Raises:
        InvalidArgument: this connector keeps the model that the conversation was begun with.
        """
        capabilities = self.capabilities
        if name is not None and capabilities is not None and "model" not in capabilities.turn_options:
            raise InvalidArgument("this connector keeps its model: leave, and begin a new chat with --model")
        self.model = name

    async def usage(self) -> UsageInfo | None:
        """Of the whole conversation; null where nothing was reported."""
        turns = (await self._llm.export_conversation(self.conversation_id)).turns
        if not turns:
            return None
        return (await self._llm.poll_turn(self.conversation_id, turns[-1].turn_id)).conversation_usage


@asynccontextmanager
async def open_room(plan: Plan, approvals: Approvals, directory: Path) -> AsyncGenerator[Room]:
    """The conversation that the plan describes: a new one, or one of before.

    Raises:
        HarnessError: it cannot begin, or there is none to go on with.
    """
    registry = Registry()
    plan = await with_connector(plan, registry)
    await check_program(plan, registry)
    async with (
        open_llm(plan, registry) as llm,
        open_services(plan.openapi, plan.ujmw) as services,
        open_advisor(plan.advisor, registry, plan.prices) as advisors,
    ):
        found = await earlier_conversation(llm, plan.earlier, directory) if plan.earlier else None
        begun = ""
        try:
            async with open_conversation(
                llm,
                tools=[*plan.tools, *services, *advisors],
                servers=plan.servers,
                approver=approvals,
                policy=plan.policy,
                options=None if found else plan.options,
                conversation_id=found.conversation_id if found else None,
            ) as handle:
                begun = "" if found else handle.conversation_id
                room = Room(plan, llm, handle, found.turn_id if found else None)
                try:
                    yield room
                finally:
                    await room.settle()
        finally:
            if begun:
                await _forget_if_unused(llm, begun)


async def _forget_if_unused(llm: Directory, conversation_id: str) -> None:
    """Nobody goes on with a conversation in which nothing was said."""
    with anyio.move_on_after(5, shield=True):
        try:
            if (await llm.get_conversation(conversation_id)).turns == 0:
                await llm.delete_conversation(conversation_id)
        except HarnessError:
            return  # it ends with its harness
