"""One conversation seen from the host's side: what scenarios drive, through `ConversationalLLM` and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.contract.content import ContentBlock, TextBlock, as_content
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.options import TurnOptions
from harness.contract.output import (
    TERMINAL,
    InternalToolFinished,
    InternalToolStarted,
    Notice,
    OutputItem,
    RequestResolved,
    TextDelta,
)
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.state import TurnState
from harness.orchestrator.turn_record import TurnRecord
from harness.testing.checks import Divergence, only, same

WAIT_MS = 30_000
Answer: TypeAlias = Callable[[HostRequest], HostResponse]


def result(request: HostRequest, text: str, *, is_error: bool = False) -> HostResponse:
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=text)], is_error=is_error)


def choice(request: HostRequest, option: str, **more: str) -> HostResponse:
    return HostResponse.model_validate({"request_id": request.request_id, "selected_option": option, **more})


def nobody_asked(request: HostRequest) -> HostResponse:
    """The answer of a host that expects no request."""
    raise Divergence(f"a {request.kind} for '{request.tool_name}' was opened, and none should be")


def _always(state: TurnState, items: list[OutputItem]) -> bool:
    return True


def _never(state: TurnState, items: list[OutputItem]) -> bool:
    return False


@dataclass(frozen=True)
class Turn:
    """A turn as far as it was seen."""

    turn_id: str
    state: TurnState
    items: list[OutputItem]
    requests: list[HostRequest]
    """Every request that was pending at some poll, once."""

    @property
    def text(self) -> str:
        record = TurnRecord("", self.turn_id)
        for item in self.items:
            record.add(item)
        return record.text

    @property
    def deltas(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    @property
    def end(self) -> tuple[str, str | None]:
        """Status and stop reason."""
        return str(self.state.status), None if self.state.stop_reason is None else str(self.state.stop_reason)

    def must_end(self, status: str, stop_reason: str) -> None:
        """Raises:
        Divergence: it ended otherwise; says also with which error.
        """
        because = "" if self.state.error is None else f": {self.state.error.message}"
        same(f"the end of turn '{self.turn_id}'{because}", self.end, (status, stop_reason))

    def notices(self, code: str) -> list[str]:
        return [item.text for item in self.items if isinstance(item, Notice) and item.code == code]

    def outcomes(self) -> dict[str, str]:
        """Request id -> how it was resolved."""
        return {item.request_id: str(item.outcome) for item in self.items if isinstance(item, RequestResolved)}

    def internal_tool(self, call_id: str) -> tuple[InternalToolStarted, InternalToolFinished]:
        """The report of a call that the peer ran, or refused, itself."""
        started = [i for i in self.items if isinstance(i, InternalToolStarted) and i.call_id == call_id]
        finished = [i for i in self.items if isinstance(i, InternalToolFinished) and i.call_id == call_id]
        return only(f"starts of call '{call_id}'", started), only(f"ends of call '{call_id}'", finished)


class Talk:
    """A conversation and the host that answers in it."""

    def __init__(self, llm: ConversationalLLM, conversation_id: str) -> None:
        self.llm = llm
        self.conversation_id = conversation_id

    async def start(self, message: str | Sequence[ContentBlock] = "Go.", options: TurnOptions | None = None) -> str:
        return await self.llm.submit_user_message(self.conversation_id, as_content(message), options)

    async def until(self, turn_id: str, reached: Callable[[TurnState, list[OutputItem]], object]) -> Turn:
        """The turn as soon as it is so, from its first item on; also when it is over before that."""
        items: list[OutputItem] = []
        requests: dict[str, HostRequest] = {}
        since = 0
        while True:
            state = await self.llm.poll_turn(self.conversation_id, turn_id, since, WAIT_MS)
            items += state.new_output_items
            requests |= {request.request_id: request for request in state.pending_requests}
            since = state.sequence_no
            if reached(state, items) or (state.status in TERMINAL and not state.has_more):
                return Turn(turn_id, state, items, list(requests.values()))

    async def now(self, turn_id: str) -> Turn:
        """The turn as it is."""
        return await self.until(turn_id, _always)

    async def unanswered(self, turn_id: str) -> Turn:
        """The turn when it is over, with nobody who answers."""
        return await self.until(turn_id, _never)

    async def pending(self, turn_id: str, count: int = 1) -> list[HostRequest]:
        """What waits, once that many requests wait.

        Raises:
            Divergence: the turn ended before.
        """
        turn = await self.until(turn_id, lambda state, _: len(state.pending_requests) >= count)
        if len(turn.state.pending_requests) < count:
            raise Divergence(f"the turn ended {turn.end} with fewer than {count} requests; text: {turn.text!r}")
        return turn.state.pending_requests

    async def answer(self, turn_id: str, *responses: HostResponse) -> None:
        await self.llm.submit_responses(self.conversation_id, turn_id, responses)

    async def cancel(self, turn_id: str) -> None:
        await self.llm.cancel_turn(self.conversation_id, turn_id)

    async def finished(self, turn_id: str, answer: Answer = nobody_asked) -> Turn:
        """Answers each request as it comes, until the turn is over."""
        known: dict[str, HostRequest] = {}

        def new(state: TurnState) -> list[HostRequest]:
            return [request for request in state.pending_requests if request.request_id not in known]

        while True:
            turn = await self.until(turn_id, lambda state, _: new(state))
            asked = new(turn.state)
            if not asked:
                return Turn(turn_id, turn.state, turn.items, list(known.values()))
            known |= {request.request_id: request for request in asked}
            await self.answer(turn_id, *(answer(request) for request in asked))

    async def say(
        self,
        message: str | Sequence[ContentBlock] = "Go.",
        answer: Answer = nobody_asked,
        options: TurnOptions | None = None,
    ) -> Turn:
        return await self.finished(await self.start(message, options), answer)
