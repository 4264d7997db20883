"""A delegated rule that allows a call decides it inside the peer: nobody is asked."""

from __future__ import annotations

from harness.contract.delegation import ArgumentPattern, PolicyRule, RequestPolicy
from harness.testing.checks import same
from harness.testing.scenario import INTERNAL_TOOLS, POLICY, RUN, Scenario, Stage, run_command


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    pattern = ArgumentPattern(name="command", pattern="mkdir -p made")
    rule = PolicyRule(tool=stage.peer_name(RUN), arguments=[pattern])
    await talk.llm.delegate_request_policy(talk.conversation_id, RequestPolicy(allow=[rule]))
    turn = await talk.say()
    same("how the call went", turn.internal_tool("call_1")[1].result, "ok")
    same("the text", turn.text, "Done.")


SCENARIO = Scenario(
    name="policy-covered",
    requirements=("conformance:delegation",),
    script=[[{"calls": [run_command("call_1", "mkdir -p made")]}, {"text": "Done."}]],
    run=run,
    needs=(INTERNAL_TOOLS, POLICY),
)
