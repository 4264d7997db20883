"""The published matrix: scenario x connector, as Markdown that a test reads back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from harness.testing.rows import Row
from harness.testing.running import Outcome, Verdict
from harness.testing.scenario import Scenario

Results: TypeAlias = Mapping[str, Mapping[str, Outcome]]
"""Row -> scenario -> outcome."""

_WORDS = {Verdict.SUPPORTED: "yes", Verdict.REFUSED: "refused", Verdict.EXEMPT: "-", Verdict.GAP: "gap"}
_HEAD = """\
# Conformance

Every connector is tried with the same scenarios, driven through `ConversationalLLM` only: a model that follows a script
stands in for the real one. This file is written by `harness verify --matrix docs/conformance.md`; a test compares it
with what the scenarios find.

- **yes**: the connector keeps the contract.
- **refused**: it cannot do this. Its capability says so, and asking for it is an error before anything is sent.
- **gap**: known not to hold yet.
- **-**: this peer gives no occasion for it.
"""


def render(scenarios: Mapping[str, Scenario], results: Results) -> str:
    """The whole file."""
    rows = list(results)
    lines = [_HEAD, f"| scenario | {' | '.join(rows)} |", f"|---|{'---|' * len(rows)}"]
    for name in scenarios:
        lines.append(f"| {name} | {' | '.join(_WORDS[results[row][name].verdict] for row in rows)} |")
    lines += ["", "## What was tried", "", "| connector | peer |", "|---|---|"]
    lines += [f"| {row} | {_peer(results[row])} |" for row in rows]
    lines += ["", "## Why not", ""]
    lines += [line for row in rows for line in _reasons(row, results[row])]
    lines += ["", "## The scenarios", ""]
    lines += [f"- **{name}**: {scenario.summary}" for name, scenario in scenarios.items()]
    return "\n".join(lines) + "\n"


def cells(text: str) -> dict[tuple[str, str], str]:
    """(row, scenario) -> the word in the table of a rendered file."""
    found: dict[tuple[str, str], str] = {}
    rows: list[str] = []
    for line in text.splitlines():
        match [cell.strip() for cell in line.strip("|").split("|")]:
            case ["scenario", *names]:
                rows = names
            case [name, *words] if line.startswith("| ") and len(words) == len(rows):
                found |= {(row, name): word for row, word in zip(rows, words, strict=True)}
            case _ if found:
                break
            case _:
                pass
    return found


def word_of(outcome: Outcome) -> str:
    return _WORDS[outcome.verdict]


def peers(text: str) -> dict[str, str]:
    """Row -> the peer it was tried with."""
    part = text.partition("## What was tried")[2].partition("##")[0]
    return {row: peer for row, peer in re.findall(r"^\| (\S+) \| (.*) \|$", part, re.MULTILINE) if row != "connector"}


def unknown_names(text: str, rows: Mapping[str, Row], scenarios: Mapping[str, Scenario]) -> set[tuple[str, str]]:
    """Cells that are missing, and cells of what no longer exists."""
    wanted = {(row, scenario) for row in rows for scenario in scenarios}
    return wanted ^ set(cells(text))


def _peer(outcomes: Mapping[str, Outcome]) -> str:
    return next((outcome.peer for outcome in outcomes.values() if outcome.peer), "")


def _reasons(row: str, outcomes: Mapping[str, Outcome]) -> list[str]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, outcome in outcomes.items():
        if outcome.verdict != Verdict.SUPPORTED:
            grouped.setdefault((_WORDS[outcome.verdict], outcome.because), []).append(name)
    said = {"refused": "refused by the capability", "gap": "gap:", "-": "no occasion:"}
    return [
        f"- `{row}` {', '.join(names)}: {said[word]} {f'`{because}`' if word == 'refused' else because}"
        for (word, because), names in grouped.items()
    ]
