"""`harness verify --policy-probes` as a user types it, and what it says of a CLI that is wider than its policy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from contract_tests.cli.command import Shell
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.cli import probes
from harness.cli.verify import VerifyArguments, VerifyOutput
from harness.policy import Verdict
from harness.testing.checks import Divergence
from harness.testing.policy_probes import PROBES, Probe
from harness.testing.probe_report import read_report
from harness.testing.probing import Finding, Probed
from harness.testing.rows import Row

PUBLISHED = ROOT / "docs" / "policy-probes.md"


def arguments(output: VerifyOutput, report: Path | None = None) -> VerifyArguments:
    return VerifyArguments(("claude",), (), (), False, True, False, None, report, output, False)


def peer_that(monkeypatch: pytest.MonkeyPatch, does: Mapping[str, Verdict]) -> None:
    """A peer that keeps to the policy but in these probes."""

    async def try_probes(row: Row, tried: Sequence[Probe], directory: Path, options: Mapping[str, Any]) -> list[Probed]:
        return [Probed(one, "claude-code 9.9.9", does.get(one.tries, one.expected), one.expected) for one in tried]

    monkeypatch.setattr(probes, "try_probes", try_probes)


@requirement("policy:probes:verify")
@pytest.mark.parametrize(
    ("does", "code", "out", "err"),
    [
        ({}, 0, "keeps the policy in 55 of 55", "policy probes for 'claude': 55 of 55"),
        ({"a pipe": Verdict.ALLOW}, 1, "in 54 of 55", "wider than its policy, 'a pipe': expected ask, found allow"),
        ({"a pipe": Verdict.DENY}, 6, "yet otherwise, 'a pipe': expected ask, found deny", ""),
    ],
    ids=["kept", "wider", "narrower"],
)
async def test_each_probe_that_fails_is_named(
    does: Mapping[str, Verdict],
    code: int,
    out: str,
    err: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    peer_that(monkeypatch, does)
    assert await probes.run_probes(arguments(VerifyOutput.TEXT), {}) == code
    told = capsys.readouterr()
    assert out in told.out
    assert err in told.err


@requirement("policy:probes:verify")
async def test_json_has_a_line_for_each_probe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer_that(monkeypatch, {"a pipe": Verdict.ALLOW})
    await probes.run_probes(arguments(VerifyOutput.JSON), {})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == len(PROBES)
    assert [(line["probe"], line["whole"]) for line in lines if line["finding"] == "wider"] == [("a pipe", "allow")]


@requirement("policy:probes:verify")
async def test_a_trial_that_breaks_off_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def try_probes(*_: object) -> list[Probed]:
        raise Divergence("no hidden command ran, after 'a pipe'")

    monkeypatch.setattr(probes, "try_probes", try_probes)
    assert await probes.run_probes(arguments(VerifyOutput.TEXT, tmp_path / "table.md"), {}) == 1
    assert "no hidden command ran, after 'a pipe'" in capsys.readouterr().err
    assert not (tmp_path / "table.md").exists()


@requirement("policy:probes:report")
async def test_another_version_gets_a_column_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    table.with_suffix(".json").write_bytes(PUBLISHED.with_suffix(".json").read_bytes())
    peer_that(monkeypatch, {"a pipe": Verdict.ALLOW})
    await probes.run_probes(arguments(VerifyOutput.TEXT, table), {})
    assert [*read_report(table).root] == ["claude 9.9.9", "claude 2.1.332", "claude 2.1.197"]
    assert "| ask | allow / ask **WIDER** | ask | ask |" in table.read_text(encoding="utf-8")


@requirement("policy:probes:report")
def test_published_table_has_every_probe_and_none_got_past() -> None:
    report = read_report(PUBLISHED)
    assert {"claude 2.1.332", "claude 2.1.197"} <= set(report.root)
    for cells in report.root.values():
        assert {cell.finding for cell in cells.values()} == {Finding.KEPT}
        assert set(cells) == {probe.tries for probe in PROBES}
    assert PUBLISHED.read_text(encoding="utf-8") == report.render(), (
        "out of step; type: harness verify --connector claude --policy-probes --report docs/policy-probes.md"
    )


@requirement("policy:probes:verify")
def test_what_cannot_be_probed_is_said(shell: Shell) -> None:
    other = shell.run("verify", "--connector", "fake", "--policy-probes")
    assert (other.code, "no policy probes for 'fake'; there are some for: claude" in other.err) == (2, True), other.err
    missing = shell.run("verify", "--connector", "claude", "--policy-probes", "-O", "command=/no/such/claude")
    assert (missing.code, "type: pip install" in missing.err) == (3, True), missing.err
    report = shell.run("verify", "--connector", "fake", "--report", "table.md")
    assert (report.code, "--report: only --policy-probes" in report.err) == (2, True), report.err
