"""A `ChatModel` that answers at once from a script, in a connector of its own: the model loop without a wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio

from harness.connector import Session, SessionLog
from harness.contract import (
    TERMINAL,
    ConversationOptions,
    HostRequest,
    HostResponse,
    JsonValue,
    LlmCapabilities,
    Notice,
    OutputItem,
    TextBlock,
    ToolDescriptor,
    TurnOptions,
    TurnState,
    UsageInfo,
    as_content,
)
from harness.contract.delegation import Delegation
from harness.local import LocalHarness
from harness.model_loop import (
    TURN_OPTIONS,
    CallMade,
    Heard,
    LoopConfig,
    ModelAnswer,
    ModelRequest,
    ModelSession,
    Said,
    ToolMessage,
    config_of,
    text_said,
)
from harness.registry import Registry
from harness.store.port import Store

Step: TypeAlias = "ModelAnswer | Exception | Callable[[ModelRequest], ModelAnswer] | Hang"
ADD = ToolDescriptor(
    name="add",
    input_schema_json='{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}',
)
LOOK = ToolDescriptor(name="look", read_only=True)


class Hang:
    """The model says this much and never ends."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.reached = anyio.Event()


def says(
    text: str, *, stop: Any = "end_turn", usage: tuple[int, int] | None = None, native: JsonValue = None
) -> ModelAnswer:
    return ModelAnswer((Said(text),), stop=stop, usage=_usage(usage), native=native)


def calls(*made: tuple[str, str, str], text: str = "", usage: tuple[int, int] | None = None) -> ModelAnswer:
    """An answer that makes these calls: id, name, arguments."""
    said = (Said(text),) if text else ()
    return ModelAnswer(said, tuple(CallMade(*one) for one in made), usage=_usage(usage))


def _usage(figures: tuple[int, int] | None) -> UsageInfo | None:
    return None if figures is None else UsageInfo(input_tokens=figures[0], output_tokens=figures[1])


class ScriptedChatModel:
    """One step per model call, whoever makes it; afterwards it says "done"."""

    origin = "scripted"

    def __init__(self, *steps: Step, context_window: int | None = None) -> None:
        self.steps = list(steps)
        self.requests: list[ModelRequest] = []
        self.context_window = context_window

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        self.requests.append(request)
        step: Step = self.steps.pop(0) if self.steps else says("done")
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Hang):
            heard.text(step.text)
            step.reached.set()
            await anyio.sleep_forever()
        answer = step(request) if callable(step) else step
        assert isinstance(answer, ModelAnswer)
        heard.text(text_said(answer.said))
        return answer

    def check_pairs(self) -> None:
        """Every request: each call has exactly its one result, in call order, right behind the calls."""
        for request in self.requests:
            seen: set[str] = set()
            for message, following in zip(request.messages, [*request.messages[1:], None], strict=True):
                made = [call.call_id for call in getattr(message, "calls", ())]
                assert not seen & set(made) and len(set(made)) == len(made)
                seen.update(made)
                if made:
                    assert isinstance(following, ToolMessage)
                    assert [result.call_id for result in following.results] == made


class ScriptedConnector:
    """The connector `scripted`: exact resume, everything routed."""

    name = "scripted"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options: frozenset[str] = frozenset()

    def __init__(self, model: ScriptedChatModel) -> None:
        self.model = model

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config_of(LoopConfig, options, self.name)
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            routable_request_kinds=["tool_call"],
            resume="exact",
            seed_history="exact",
            structured_output="turn",
            images_in_tool_results=True,
            images_in_prompt=True,
            turn_options=list(TURN_OPTIONS),
            reports_usage=True,
            reports_cost=True,
        )

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        yield ModelSession(self.model, config_of(LoopConfig, options, self.name), options, log)


class Talk:
    """One conversation, and the host that answers its calls."""

    def __init__(self, house: LocalHarness, conversation_id: str) -> None:
        self.house = house
        self.conversation_id = conversation_id
        self.opened: list[HostRequest] = []

    async def begin(self, text: str = "go", **options: Any) -> str:
        turn_options = TurnOptions.model_validate(options)
        return await self.house.submit_user_message(self.conversation_id, as_content(text), turn_options)

    async def until(self, turn_id: str, met: Callable[[TurnState], bool]) -> TurnState:
        """The whole turn from its first item on, as soon as the condition holds."""
        with anyio.fail_after(10):
            state = await self.house.poll_turn(self.conversation_id, turn_id, 0, 0)
            while not met(state):
                await self.house.poll_turn(self.conversation_id, turn_id, state.sequence_no, 5000)
                state = await self.house.poll_turn(self.conversation_id, turn_id, 0, 0)
        return state

    async def pending(self, turn_id: str, count: int = 1) -> list[HostRequest]:
        return (await self.until(turn_id, lambda state: len(state.pending_requests) == count)).pending_requests

    async def answer(self, turn_id: str, *responses: HostResponse) -> None:
        await self.house.submit_responses(self.conversation_id, turn_id, responses)

    async def run(
        self,
        text: str = "go",
        tool: Callable[[HostRequest], HostResponse] | None = None,
        **options: Any,
    ) -> TurnState:
        """A whole turn; each open request is answered by `tool`, by default with its own arguments."""
        turn_id = await self.begin(text, **options)
        return await self.finish(turn_id, tool)

    async def finish(self, turn_id: str, tool: Callable[[HostRequest], HostResponse] | None = None) -> TurnState:
        while True:
            state = await self.until(turn_id, lambda one: bool(one.pending_requests) or one.status in TERMINAL)
            if state.status in TERMINAL:
                return state
            self.opened += state.pending_requests
            await self.answer(turn_id, *((tool or echo)(request) for request in state.pending_requests))


def echo(request: HostRequest) -> HostResponse:
    return answered(request, request.arguments_json or "")


def answered(request: HostRequest, text: str, *, is_error: bool = False) -> HostResponse:
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=text)], is_error=is_error)


@asynccontextmanager
async def talk_with(
    peer: ScriptedChatModel,
    /,
    *,
    store: Store | None = None,
    tools: Sequence[ToolDescriptor] = (ADD, LOOK),
    **options: Any,
) -> AsyncGenerator[Talk]:
    connector = ScriptedConnector(peer)
    async with LocalHarness(Registry({"scripted": connector}), store=store) as house:
        wanted = ConversationOptions.model_validate({"connector": "scripted", "tools": list(tools), **options})
        yield Talk(house, await house.begin_conversation(wanted))


def notices(state: TurnState, code: str) -> list[str]:
    return [item.text for item in state.new_output_items if isinstance(item, Notice) and item.code == code]


def kinds(items: Sequence[OutputItem]) -> list[str]:
    return [item.kind for item in items]
