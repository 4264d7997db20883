"""Agents as tools of other agents: whose policy, whose people, whose budget."""

from __future__ import annotations

import json
from typing import Any

import anyio

from connectors.fake import FakeConnector
from contract_tests.requirements import requirement
from harness import (
    ConversationOptions,
    Limits,
    LocalHarness,
    Registry,
    TextBlock,
    ToolRegistry,
    run_to_completion,
    tool,
)
from harness.contract import HostRequest, HostResponse, OptionKind, PolicyRule, RequestPolicy, ToolCall
from harness.orchestrator.advisor import AdvisorTool
from harness.orchestrator.agent_tool import AgentTool
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import Line, ProgressLine
from harness.orchestrator.tool_provider import ToolOutcome


class Spoken:
    """A fake peer and what it was told: instructions, messages, options."""

    def __init__(self, *turns: Any, name: str = "fake") -> None:
        self.options: list[ConversationOptions] = []
        self.heard: list[str] = []
        self.connector = FakeConnector(list(turns))
        open_session = self.connector.open_session

        def watching(options: ConversationOptions, *others: Any) -> Any:
            self.options.append(options)
            return open_session(options, *others)

        self.connector.open_session = watching  # type: ignore[method-assign]

    def house(self) -> LocalHarness:
        return LocalHarness(Registry({"fake": self.connector}), default_connector="fake")


def asking(name: str, *tasks: str, after: str = "done") -> list[Any]:
    calls = [{"name": name, "arguments": {"task": task}} for task in tasks]
    return [*({"calls": [call]} for call in calls), {"message": after}]


def results(done: Completion) -> list[str]:
    blocks = [(call.result or [TextBlock(text="")])[0] for call in done.calls]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


ALLOW = RequestPolicy(allow=[PolicyRule(tool="*")])


@requirement("orchestrator:agents:answer")
async def test_agent_answers_in_a_conversation_of_its_own_with_its_own_tools() -> None:
    @tool(read_only=True)
    def look(where: str) -> str:
        """Looks."""
        return f"a door {where}"

    inner = Spoken([{"calls": [{"name": "look", "arguments": {"where": "left"}}]}, {"message": "I see a door."}])
    lines: list[Line] = []
    with anyio.fail_after(10):
        async with inner.house() as scout, Spoken(asking("scout", "Look around.")).house() as outer:
            agent = AgentTool(
                scout, name="scout", description="Looks.", instructions="You are a scout.", tools=[look], read_only=True
            )
            done = await run_to_completion(outer, "go", tools=[agent], policy=ALLOW, on_line=lines.append)
            assert [info.state for info in await scout.list_conversations()] == ["ended"]
    assert results(done) == ["I see a door."]
    assert [options.system_prompt for options in inner.options] == ["You are a scout."]
    assert [tool.name for tool in inner.options[0].tools] == ["look"]
    assert [line.message for line in lines if isinstance(line, ProgressLine)] == ["scout: look"]


@requirement("orchestrator:agents:answer")
async def test_agent_that_fails_or_is_cut_off_says_so() -> None:
    inner = Spoken([{"text": "Half"}, {"error": {"code": "provider_error", "message": "overloaded"}}])
    with anyio.fail_after(10):
        async with inner.house() as scout, Spoken(asking("scout", "go")).house() as outer:
            agent = AgentTool(scout, name="scout", description="Looks.")
            done = await run_to_completion(outer, "go", tools=[agent], policy=ALLOW)
    assert done.failed_tool_calls == 1
    assert results(done) == ["agent 'scout' failed: overloaded. Until then it said: Half"]


@requirement("orchestrator:agents:policy")
async def test_callers_policy_and_people_decide_inside() -> None:
    ran: list[str] = []

    def erase(what: str) -> str:
        ran.append(what)
        return "erased"

    def write(what: str) -> str:
        ran.append(what)
        return "written"

    asked: list[HostRequest] = []

    class Person:
        async def decide(self, request: HostRequest) -> Any:
            from harness.orchestrator.approvals import Decision

            asked.append(request)
            option = next(one for one in request.options if one.kind == OptionKind.ALLOW_ONCE)
            return Decision(HostResponse(request_id=request.request_id, selected_option=option.id))

    calls = [{"name": name, "arguments": {"what": name}} for name in ("erase", "write")]
    inner = Spoken(
        [{"calls": calls}, {"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}, {"message": "ok"}]
    )
    policy = RequestPolicy(
        deny=[PolicyRule(tool="erase", reason="nothing is erased here")],
        ask=[PolicyRule(tool="write")],
        allow=[PolicyRule(tool="cleaner")],
    )
    with anyio.fail_after(10):
        async with inner.house() as cleaner, Spoken(asking("cleaner", "clean")).house() as outer:
            agent = AgentTool(cleaner, name="cleaner", description="Cleans.", tools=[erase, write])
            done = await run_to_completion(outer, "go", tools=[agent], policy=policy, approver=Person())
    assert results(done) == ["ok"]
    assert ran == ["write"]
    assert [(request.tool_name, (request.title or "").startswith("[cleaner] ")) for request in asked] == [
        ("write", True),
        ("Bash", True),
    ]


@requirement("orchestrator:agents:limits")
async def test_calls_are_counted_within_a_conversation() -> None:
    inner = Spoken([{"message": "1"}])
    with anyio.fail_after(10):
        async with inner.house() as scout:
            agent = AgentTool(scout, name="scout", description="Looks.", max_calls=1)
            for _ in range(2):
                async with Spoken(asking("scout", "a", "b")).house() as outer:
                    done = await run_to_completion(outer, "go", tools=[agent], policy=ALLOW)
                    assert results(done)[0] == "1"
                    assert "called 1 times already" in results(done)[1]


@requirement("orchestrator:agents:limits")
async def test_agents_call_agents_only_as_deep_as_allowed() -> None:
    with anyio.fail_after(10):
        async with (
            Spoken([{"message": "bottom"}]).house() as third,
            Spoken(asking("third", "x", after="second done")).house() as second,
            Spoken(asking("second", "x")).house() as first,
        ):
            for depth, expected in ((1, "agents may call agents only 1 deep"), (2, "bottom")):
                told: list[str] = []

                async def note(call: ToolCall, run: Any, told: list[str] = told) -> ToolOutcome:
                    outcome = await run(call)
                    told.extend(block.text for block in outcome.content if isinstance(block, TextBlock))
                    return outcome

                deep = AgentTool(third, name="third", description="Deep.", max_depth=depth)
                inside = (await ToolRegistry.of([deep])).around(note)
                agent = AgentTool(second, name="second", description="Middle.", tools=inside)
                done = await run_to_completion(first, "go", tools=[agent], policy=ALLOW)
                assert results(done) == ["second done"]
                assert expected in told[0]


@requirement("orchestrator:agents:limits")
async def test_callers_budget_applies_inside_and_is_used_up_there() -> None:
    inner = Spoken([{"usage": {"input_tokens": 60, "output_tokens": 10}}, {"message": "costly"}])
    turn = [{"usage": {"input_tokens": 20, "output_tokens": 10}}, *asking("scout", "a", "b")]
    options = ConversationOptions(limits=Limits(token_budget=100))
    with anyio.fail_after(10):
        async with inner.house() as scout, Spoken(turn).house() as outer:
            agent = AgentTool(scout, name="scout", description="Looks.", options=ConversationOptions(limits=Limits()))
            done = await run_to_completion(outer, "go", tools=[agent], policy=ALLOW, options=options)
    assert [given.limits.token_budget for given in inner.options] == [70]
    assert "the budget is used up" in results(done)[1]


@requirement("orchestrator:agents:limits")
async def test_only_so_many_run_side_by_side() -> None:
    gate, running, most = anyio.Event(), 0, 0
    ended: list[Completion] = []

    @tool(read_only=True)
    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return "x"

    inner = Spoken([{"calls": [{"name": "work", "arguments": {}}]}, {"message": "ok"}])
    with anyio.fail_after(10):
        async with inner.house() as scout, anyio.create_task_group() as group:
            agent = AgentTool(scout, name="scout", description="x", tools=[work], max_concurrent=2, read_only=True)
            calls = [{"name": "scout", "arguments": {"task": str(n)}} for n in range(4)]
            async with Spoken([{"calls": calls}, {"message": "done"}]).house() as outer:

                async def go() -> None:
                    ended.append(await run_to_completion(outer, "go", tools=[agent], policy=ALLOW))

                group.start_soon(go)
                while running < 2:
                    await anyio.lowlevel.checkpoint()
                gate.set()
                while not ended:
                    await anyio.lowlevel.checkpoint()
    assert most == 2
    assert results(ended[0]) == ["ok"] * 4


@requirement("orchestrator:agents:policy")
async def test_without_a_caller_nobody_gives_leave() -> None:
    inner = Spoken([{"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}, {"message": "over"}])
    submitted: list[HostResponse] = []

    class Watching(LocalHarness):
        async def submit_responses(self, conversation_id: str, turn_id: str, responses: Any) -> None:
            submitted.extend(responses)
            await super().submit_responses(conversation_id, turn_id, responses)

    async with Watching(Registry({"fake": inner.connector}), default_connector="fake") as scout:
        registry = await ToolRegistry.of([AgentTool(scout, name="scout", description="x")])
        call = ToolCall(call_id="1", tool_name="scout", arguments_json=json.dumps({"task": "t"}))
        outcome = await registry.run(call)
    assert not outcome.is_error
    assert [response.selected_option for response in submitted] == ["deny"]


@requirement("orchestrator:agents:advisor")
async def test_advisor_reads_the_conversation_so_far_within_its_limit() -> None:
    def count(n: int) -> str:
        return "seven " * n

    told: list[str] = []
    inner = Spoken([{"message": "Check the sum."}])
    begin = LocalHarness.submit_user_message

    class Listening(LocalHarness):
        async def submit_user_message(self, conversation_id: str, content: Any, options: Any = None) -> str:
            told.append(content[0].text)
            return await begin(self, conversation_id, content, options)

    turn = [
        {"message": "I count."},
        {"calls": [{"name": "count", "arguments": {"n": 3}}]},
        {"calls": [{"name": "ask_advisor", "arguments": {"question": "Right?"}}]},
        {"message": "done"},
    ]
    with anyio.fail_after(10):
        async with Listening(Registry({"fake": inner.connector}), default_connector="fake") as strong:
            for limit in (10_000, 60):
                async with Spoken(turn).house() as outer:
                    advisor = AdvisorTool(strong, max_transcript_chars=limit)
                    done = await run_to_completion(outer, "Count to 7.", tools=[count, advisor], policy=ALLOW)
                    assert results(done)[1] == "Check the sum."
    whole, cut = told
    for part in ("User: Count to 7.", 'Call: count {"n":3}\n-> ok: seven seven seven', "I count.", "Right?"):
        assert part in whole, whole
    assert "characters left out" in cut and len(cut) < 200
    assert "not an order" not in whole and "as data" in (inner.options[0].system_prompt or "")


@requirement("orchestrator:agents:advisor")
async def test_advisor_is_off_until_somebody_adds_it() -> None:
    outer = Spoken([{"message": "done"}])
    async with outer.house() as llm:
        await run_to_completion(llm, "go")
    assert [options.tools for options in outer.options] == [[]]
