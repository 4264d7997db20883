"""The table of bypasses against the pure policy, and what makes a peer wider than it."""

import os
from pathlib import Path

import pytest

from contract_tests.requirements import requirement
from harness.policy import Place, Policy, Verdict, decide, delegated
from harness.testing.policy_probes import PROBES, Probe, lay_out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    work = lay_out(tmp_path_factory.mktemp("probes"))
    return Place(str(work), home=str(work.parent), resolve=os.path.realpath)


@requirement("policy:probes")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.tries)
def test_policy_rules_as_the_probe_expects(probe: Probe, place: Place) -> None:
    assert decide(Policy(probe.policy), probe.call, place).verdict == probe.expected


@requirement("policy:probes")
def test_probes_are_many_and_each_tries_something_else() -> None:
    calls = {(probe.call, probe.policy.to_json()) for probe in PROBES}
    assert len(calls) == len(PROBES) >= 40
    assert {probe.expected for probe in PROBES} == set(Verdict)


@requirement("policy:probes")
def test_a_peer_that_lets_a_probe_through_is_found() -> None:
    asked = next(probe for probe in PROBES if probe.expected == Verdict.ASK)
    assert not asked.is_kept_by(Verdict.ALLOW)
    assert asked.is_kept_by(Verdict.ASK) and asked.is_kept_by(Verdict.DENY)


@requirement("policy:delegation:never-wider")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.tries)
def test_delegated_part_of_a_probe_allows_nothing_that_is_not_expected(probe: Probe, place: Place) -> None:
    handed_over = delegated(Policy(probe.policy), connector="claude", cwd=place.cwd)
    assert probe.is_kept_by(decide(Policy(handed_over), probe.call, place).verdict)


def test_scene_has_links_that_lead_out(tmp_path: Path) -> None:
    work = lay_out(tmp_path)
    assert not (work / "src" / "way-out").resolve().is_relative_to(work)
