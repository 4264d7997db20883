"""The agents that are programs of their own as rows of the conformance matrix: what each calls things, and cannot do.

Each is found as a user's is: by its name on PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.testing.row import MADE_UP_KEY, NO_WAY_OUT, Row, scripted
from harness.testing.scenario import ASK, RUN

_NOT_WITHDRAWN = "no scripted answer of the model makes this agent take a request back"


# --- codex -----------------------------------------------------------------------------------------------------------

_CODEX_NAMES = {RUN: "exec_command", ASK: "request_user_input"}


def _spell_for_codex(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if one["name"] == RUN:
        return {**one, "name": _CODEX_NAMES[RUN], "arguments": {"cmd": one["arguments"]["command"]}}
    if one["name"] == ASK:
        questions = [
            {
                "id": f"q{number}",
                "header": f"Choice {number}",
                "question": asked["text"],
                "options": [{"label": label, "description": f"{label}, please"} for label in asked["options"]],
            }
            for number, asked in enumerate(one["questions"], 1)
        ]
        return {**one, "name": _CODEX_NAMES[ASK], "arguments": {"questions": questions}}
    return one


def _codex_options(url: str, directory: Path) -> Mapping[str, Any]:
    home = str(directory / "home")
    return {"base_url": f"{url}/v1", "key": MADE_UP_KEY, "home": home, "env": {**NO_WAY_OUT, "HOME": home}}


CODEX = scripted(
    "codex",
    _codex_options,
    model="gpt-5.4",
    spell=_spell_for_codex,
    internal_names=_CODEX_NAMES,
    exempt={
        "request-withdrawn": _NOT_WITHDRAWN,
        "question-multi-select": "its tool lets the user choose one option, never several",
    },
    known_gaps={
        "approval-changed": "it runs a command only as the model wrote it: with other arguments it is denied",
        "approval-denied": "it tells its model that a command was rejected, and not why",
        "exact-values": "it answers a call itself whose arguments hold half a character, and says nothing of it",
        "max-tokens": "it cannot be told a limit of output tokens: asking for one is refused",
        "tool-shapes": "it always shows its model one tool of its own, which answers that it is unavailable",
    },
    program="codex",
)

AGENTS: tuple[Row, ...] = (CODEX,)
