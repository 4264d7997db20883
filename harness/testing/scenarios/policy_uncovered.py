"""What a delegated policy does not cover still arrives at the host; what it denies does not happen."""

from __future__ import annotations

from harness.contract.capabilities import Denial
from harness.contract.delegation import ArgumentPattern, PolicyRule, RequestPolicy
from harness.testing.checks import only, same
from harness.testing.scenario import APPROVALS, POLICY, RUN, Scenario, Stage, run_command
from harness.testing.talk import choice


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    tool = stage.peer_name(RUN)
    policy = RequestPolicy(
        deny=[PolicyRule(tool=tool, arguments=[ArgumentPattern(name="command", pattern="touch denied")])],
        allow=[PolicyRule(tool=tool, arguments=[ArgumentPattern(name="command", pattern="mkdir -p made")])],
    )
    await talk.llm.delegate_request_policy(talk.conversation_id, policy)
    turn = await talk.say(answer=lambda request: choice(request, "deny"))
    same("how the denied call ended", turn.internal_tool("call_1")[1].result, "refused")
    ends_turn = stage.capabilities.denial == Denial.ENDS_TURN
    if ends_turn:
        same("requests before the denial ended the turn", turn.requests, [])
        turn = await talk.say(answer=lambda request: choice(request, "deny"))
    request = only("requests", turn.requests)
    same("the call that arrived", request.call_id, "call_2")
    made = [path.name for path in stage.directory.iterdir() if path.name in ("denied", "open")]
    same("what was made", made, [])
    if not ends_turn:
        same("the text", turn.text, "Nothing.")


SCENARIO = Scenario(
    name="policy-uncovered",
    requirements=("conformance:delegation",),
    script=[
        [
            {"calls": [run_command("call_1", "touch denied")]},
            {"calls": [run_command("call_2", "touch open")]},
            {"text": "Nothing."},
        ]
    ],
    run=run,
    needs=(APPROVALS, POLICY),
)
