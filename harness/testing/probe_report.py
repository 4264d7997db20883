"""The published table of policy probes: what each version did. The findings are kept as JSON beside the Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel

from harness.policy import Verdict
from harness.testing.policy_probes import PROBES, Probe
from harness.testing.probing import Finding, Probed

_HEAD = """\
# Policy probes

Calls that try to get past a policy, tried on the real CLI with a scripted model: one conversation is given all rules of
the probe, another only the part that `harness.policy.delegated` hands over. Whatever the CLI asks is denied. This file
is written by `harness verify --connector claude --policy-probes --report docs/policy-probes.md`; option
`-O command=PATH` adds another version.

- **allow**, **ask**, **deny**: what the CLI did. Where the part made a difference that comes second: `ask / deny`.
- **not run**: the CLI refused the call itself, whatever the policy says (it overwrites no file that it has not read).
- **WIDER**: the policy was got past. **otherwise**: it was not, and yet the CLI did something else than expected.
- *: a CLI that takes `..` out of a path before it looks may allow this.
"""


class Cell(BaseModel):
    model_config = ConfigDict(frozen=True)

    whole: Verdict | None
    part: Verdict | None
    finding: Finding

    @property
    def words(self) -> str:
        whole, part = (str(found or "not run") for found in (self.whole, self.part))
        told = whole if whole == part else f"{whole} / {part}"
        return {Finding.WIDER: f"{told} **WIDER**", Finding.NARROWER: f"{told} **otherwise**"}.get(self.finding, told)


class Report(RootModel[dict[str, dict[str, Cell]]]):
    """By row and version, as `claude 2.1.332`, and by probe."""

    def with_results(self, row: str, found: Sequence[Probed]) -> Report:
        version = found[0].peer.rpartition(" ")[2]
        cells = {one.probe.tries: Cell(whole=one.whole, part=one.part, finding=one.finding) for one in found}
        columns = {**self.root, f"{row} {version}": cells}
        return Report(dict(sorted(columns.items(), key=lambda one: _newest_first(one[0]))))

    def render(self) -> str:
        """The whole Markdown file."""
        lines = [_HEAD, f"| bypass tried | rules | call | expected | {' | '.join(self.root)} |"]
        lines.append(f"|---|---|---|---|{'---|' * len(self.root)}")
        for probe in PROBES:
            found = [cell.words if (cell := column.get(probe.tries)) else "" for column in self.root.values()]
            expected = f"{probe.expected}{'*' if probe.may_be_resolved else ''}"
            cells = [probe.tries, _rules(probe), _code(_call(probe)), expected, *found]
            lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
        return "\n".join(lines) + "\n"


def read_report(markdown: Path) -> Report:
    """What the file beside the Markdown holds; empty where there is none."""
    data = markdown.with_suffix(".json")
    return Report.model_validate_json(data.read_bytes()) if data.exists() else Report({})


def write_report(markdown: Path, report: Report) -> None:
    markdown.with_suffix(".json").write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    markdown.write_text(report.render(), encoding="utf-8")


def _newest_first(column: str) -> tuple[str, list[int]]:
    row, _, version = column.partition(" ")
    return row, [-int(part) for part in version.split(".") if part.isdigit()]


def _rules(probe: Probe) -> str:
    mode = [] if probe.mode == "default" else [f"mode {probe.mode}"]
    kinds = (("allow", probe.allow), ("ask", probe.ask), ("deny", probe.deny))
    return "; ".join(mode + [f"{kind} {_code(rule)}" for kind, rules in kinds for rule in rules])


def _call(probe: Probe) -> str:
    argument = probe.arguments.get("command") or probe.arguments["file_path"]
    return f"{probe.tool} {json.dumps(argument)[1:-1] if chr(10) in argument else argument}"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
