"""Limits and the house's own policy in a conversation: what a host sees of them, whatever the peer does."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from contract_tests.orchestrator.puppet import Puppet, until
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostRequest,
    HostResponse,
    Limits,
    OptionKind,
    RequestKind,
    RequestOption,
    RequestPolicy,
    TextBlock,
    TurnState,
    UsageInfo,
)
from harness.contract.output import Notice, RequestResolved
from harness.errors import NotSupported
from harness.local import LocalHarness
from harness.policy import Policy, rule_of_text
from harness.registry import Registry
from harness.settings import Price, Settings
from harness.turn.events import RequestRaised, UsageReported, text_delta

HELLO = [TextBlock(text="hello")]


class Talk:
    """One conversation with a puppet."""

    def __init__(self, llm: LocalHarness, peer: Puppet, conversation_id: str) -> None:
        self.llm, self.peer, self.conversation_id = llm, peer, conversation_id
        self.turn_id = ""

    async def say(self) -> None:
        self.peer.started = anyio.Event()
        self.turn_id = await self.llm.submit_user_message(self.conversation_id, HELLO)
        await self.peer.started.wait()

    async def state(self) -> TurnState:
        return await self.llm.poll_turn(self.conversation_id, self.turn_id)

    async def end(self) -> TurnState:
        while True:
            state = await self.llm.poll_turn(self.conversation_id, self.turn_id, (await self.state()).sequence_no, 5000)
            if state.status not in ("running", "awaiting_host"):
                return await self.state()

    async def answer(self, request_id: str, **fields: Any) -> None:
        await self.llm.submit_responses(
            self.conversation_id, self.turn_id, [HostResponse(request_id=request_id, **fields)]
        )


def asks(number: int, command: str = "rm x", tool: str = "Bash") -> RequestRaised:
    options = [RequestOption(id=f"id-{kind.value}", kind=kind) for kind in (OptionKind.ALLOW_ONCE, OptionKind.DENY)]
    return RequestRaised(
        HostRequest(
            kind=RequestKind.APPROVAL,
            tool_name=tool,
            arguments_json=json.dumps({"command": command}),
            peer_request_id=f"p{number}",
            options=options,
        )
    )


async def opened(llm: LocalHarness, peer: Puppet, limits: Limits | None = None, model: str | None = None) -> Talk:
    options = ConversationOptions(connector="puppet", limits=limits or Limits(), model=model)
    return Talk(llm, peer, await llm.begin_conversation(options))


def house(peer: Puppet, policy: RequestPolicy | None = None, **settings: Any) -> LocalHarness:
    rules = None if policy is None else Policy(policy)
    return LocalHarness(Registry({"puppet": peer}), settings=Settings(**settings), policy=rules)


@requirement("limits:budget")
async def test_turn_of_a_peer_that_keeps_no_budget_is_stopped_and_the_next_one_is_not_begun() -> None:
    peer = Puppet(reports_cost=True)
    with anyio.fail_after(5):
        async with house(peer) as llm:
            talk = await opened(llm, peer, Limits(token_budget=100))
            await talk.say()
            peer.emit(text_delta("one"), UsageReported(UsageInfo(input_tokens=100)))
            assert (await talk.state()).status == "running"
            peer.emit(text_delta("two"))
            state = await talk.end()
            assert (state.status, state.stop_reason, state.error) == ("completed", "budget", None)
            await until(lambda: peer.interrupts)
            talk.turn_id = await llm.submit_user_message(talk.conversation_id, HELLO)
            again = await talk.end()
            assert (again.status, again.stop_reason) == ("completed", "budget")
            assert peer.interrupts == 1


@requirement("limits:rounds", "limits:near")
async def test_rounds_end_the_turn_and_the_next_turn_has_its_own() -> None:
    peer = Puppet()
    with anyio.fail_after(5):
        async with house(peer) as llm:
            talk = await opened(llm, peer, Limits(max_turns=5))
            await talk.say()
            peer.emit(UsageReported(UsageInfo(model_calls=4)))
            peer.emit(UsageReported(UsageInfo(model_calls=5)), text_delta("and on"))
            state = await talk.end()
            assert (state.status, state.stop_reason) == ("completed", "max_turns")
            assert [item.text for item in state.new_output_items if isinstance(item, Notice)] == [
                "4 of 'max_turns' 5 are used"
            ]
            await until(lambda: peer.interrupts)
            await talk.say()
            peer.emit(text_delta("fresh"))
            peer.end()
            assert (await talk.end()).stop_reason == "end_turn"


@requirement("limits:prices", "limits:budget")
async def test_cost_budget_is_kept_by_the_price_table_or_refused_at_the_beginning() -> None:
    peer = Puppet()
    limits = Limits(cost_budget_usd=0.5)
    with anyio.fail_after(5):
        async with house(peer, prices=(Price("small", input=1, output=1),)) as llm:
            with pytest.raises(NotSupported, match="prices"):
                await opened(llm, peer, limits, model="unknown")
            talk = await opened(llm, peer, limits, model="small")
            await talk.say()
            peer.emit(UsageReported(UsageInfo(output_tokens=600_000)), text_delta("more"))
            state = await talk.end()
            assert state.stop_reason == "budget"
            assert state.usage is not None
            assert state.usage.cost_usd == pytest.approx(0.6)


@requirement("limits:denials", "R-D2")
async def test_peer_that_asks_again_and_again_for_what_was_denied_is_stopped() -> None:
    peer = Puppet()
    with anyio.fail_after(5):
        async with house(peer) as llm:
            talk = await opened(llm, peer)
            await talk.say()
            for number in (1, 2, 3):
                peer.emit(asks(number))
                [request] = (await talk.state()).pending_requests
                await talk.answer(request.request_id, selected_option="id-deny", reason="no")
            state = await talk.end()
            assert state.error is not None
            assert (state.status, state.error.code) == ("failed", "loop_guard")
            await until(lambda: peer.interrupts)
            assert len(peer.delivered) == 2  # the third denial would have let it go on


@requirement("policy:house", "R-D2", "R-D10")
async def test_house_answers_before_a_host_is_asked() -> None:
    peer = Puppet()
    rules = RequestPolicy(deny=[rule_of_text("Bash(rm *)")], allow=[rule_of_text("Bash(ls)")])
    with anyio.fail_after(5):
        async with house(peer, rules) as llm:
            talk = await opened(llm, peer)
            await talk.say()
            peer.emit(asks(1, "rm x"), asks(2, "ls"), asks(3, "make"))
            state = await talk.state()
            resolved = [item for item in state.new_output_items if isinstance(item, RequestResolved)]
            assert [(item.outcome, item.answered_by) for item in resolved] == [
                ("refused", "policy"),
                ("answered", "policy"),
            ]
            assert [one.selected_option for one in peer.delivered] == ["id-deny", "id-allow_once"]
            assert peer.delivered[0].reason == "denied by the rule Bash(rm *)"
            [waiting] = state.pending_requests
            assert json.loads(waiting.arguments_json or "") == {"command": "make"}
            assert [one.request for one in await llm.list_requests()] == [waiting]
            await talk.answer(waiting.request_id, selected_option="id-deny")
            peer.end()
            assert (await talk.end()).status == "completed"


@requirement("policy:house")
async def test_house_denies_a_callers_tool_and_never_runs_one() -> None:
    peer = Puppet()
    with anyio.fail_after(5):
        async with house(peer, RequestPolicy(deny=[rule_of_text("wipe")])) as llm:
            talk = await opened(llm, peer)
            await talk.say()
            peer.call(("wipe", "c1", "{}"), ("look", "c2", "{}"))
            [denied] = peer.delivered
            assert denied.is_error and denied.request_id == "c1"
            assert [request.tool_name for request in (await talk.state()).pending_requests] == ["look"]
            peer.withdraw("c2")
            peer.end()
            await talk.end()


@requirement("policy:delegation:house")
async def test_policy_that_a_caller_delegates_never_passes_by_the_house(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Puppet(supports_request_policy_delegation=True)
    seen: list[RequestPolicy | None] = []

    rules = RequestPolicy(deny=[rule_of_text("Bash(rm *)")])
    opens = peer.open_session

    def open_session(options: Any, delegation: Any, log: Any) -> Any:
        seen.append(delegation.request_policy)
        return opens(options, delegation, log)

    monkeypatch.setattr(peer, "open_session", open_session)
    with anyio.fail_after(5):
        async with house(peer, rules) as llm:
            talk = await opened(llm, peer)
            asked = RequestPolicy(mode="bypass", allow=[rule_of_text("Bash"), rule_of_text("Read")])
            await llm.delegate_request_policy(talk.conversation_id, asked)
            await talk.say()
            peer.end()
            await talk.end()
    [given] = seen
    assert given is not None
    assert (given.mode, [rule.tool for rule in given.allow]) == ("default", ["Read"])
