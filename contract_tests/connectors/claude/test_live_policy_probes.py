"""The table of bypasses against the real CLI: it lets nothing through that the host's policy would not allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.connectors.claude.cli import needs_cli, open_claude
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse, InternalToolFinished, RequestPolicy
from harness.policy import Policy, Verdict, delegated
from harness.testing.policy_probes import PROBES, Probe, lay_out

pytestmark = needs_cli


def by_policy() -> list[list[Probe]]:
    """Probes under the same rules share a conversation."""
    groups: dict[str, list[Probe]] = {}
    for probe in PROBES:
        groups.setdefault(probe.policy.to_json(), []).append(probe)
    return list(groups.values())


async def observed(probes: list[Probe], policy: RequestPolicy, directory: Path) -> dict[str, Verdict | None]:
    """What the CLI did with each call, in the scene of the probes; whatever it asks is denied.

    Null: it refused the call itself, before it asked anybody (a file that it has not read may not be overwritten).
    """
    work = lay_out(directory)
    ids = {f"p{number}": probe for number, probe in enumerate(probes)}
    rounds: list[dict[str, Any]] = [
        {"calls": [{"name": probe.tool, "arguments": dict(probe.arguments), "id": call_id}]}
        for call_id, probe in ids.items()
    ]

    def deny(request: HostRequest) -> HostResponse:
        return HostResponse(request_id=request.request_id, selected_option="deny", reason=request.request_id)

    async with open_claude(
        [*rounds, {"text": "Done."}], directory, internal_tools=["Bash", "Write"], tools=[]
    ) as claude:
        await claude.harness.delegate_request_policy(claude.conversation_id, policy)
        seen = await claude.say(answer=deny)
    assert seen.text == "Done.", seen.state
    assert [path.name for path in (directory / "outside").iterdir()] == ["secret.txt"]
    assert (directory / "outside" / "secret.txt").read_text() == "text\n"
    assert not (work / "other.txt").exists(), "made by what was hidden behind an allowed command"
    asked = {request.call_id for request in seen.requests}
    ended = {item.call_id: item.result for item in seen.items if isinstance(item, InternalToolFinished)}
    return {
        probe.tries: Verdict.ASK if call_id in asked else _verdict(probe, ended.get(call_id))
        for call_id, probe in ids.items()
    }


def _verdict(probe: Probe, result: str | None) -> Verdict | None:
    if result == "refused":
        return Verdict.DENY
    return None if result == "failed" and probe.tool == "Write" else Verdict.ALLOW


@requirement("claude:delegation:policy", "policy:delegation:never-wider")
@pytest.mark.parametrize("probes", by_policy(), ids=lambda probes: probes[0].tries)
async def test_the_cli_is_no_wider_than_the_policy_it_was_given(probes: list[Probe], tmp_path: Path) -> None:
    policy = probes[0].policy
    with anyio.fail_after(120):
        whole = await observed(probes, policy, tmp_path / "whole")
        part = delegated(Policy(policy), connector="claude", cwd=str(tmp_path / "part" / "work"))
        handed_over = await observed(probes, part, tmp_path / "part")
    for probe in probes:
        assert whole[probe.tries] in (probe.expected, None) or probe.may_be_resolved, probe
        assert probe.is_kept_by(handed_over[probe.tries] or Verdict.DENY), probe
