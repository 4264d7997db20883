"""A conversation: many turns with one connector, one at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import cast

import anyio
from anyio.abc import TaskGroup

from harness.connector import ChecksDelegation, Connector, Session
from harness.contract.capabilities import LlmCapabilities, Resume
from harness.contract.content import ContentBlock, text_of
from harness.contract.delegation import Delegation, RequestPolicy
from harness.contract.options import TurnOptions
from harness.contract.output import Item
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import (
    ConversationExport,
    ConversationInfo,
    ConversationState,
    TurnState,
    TurnTranscript,
)
from harness.contract.tools import ToolSourceDescriptor
from harness.contract.usage import UsageInfo, add_usage
from harness.contract.value import JsonValue
from harness.conversation import checks
from harness.conversation.deadlines import Clock
from harness.conversation.identities import Identities, call_ids_in
from harness.conversation.journal import Journal
from harness.conversation.recovery import CONTINUED_AFTER_LOSS, Past, PastTurn, continuation, open_calls, past_of
from harness.conversation.running_turn import AnswersFirst, RunningTurn
from harness.conversation.session_loop import SessionLoop
from harness.conversation.session_memory import SessionMemory
from harness.conversation.turn_list import TurnList
from harness.errors import (
    HarnessError,
    InvalidArgument,
    NotSupported,
    PeerLost,
    TurnInProgress,
    UnknownTurn,
)
from harness.settings import Settings
from harness.store.port import ConversationRecord, DelegationChanged, Store, Summary, TurnBegun
from harness.trace.redaction import Redactor, secrets_of_environment, secrets_of_options
from harness.turn.events import notice

logger = logging.getLogger(__name__)

EVERYTHING = 2**31
"""More items than any turn has."""
_CLOSED_BY_A_CRASH = "the harness process died while the turn ran; the peer's open calls were closed with it"


class Conversation:
    """Serves its turns one after the other in a session that is opened when the first one comes."""

    def __init__(
        self,
        record: ConversationRecord,
        connector: Connector,
        capabilities: LlmCapabilities,
        *,
        group: TaskGroup,
        settings: Settings,
        clock: Clock,
        answers_first: AnswersFirst | None = None,
    ) -> None:
        self.conversation_id = record.conversation_id
        self.owner = record.owner
        self.options = record.options
        self.capabilities = capabilities
        self._connector = connector
        self._group = group
        self._settings = settings
        self._clock = clock
        self._answers_first = answers_first
        secrets = (*secrets_of_environment(os.environ), *secrets_of_options(record.options.connector_options_json))
        self._redactor = Redactor(secrets)
        self._created_at = record.created_at
        self._state = record.summary.state
        self._first_message = record.summary.first_message
        self._delegation = Delegation()
        self._journal: Journal | None = None
        self._store: Store | None = None
        self._memory = SessionMemory()
        self._identities = Identities(call_ids_in(record.options.history))
        self._turns = TurnList(settings.kept_turns)
        self._sessions = SessionLoop(self, self._turns, group, settings.idle_ttl_seconds)
        self._continued: str | None = None
        self._closed: anyio.Event | None = None

    # what an earlier process left, and what outlives this one

    def keep_in(self, store: Store, epoch: int) -> None:
        """From now on everything is journaled; the conversation was claimed under `epoch`."""
        self._store = store
        self._journal = Journal(store, self.conversation_id, epoch, self.summary, self._on_journal_failure)
        self._memory.journal = self._journal
        self._group.start_soon(self._journal.run)

    def recall(self, past: Past, store: Store) -> None:
        """Takes up the conversation as the journal has it; nothing is started and nothing is written."""
        self._store = store
        self._memory = SessionMemory(past.records)
        self._memory.journal = self._journal
        if past.delegation_json is not None:
            self._delegation = Delegation.model_validate_json(past.delegation_json)
        asked = [request for turn in past.turns.values() for request in turn.requests()]
        self._identities = Identities([*call_ids_in(self.options.history), *asked])
        earlier = None
        for number, turn in enumerate(past.turns.values(), 1):
            if number > len(past.turns) - self._settings.kept_turns:
                self._turns.add(self._running_turn(turn.turn_id, turn.content, turn.options, earlier, past=turn))
            else:
                self._turns.note(turn.turn_id, turn.options)
            earlier = add_usage(earlier, turn.usage)
        if past.newest is not None and past.newest.continues_a_lost_one:
            self._continued = past.newest.turn_id

    @property
    def connector_name(self) -> str:
        """As the registry knows it, without a variant."""
        return self._connector.name

    async def fork_from(self, origin: Conversation, records: Sequence[JsonValue]) -> None:
        """Goes on from where `origin` is; `records` is what the connector wants to remember of it."""
        for record in records:
            self._memory.append(record)
        await self._delegate(origin._delegation)

    def remembered(self) -> Sequence[JsonValue]:
        """What the connector has noted, private to it."""
        return self._memory.records()

    async def go_on(self, past: Past) -> None:
        """Closes what a dead process left open, by the capability `resume` (contract 6)."""
        running, turn = self._turns.current, past.newest
        if running is None or turn is None:
            return
        if self.capabilities.resume == Resume.EXACT:
            self._memory.accepted = running.accepted_answers
            running.restore(turn.unfinished_messages(), partial(self._sessions.queue, running))
            self._group.start_soon(running.watch_deadlines)
        else:
            running.close_overdue()
            lost = PeerLost(_CLOSED_BY_A_CRASH)
            lost.detail["open_requests"] = open_calls(running.turn.open_requests, turn.given_answers())
            running.fail_by_peer(lost)
            self._continue_after_loss(running)
        await self._flush()

    def summary(self) -> Summary:
        """What a list shows, as of now."""
        return Summary(
            state=self._state,
            updated_at=self._updated_at,
            turns=self._turns.begun,
            first_message=self._first_message,
            turn_is_running=self._turns.current is not None,
            open_requests=self.open_requests(),
        )

    def _on_journal_failure(self, error: HarnessError) -> None:
        logger.error("the journal of '%s' failed: %s", self.conversation_id, error)
        if self._turns.current is not None:
            self._turns.current.fail(error)

    # operations

    def prestart(self) -> None:
        """Starts the peer before the first message."""
        self._sessions.start()

    async def submit(self, content: Sequence[ContentBlock], options: TurnOptions) -> str:
        """Begins a turn, or finds the one that an equal submission began; durable when this returns."""
        if self._journal is not None and self._journal.is_broken:
            await self._flush()
        turn_id = self._turns.begun_by(content, options)
        if turn_id is None:
            if self._sessions.is_ending:
                raise TurnInProgress(f"conversation '{self.conversation_id}' is being ended")
            current = self._turns.current
            if current is not None:
                message = f"turn '{current.turn_id}' of this conversation still runs"
                raise TurnInProgress(message, turn_id=current.turn_id)
            checks.check_message(content, self.capabilities)
            checks.check_turn_options(options, self.options, self.capabilities)
            turn_id = self._begin_turn(content, options).turn_id
        await self._flush()
        return turn_id

    async def poll(self, turn_id: str, since: int, max_wait_ms: int, max_items: int) -> TurnState:
        running = self._turns.get(turn_id) or await self._turn_of_old(turn_id)
        if max_items < 1 or since < 0:
            raise InvalidArgument("'max_items' must be at least 1 and 'since_sequence_no' at least 0")
        if max_wait_ms > 0:
            await running.wait_newer(since, max_wait_ms)
        older: Sequence[Item] = ()
        if self._store is not None and since + 1 < running.turn.first_sequence_no:
            older = await self._store.items(self.conversation_id, turn_id, since, max_items)
        return running.state(since, max_items, older)

    async def respond(self, turn_id: str, responses: Sequence[HostResponse]) -> None:
        """Judges each answer alone; valid ones are applied even if others are not, and are durable at the return."""
        running = self._turn(turn_id)
        rejected: list[tuple[str, HarnessError]] = []
        for response in responses:
            try:
                request = running.turn.open_request(response.request_id)
                if request is not None:
                    checks.check_response(request, response, self.capabilities)
                running.respond(response)
            except HarnessError as error:
                rejected.append((response.request_id, error))
        await self._flush()
        if rejected:
            raise _rejection(rejected)

    async def cancel(self, turn_id: str) -> None:
        self._turn(turn_id).cancel()
        await self._flush()

    async def end(self, state: ConversationState = ConversationState.ENDED) -> None:
        """Cancels a running turn, closes the session and waits until all it owned is gone."""
        if self._turns.current is not None:
            self._turns.current.cancel()
        await self._close(state)

    async def leave(self) -> None:
        """The harness closes. A turn that can go on exactly stays in the journal for the next process, others end."""
        if self._turns.current is not None:
            self._give_up(self._turns.current)
        await self._close(ConversationState.PARKED)

    async def closed(self) -> bool:
        """Waits for an end that is under way; true when this object is of no more use after it."""
        if self._closed is None:
            return False
        await self._closed.wait()
        return self._journal is not None  # without one the next message goes on in this object

    async def _close(self, state: ConversationState) -> None:
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = anyio.Event()
        try:
            await self._sessions.end()
            self._state = state
            if self._journal is not None:
                await self._journal.close()
                return
        finally:
            self._sessions.is_ending = False
            self._closed.set()
        self._closed = None  # without a journal the next message goes on in this object

    def _give_up(self, running: RunningTurn) -> None:
        """For an end that nobody asked for."""
        can_go_on = self._journal is not None and self.capabilities.resume == Resume.EXACT
        if can_go_on and not running.turn.cancel_requested:
            self._sessions.forget_queued()
            running.leave()
        else:
            running.cancel()

    async def delegate_tool_sources(self, sources: Sequence[ToolSourceDescriptor]) -> None:
        self._check_not_begun()
        for source in sources:
            if source.kind not in self.capabilities.delegatable_tool_sources:
                raise NotSupported(
                    f"connector '{self._connector.name}' cannot take a tool source of kind '{source.kind}'"
                )
        await self._delegate(self._delegation.model_copy(update={"tool_sources": list(sources)}))

    async def delegate_request_policy(self, policy: RequestPolicy) -> None:
        self._check_not_begun()
        if not self.capabilities.supports_request_policy_delegation:
            raise NotSupported(f"connector '{self._connector.name}' cannot take a request policy")
        await self._delegate(self._delegation.model_copy(update={"request_policy": policy}))

    async def _delegate(self, delegation: Delegation) -> None:
        if isinstance(self._connector, ChecksDelegation):
            self._connector.check_delegation(self.options, delegation)
        self._delegation = delegation
        if self._journal is not None:
            self._journal.note(DelegationChanged(delegation.to_json()))
            await self._journal.flushed()

    # the directory

    def info(self) -> ConversationInfo:
        return ConversationInfo(
            conversation_id=self.conversation_id,
            state=self._state,
            connector=self.options.connector or self._connector.name,
            model=self.options.model,
            created_at=self._created_at,
            updated_at=self._updated_at,
            turns=self._turns.begun,
            first_message=self._first_message,
            pending_requests=len(self.open_requests()),
            labels=self.options.labels,
        )

    @property
    def has_session(self) -> bool:
        """Whether a peer runs, or is about to."""
        return self._sessions.is_running

    @property
    def can_resume(self) -> bool:
        """Whether the peer may be closed between two turns without forgetting anything."""
        return self.capabilities.resume != Resume.NONE

    def open_requests(self) -> list[OpenRequest]:
        current = self._turns.current
        if current is None:
            return []
        return [
            OpenRequest(conversation_id=self.conversation_id, turn_id=current.turn_id, request=request)
            for request in current.turn.open_requests
        ]

    async def export(self) -> ConversationExport:
        turns: list[TurnTranscript] = []
        if self._store is not None:
            await self._flush()
            past = past_of(await self._store.entries(self.conversation_id))
            turns = [turn.transcript() for turn in past.turns.values()]
            return ConversationExport(conversation=self.info(), turns=turns)
        for turn in self._turns:
            state = await self.poll(turn.turn_id, 0, 0, EVERYTHING)
            turns.append(TurnTranscript(turn_id=turn.turn_id, content=turn.content, items=state.new_output_items))
        return ConversationExport(conversation=self.info(), turns=turns)

    def idle_since(self) -> int | None:
        """When the last turn ended (ms since the epoch); null while one runs."""
        return None if self._turns.current is not None else self._updated_at

    @property
    def _updated_at(self) -> int:
        newest = self._turns.newest
        return self._created_at if newest is None else newest.turn.last_activity_at

    # turns

    def _turn(self, turn_id: str) -> RunningTurn:
        running = self._turns.get(turn_id)
        if running is None:
            raise UnknownTurn(f"no turn '{turn_id}' in conversation '{self.conversation_id}'")
        return running

    async def _turn_of_old(self, turn_id: str) -> RunningTurn:
        """One that is no longer kept in memory."""
        past = Past() if self._store is None else past_of(await self._store.entries(self.conversation_id))
        earlier = None
        for turn in past.turns.values():
            if turn.turn_id == turn_id:
                return self._running_turn(turn_id, turn.content, turn.options, earlier, past=turn)
            earlier = add_usage(earlier, turn.usage)
        return self._turn(turn_id)

    def _begin_turn(self, content: Sequence[ContentBlock], options: TurnOptions) -> RunningTurn:
        self._state = ConversationState.OPEN
        self._first_message = self._first_message or text_of(content)[:200]
        running = self._running_turn(f"t{self._turns.begun + 1}", content, options, self._turns.usage())
        self._turns.add(running)
        self._group.start_soon(running.watch_deadlines)
        if self._journal is None:
            self._sessions.queue(running)
        else:  # the peer hears of it when it is durable
            begun = TurnBegun(running.turn_id, running.content, options, running.turn.started_at)
            self._journal.note(begun, then=partial(self._sessions.queue, running))
        return running

    def _running_turn(
        self,
        turn_id: str,
        content: Sequence[ContentBlock],
        options: TurnOptions,
        earlier_usage: UsageInfo | None,
        past: PastTurn | None = None,
    ) -> RunningTurn:
        return RunningTurn(
            turn_id,
            content,
            options,
            timeouts=self.options.timeouts,
            identities=self._identities,
            settings=self._settings,
            clock=self._clock,
            earlier_usage=earlier_usage,
            limits=self.options.limits,
            model=self.options.model,
            answers_first=self._answers_first,
            redactor=self._redactor,
            journal=self._journal,
            answers_are_history=self.capabilities.resume == Resume.EXACT,
            past=past,
        )

    async def _flush(self) -> None:
        if self._journal is not None:
            await self._journal.flushed()

    def _continue_after_loss(self, running: RunningTurn) -> None:
        """With `on_peer_lost: continue` the harness itself sends the message that goes on, once per loss."""
        chosen = checks.parsed_object(self.options.connector_options_json or "{}", "connector_options_json")
        lost = running.lost
        if lost is None or chosen.get("on_peer_lost") != "continue" or self._continued == running.turn_id:
            return
        content = continuation(cast(list[dict[str, JsonValue]], lost.detail["open_requests"]))
        following = self._begin_turn(content, TurnOptions())
        self._continued = following.turn_id
        following.emit(notice(CONTINUED_AFTER_LOSS, f"goes on by itself after turn '{running.turn_id}' was lost"))

    def _check_not_begun(self) -> None:
        if self._turns.begun:
            raise InvalidArgument("delegation is possible before the first turn only")

    # what the loop of sessions asks and tells

    def open_session(self) -> AbstractAsyncContextManager[Session]:
        return self._connector.open_session(self.options, self._delegation, self._memory)

    def before_turn(self, running: RunningTurn, *, is_first: bool) -> None:
        running.emit(*self._memory.take_notices())
        if is_first and self._turns.begun > 1 and self.capabilities.resume == Resume.NONE:
            running.emit(notice("history_lost", "this peer cannot resume: it knows nothing of the turns before"))

    def after_turn(self, running: RunningTurn) -> None:
        if running.lost is not None:
            self._continue_after_loss(running)

    def after_sessions(self) -> None:
        if self._turns.current is not None:
            self._give_up(self._turns.current)
        if self._state == ConversationState.OPEN:
            self._state = ConversationState.PARKED


def _rejection(rejected: Sequence[tuple[str, HarnessError]]) -> HarnessError:
    """One error for the answers that were not accepted; everything else was (contract 4)."""
    first = rejected[0][1]
    same = all(type(error) is type(first) for _, error in rejected)
    message = first.message if len(rejected) == 1 else f"{len(rejected)} answers were rejected; first: {first.message}"
    listed = [{"request_id": rid, "code": error.code, "message": error.message} for rid, error in rejected]
    detail = {**first.detail, "rejected": listed} if len(rejected) == 1 else {"rejected": listed}
    kind = type(first) if same else InvalidArgument
    return kind(message, **detail)
