"""One session of a client: a conversation of ours, one prompt at a time, its requests put to the person there."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
from anyio.abc import TaskStatus

from harness.contract.content import ContentBlock
from harness.contract.output import TERMINAL
from harness.contract.requests import HostRequest, HostResponse, QuestionAction, RequestKind
from harness.contract.state import TurnTranscript
from harness.errors import HarnessError, InvalidArgument, NotSupported, TurnInProgress, unwrapped
from harness.orchestrator.approvals import Decision, declined
from harness.orchestrator.conversation import ConversationHandle
from harness.orchestrator.lines import ItemLine, Line, ResponseLine
from harness.orchestrator.opening import open_conversation
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.policy import Policy
from harness.surfaces.acp_agent.asks import form_decision, form_params, permission_decision, permission_params
from harness.surfaces.acp_agent.client import Client, ClientRefused
from harness.surfaces.acp_agent.modes import MODE, Choices
from harness.surfaces.acp_agent.opening import Opening, OwnLLM
from harness.surfaces.acp_agent.outcome import answer_of
from harness.surfaces.acp_agent.updates import TurnUpdates, user_said
from harness.wire.json_rpc import JsonObject

logger = logging.getLogger(__name__)

SETTLE_MS = 60_000
"""One wait for the end of a cancelled turn; a change ends it at once."""
END_SECONDS = 30.0
"""How long the end of an earlier conversation may take before it is left as it is."""


class AgentSession:
    """Open while `hold` runs; it is its own approver."""

    def __init__(self, llm: OwnLLM, client: Client, opening: Opening, choices: Choices, *, has_forms: bool) -> None:
        self.session_id = ""
        """Set once the session is open."""
        self.choices = choices
        self.capabilities = opening.capabilities
        self._llm = llm
        self._client = client
        self._opening = opening
        self._has_forms = has_forms
        self._handle: ConversationHandle | None = None
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self._stop: anyio.Event | None = None
        self._updates = TurnUpdates()
        self._has_prompted = opening.conversation_id is not None

    async def hold(self, *, task_status: TaskStatus[None]) -> None:
        """Opens the session, tells so, and keeps it open until `close`.

        Raises:
            HarnessError: it cannot be opened.
        """
        try:
            with unwrapped():
                await self._hold(task_status)
        except HarnessError as error:
            if not self.session_id:
                raise
            # the client has the session's answers already, and its other sessions go on
            logger.warning("session '%s' did not end well: %s", self.session_id, error)
        finally:
            await self._leave()
            self._closed.set()

    async def close(self) -> None:
        """Ends a prompt that runs, and with it the session."""
        self.cancel()
        self._closing.set()
        await self._closed.wait()

    # prompts

    def begin_prompt(self) -> anyio.Event:
        """From now on a prompt runs; what is given here stops it.

        Raises:
            TurnInProgress: one runs already.
        """
        if self._stop is not None:
            raise TurnInProgress(
                f"a prompt of session '{self.session_id}' runs already: wait for its answer, or cancel it"
            )
        self._stop = anyio.Event()
        return self._stop

    def cancel(self) -> None:
        """Without a prompt there is nothing to cancel."""
        if self._stop is not None:
            self._stop.set()

    async def prompt(self, content: Sequence[ContentBlock], stop: anyio.Event) -> JsonObject:
        """Runs a turn to its end and tells of it on the way.

        Raises:
            HarnessError: the turn failed, or could not begin.
        """
        self._updates = TurnUpdates()
        self._has_prompted = True
        completion = await self._open_handle().ask(
            content, turn_options=self.choices.turn_options, on_line=self._see, stop=stop
        )
        return answer_of(completion)

    def end_prompt(self) -> None:
        self._stop = None

    async def choose(self, config_id: str, value: str) -> None:
        """From now on, also in a prompt that runs where it is the mode.

        Raises:
            InvalidArgument: there is no such choice.
        """
        self.choices = self.choices.chosen(config_id, value)
        if config_id == MODE:
            self._open_handle().use_policy(Policy(self.choices.policy))

    async def replay(self, turns: Sequence[TurnTranscript]) -> None:
        """Tells what was said before, as if it were said now."""
        for turn in turns:
            updates = TurnUpdates()
            for update in user_said(turn.content):
                await self._client.update(self.session_id, update)
            for item in turn.items:
                for update in updates.see(item):
                    await self._client.update(self.session_id, update)

    async def settle(self, turns: Sequence[TurnTranscript]) -> None:
        """Cancels a turn that an earlier process left running: no prompt of this client waits for it."""
        if not turns:
            return
        turn = (self.session_id, turns[-1].turn_id)
        if (await self._llm.poll_turn(*turn)).status in TERMINAL:
            return
        await self._llm.cancel_turn(*turn)
        state = await self._llm.poll_turn(*turn)
        while state.status not in TERMINAL:
            state = await self._llm.poll_turn(*turn, since_sequence_no=state.sequence_no, max_wait_ms=SETTLE_MS)

    # what a peer asks

    async def decide(self, request: HostRequest) -> Decision | None:
        """Puts an approval or a question to the person in the client."""
        stop = self._stop
        if stop is None or stop.is_set():
            return None
        try:
            if request.kind == RequestKind.APPROVAL:
                decision = await self._permission(request)
            else:
                decision = await self._question(request)
        except (ClientRefused, InvalidArgument) as error:
            logger.warning("the client did not answer '%s': %s", request.request_id, error)
            return declined(request, Refusal(RefusalKind.APPROVAL_UNAVAILABLE, "The client cannot ask for this."))
        if decision is None:
            stop.set()  # the protocol's word for it: the client cancels the turn
        return decision

    async def _permission(self, request: HostRequest) -> Decision | None:
        params = permission_params(self.session_id, self._updates.call_key(request), request)
        result = await self._client.ask("session/request_permission", params)
        return permission_decision(request, result)

    async def _question(self, request: HostRequest) -> Decision:
        if not self._has_forms:
            return _unasked(request, "The client cannot show questions.")
        if any(question.secret for question in request.questions):
            return _unasked(request, "A secret is not asked for in a form that the client may keep.")
        if not request.questions and request.answer_schema_json is None:
            return _unasked(request, "The question has no form.")
        result = await self._client.ask("elicitation/create", form_params(self.session_id, request))
        return form_decision(request, result)

    # inside

    async def _hold(self, task_status: TaskStatus[None]) -> None:
        opening = self._opening
        async with open_conversation(
            self._llm,
            options=opening.options,
            approver=self,
            policy=Policy(self.choices.policy),
            servers=opening.servers,
            conversation_id=opening.conversation_id,
        ) as handle:
            self._handle, self.session_id = handle, handle.conversation_id
            task_status.started()
            await self._closing.wait()

    async def _see(self, line: Line) -> None:
        if isinstance(line, ResponseLine):
            self._updates.answered(line.response)
        elif isinstance(line, ItemLine):
            for update in self._updates.see(line.item):
                await self._client.update(self.session_id, update)

    def _open_handle(self) -> ConversationHandle:
        if self._handle is None or self._closing.is_set():
            raise NotSupported(f"session '{self.session_id}' is closed: load it again")
        return self._handle

    async def _leave(self) -> None:
        """An earlier conversation is not ended by who only opened it; one without a prompt is not worth keeping."""
        if not self.session_id:
            return
        with anyio.move_on_after(END_SECONDS, shield=True):
            try:
                if not self._has_prompted:
                    await self._llm.delete_conversation(self.session_id)
                elif self._opening.conversation_id is not None:
                    await self._llm.end_conversation(self.session_id)
            except HarnessError as error:
                logger.warning("session '%s' could not be ended: %s", self.session_id, error)


def _unasked(request: HostRequest, reason: str) -> Decision:
    response = HostResponse(request_id=request.request_id, action=QuestionAction.DECLINE, reason=reason)
    return Decision(response, Refusal(RefusalKind.APPROVAL_UNAVAILABLE, reason))
