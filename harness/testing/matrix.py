"""The published matrix: scenario x connector and peer version. The figures are kept as JSON beside the Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel

from harness.testing.running import Outcome, Verdict
from harness.testing.scenario import Scenario

_SAYS = {Verdict.SUPPORTED: "yes", Verdict.REFUSED: "refused", Verdict.EXEMPT: "-", Verdict.GAP: "gap"}
_SAID = {
    Verdict.SUPPORTED: "yes, but",
    Verdict.REFUSED: "refused by the capability",
    Verdict.GAP: "known gap:",
    Verdict.EXEMPT: "no occasion:",
}
_HEAD = """\
# Conformance

Every connector is tried with the same scenarios, driven through `ConversationalLLM` only: a model that follows a script
stands in for the real one. This file is written by `harness verify --matrix docs/conformance.md`; a test compares it
with what the scenarios find.

- **yes**: the connector keeps the contract.
- **yes\\***: it does, apart from what "Why not" says of it.
- **refused**: it cannot do this. Its capability says so, and asking for it is an error before anything is sent.
- **gap**: known not to hold yet.
- **-**: this peer gives no occasion for it.
"""


class Cell(BaseModel):
    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    because: str = ""

    @classmethod
    def of(cls, outcome: Outcome) -> Cell:
        return cls(verdict=outcome.verdict, because=outcome.because or outcome.note)


class Column(BaseModel):
    """One connector, tried with one version of its peer."""

    model_config = ConfigDict(frozen=True)

    peer: str
    cells: dict[str, Cell]
    """By scenario."""


class Matrix(RootModel[dict[str, Column]]):
    """By row; a version beside the installed one has a column `<row> <version>`."""

    def cell(self, row: str, scenario: str) -> Cell | None:
        column = self.root.get(row)
        return None if column is None else column.cells.get(scenario)

    def missing(self, rows: Mapping[str, object], scenarios: Mapping[str, object]) -> set[tuple[str, str]]:
        """Cells that should be there and are not, and those of what no longer exists."""
        wanted = {(row, scenario) for row in rows for scenario in scenarios}
        here = {(row, scenario) for row, column in self.root.items() if " " not in row for scenario in column.cells}
        return wanted ^ here

    def with_results(self, found: Mapping[str, Mapping[str, Outcome]], rows: Mapping[str, object]) -> Matrix:
        """What was found now, over what was known before of rows that still exist, and of the same peer."""
        columns = {row: column for row, column in self.root.items() if row.partition(" ")[0] in rows}
        for row, outcomes in found.items():
            peer = next((outcome.peer for outcome in outcomes.values() if outcome.peer), "")
            cells = {name: Cell.of(one) for name, one in outcomes.items()}
            known = columns.get(row)
            if known is not None and peer in ("", known.peer):
                peer, cells = known.peer, {**known.cells, **cells}
            columns[row] = Column(peer=peer, cells=cells)
        order = {row: number for number, row in enumerate(rows)}
        return Matrix(dict(sorted(columns.items(), key=lambda one: (order[one[0].partition(" ")[0]], one[0]))))

    def render(self, scenarios: Mapping[str, Scenario]) -> str:
        """The whole Markdown file."""
        columns = self.root
        lines = [_HEAD, f"| scenario | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for name in scenarios:
            words = (_says(cell) if (cell := self.cell(row, name)) else "" for row in columns)
            lines.append(f"| {name} | {' | '.join(words)} |")
        lines += ["", "## What was tried", "", "| connector | peer |", "|---|---|"]
        lines += [f"| {row} | {column.peer} |" for row, column in columns.items()]
        lines += ["", "## Why not", ""]
        lines += [line for row, column in columns.items() for line in _reasons(row, column)]
        lines += ["", "## The scenarios", ""]
        lines += [f"- **{name}**: {scenario.summary}" for name, scenario in scenarios.items()]
        return "\n".join(lines) + "\n"


def read_matrix(markdown: Path) -> Matrix:
    """What the file beside the Markdown holds; empty where there is none."""
    data = markdown.with_suffix(".json")
    return Matrix.model_validate_json(data.read_bytes()) if data.exists() else Matrix({})


def write_matrix(markdown: Path, matrix: Matrix, scenarios: Mapping[str, Scenario]) -> None:
    markdown.with_suffix(".json").write_text(matrix.model_dump_json(indent=1) + "\n", encoding="utf-8")
    markdown.write_text(matrix.render(scenarios), encoding="utf-8")


def _reasons(row: str, column: Column) -> list[str]:
    grouped: dict[Cell, list[str]] = {}
    for name, cell in column.cells.items():
        if cell.because:
            grouped.setdefault(cell, []).append(name)
    return [f"- `{row}` {', '.join(names)}: {_SAID[cell.verdict]} {_because(cell)}" for cell, names in grouped.items()]


def _says(cell: Cell) -> str:
    is_noted = cell.verdict == Verdict.SUPPORTED and cell.because
    return f"{_SAYS[cell.verdict]}\\*" if is_noted else _SAYS[cell.verdict]


def _because(cell: Cell) -> str:
    return f"`{cell.because}`" if cell.verdict == Verdict.REFUSED else cell.because
