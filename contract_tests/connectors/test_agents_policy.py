"""The probes that are about commands, on each real agent that takes a policy: nothing gets past it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from contract_tests.peers_installed import needs_peer, path_with_peers
from contract_tests.requirements import requirement
from harness.contract import PolicyRule, RequestPolicy
from harness.contract.output import InternalToolFinished
from harness.contract.requests import HostRequest, HostResponse
from harness.policy import Verdict
from harness.testing.agent_rows import AGENTS
from harness.testing.policy_probes import Probe, lay_out
from harness.testing.probing import by_policy
from harness.testing.row import Row
from harness.testing.running import run_scenario
from harness.testing.scenario import APPROVALS, POLICY, RUN, Scenario, Stage, run_command
from harness.testing.talk import choice

TAKE_POLICIES = ("codex", "copilot:sdk", "copilot:acp", "acp:opencode", "acp:claude-agent-acp")
ROWS = [
    pytest.param(row, marks=needs_peer(row.program or ""), id=row.name) for row in AGENTS if row.name in TAKE_POLICIES
]
GROUPS = [probes for group in by_policy() if (probes := [probe for probe in group if probe.tool == "Bash"])]


def deny(request: HostRequest) -> HostResponse:
    return choice(request, "deny", reason=request.request_id)


def spelled(policy: RequestPolicy, shell: str) -> RequestPolicy:
    """The rules in the agent's name for its shell."""

    def named(rules: Sequence[PolicyRule]) -> list[PolicyRule]:
        return [rule.model_copy(update={"tool": shell if rule.tool == "Bash" else rule.tool}) for rule in rules]

    return policy.model_copy(
        update={"allow": named(policy.allow), "ask": named(policy.ask), "deny": named(policy.deny)}
    )


@requirement("policy:delegation:never-wider", "agents:policy:kept")
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0].tries)
@pytest.mark.parametrize("row", ROWS)
async def test_no_command_gets_past_the_policy(
    row: Row, group: list[Probe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))
    probes = {f"p{number}": probe for number, probe in enumerate(group)}
    seen: dict[str, Verdict] = {}

    async def run(stage: Stage) -> None:
        work = lay_out(stage.directory)
        talk = await stage.begin(cwd=str(work), tools=[])
        policy = spelled(group[0].policy, stage.peer_name(RUN))
        await talk.llm.delegate_request_policy(talk.conversation_id, policy)
        for _ in range(len(probes) + 1):  # of some a denial ends the turn
            turn = await talk.say(answer=deny)
            asked = {request.call_id or "" for request in turn.requests}
            ends = {one.call_id: one.result for one in turn.items if isinstance(one, InternalToolFinished)}
            seen.update(
                {call_id: Verdict.ALLOW if how in ("ok", "failed") else Verdict.DENY for call_id, how in ends.items()}
            )
            seen.update(dict.fromkeys(asked, Verdict.ASK))
            if turn.text == "Done.":
                break
        assert not (work / "other.txt").exists()

    calls = [{"calls": [run_command(call_id, probe.arguments["command"])]} for call_id, probe in probes.items()]
    scenario = Scenario(
        name="policy-probes",
        requirements=("policy:delegation:never-wider",),
        script=[[*calls, {"text": "Done."}]],
        run=run,
        tools=(),
        needs=(APPROVALS, POLICY),
        seconds=120,
    )
    outcome = await run_scenario(scenario, row, tmp_path)
    assert outcome.because == ""
    assert seen.keys() == probes.keys()
    found = {probes[call_id].tries: verdict for call_id, verdict in seen.items()}
    wider = {probe.tries: found[probe.tries] for probe in group if not probe.is_kept_by(found[probe.tries])}
    assert wider == {}
    allowed = [probe.tries for probe in group if probe.expected == Verdict.ALLOW]
    assert [found[tries] for tries in allowed] == [Verdict.ALLOW] * len(allowed), "what is allowed is not asked"
