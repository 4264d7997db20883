"""Tries the table of bypasses on a real peer: given the policy, does it let through what the policy would not?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.contract.delegation import RequestPolicy
from harness.contract.output import InternalToolFinished
from harness.contract.requests import HostRequest, HostResponse
from harness.policy import Policy, Verdict, delegated
from harness.testing.checks import holds, same
from harness.testing.policy_probes import PROBES, Probe, lay_out
from harness.testing.rows import ROWS, Row
from harness.testing.running import run_scenario
from harness.testing.scenario import INTERNAL_TOOLS, POLICY, Scenario, Stage
from harness.testing.talk import Turn, choice


class Finding(StrEnum):
    KEPT = "kept"
    NARROWER = "narrower"
    """No call passes that should not; but the peer asks or denies where the policy says something else."""
    WIDER = "wider"


@dataclass(frozen=True)
class Probed:
    """What a peer did with one probe. Null: it refused the call itself, before it asked anybody."""

    probe: Probe
    peer: str
    whole: Verdict | None
    """With all rules of the probe in its hands."""
    part: Verdict | None
    """With the part of them that `delegated` hands over."""

    @property
    def finding(self) -> Finding:
        if not all(self.probe.is_kept_by(found or Verdict.DENY) for found in (self.whole, self.part)):
            return Finding.WIDER
        is_exact = self.whole in (self.probe.expected, None) or self.probe.may_be_resolved
        return Finding.KEPT if is_exact else Finding.NARROWER


def probed_rows() -> dict[str, Row]:
    """Those whose peer has the tools that the table speaks of."""
    return {name: row for name, row in ROWS.items() if row.program == "claude"}


def by_policy() -> list[list[Probe]]:
    """Probes under the same rules share a conversation."""
    groups: dict[str, list[Probe]] = {}
    for probe in PROBES:
        groups.setdefault(probe.policy.to_json(), []).append(probe)
    return list(groups.values())


async def try_probes(
    row: Row, probes: Sequence[Probe], directory: Path, connector_options: Mapping[str, Any] | None = None
) -> list[Probed]:
    """Two conversations: one that is given the policy of these probes, and one that is given the delegated part.

    Raises:
        Divergence: a turn went wrong, or a file was made that no allowed call makes.
        ConnectorUnavailable: the connector cannot be used here.
    """
    whole, part = _Trial(probes, row, is_whole=True), _Trial(probes, row, is_whole=False)
    peer = await whole.play(directory / "whole", connector_options)
    await part.play(directory / "part", connector_options)
    return [Probed(probe, peer, whole.seen[probe.tries], part.seen[probe.tries]) for probe in probes]


class _Trial:
    """One conversation in the scene of the probes; whatever the peer asks is denied."""

    def __init__(self, probes: Sequence[Probe], row: Row, *, is_whole: bool) -> None:
        self._probes = {f"p{number}": probe for number, probe in enumerate(probes)}
        self._row = row
        self._is_whole = is_whole
        self.seen: dict[str, Verdict | None] = {}

    async def play(self, directory: Path, connector_options: Mapping[str, Any] | None) -> str:
        """Returns name and version of the peer."""
        calls = [
            {"calls": [{"name": probe.tool, "arguments": dict(probe.arguments), "id": call_id}]}
            for call_id, probe in self._probes.items()
        ]
        scenario = Scenario(
            name="policy-probes",
            requirements=("policy:delegation:never-wider",),
            script=[[*calls, {"text": "Done."}]],
            run=self._run,
            tools=(),
            needs=(POLICY, INTERNAL_TOOLS),
        )
        outcome = await run_scenario(scenario, self._row, directory, connector_options)
        holds(f"'{self._row.name}' takes a policy and has tools of its own", not outcome.because, outcome.because)
        return outcome.peer

    async def _run(self, stage: Stage) -> None:
        work = lay_out(stage.directory)
        tools = sorted({probe.tool for probe in PROBES})
        talk = await stage.begin(cwd=str(work), internal_tools=tools)
        await talk.llm.delegate_request_policy(talk.conversation_id, self._policy(work))
        turn = await talk.say(answer=_deny)
        turn.must_end("completed", "end_turn")
        same("the text", turn.text, "Done.")
        self._check_files(work)
        asked = {request.call_id for request in turn.requests}
        for call_id, probe in self._probes.items():
            self.seen[probe.tries] = Verdict.ASK if call_id in asked else _unasked(probe, call_id, turn)

    def _policy(self, work: Path) -> RequestPolicy:
        policy = next(iter(self._probes.values())).policy
        if self._is_whole:
            return policy
        return delegated(Policy(policy), connector=self._row.name.partition(":")[0], cwd=str(work))

    def _check_files(self, work: Path) -> None:
        tried = ", ".join(f"'{probe.tries}'" for probe in self._probes.values())
        outside = work.parent / "outside"
        same(f"files outside after {tried}", [path.name for path in outside.iterdir()], ["secret.txt"])
        same(f"the file outside after {tried}", (outside / "secret.txt").read_text(encoding="utf-8"), "text\n")
        # no probe is allowed to make this one: a command hidden behind another does
        holds(f"no hidden command ran, after {tried}", not (work / "other.txt").exists())


def _deny(request: HostRequest) -> HostResponse:
    # each with a reason of its own: a call refused again and again, unchanged, would end the turn
    return choice(request, "deny", reason=request.request_id)


def _unasked(probe: Probe, call_id: str, turn: Turn) -> Verdict | None:
    ends = [one.result for one in turn.items if isinstance(one, InternalToolFinished) and one.call_id == call_id]
    if ends == ["refused"]:
        return Verdict.DENY
    # a file that was not read may not be overwritten
    return None if ends == ["failed"] and probe.tool == "Write" else Verdict.ALLOW
