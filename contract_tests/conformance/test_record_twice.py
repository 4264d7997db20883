"""Two recordings of one scenario are the same, but for who spoke first; scrubbing declares what is volatile."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from contract_tests.conformance.test_rows import agents_on_path as agents_on_path
from contract_tests.connectors.claude.cli import has_cli
from contract_tests.peers_installed import needs_peer
from contract_tests.requirements import requirement
from harness.testing.drift import changes
from harness.testing.recording import Recording, record
from harness.testing.rows import ROWS
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
COMMON = ("no-tool", "one-call", "tool-error", "three-rounds", "rate-limited", "max-turns")
LOOPS = ("anthropic", "openai", "openai:chat", "ollama")
AGENT = ("no-tool", "one-call", "tool-error", "approval-granted", "question-answered", "turn-model")
CLAUDE = [pytest.mark.live, pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")]
TOOLS = ("no-tool", "one-call", "tool-error")
ACP = ("opencode", "gemini", "codex-acp")
"""Those that say the same things twice. Copilot's counts of tokens depend on the names of directories; how often
claude-agent-acp asks for our tools, and what it says when it ends, on who is faster."""
CASES = [
    *(pytest.param(row, name, id=f"{row}-{name}") for row in LOOPS for name in COMMON),
    *(pytest.param("claude", name, id=f"claude-{name}", marks=CLAUDE) for name in AGENT),
    *(
        pytest.param("codex", name, id=f"codex-{name}", marks=[*needs_peer("codex"), pytest.mark.all_live])
        for name in AGENT
    ),
    *(
        pytest.param(f"acp:{agent}", name, id=f"acp:{agent}-{name}", marks=needs_peer(agent))
        for agent in ACP
        for name in TOOLS
    ),
]


@requirement("conformance:record:same")
@pytest.mark.parametrize(("row", "scenario"), CASES)
async def test_recording_twice_gives_no_difference(row: str, scenario: str, tmp_path: Path) -> None:
    recordings: list[Recording] = []
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        recordings.append(await record(SCENARIOS[scenario], ROWS[row], tmp_path / number, {}))
    first, second = recordings
    assert changes(first.trace, second.trace) == []
    assert said_in(first) == said_in(second)


def said_in(recording: Recording) -> list[str]:
    """Every line but its time. Which side was faster is chance, so their order is left out where both may speak.

    Then the numbers of ids and exchanges, which count what came first, are left out too, and the order of headers.
    """
    lines = [json.loads(line) for line in recording.lines[1:]]
    # what a CLI wrote to a file at some time is not said by anybody
    said = [{name: value for name, value in one.items() if name != "at"} for one in lines if "file" not in one]
    if any("exchange" in one for one in said) and not any("channel" in one for one in said):
        return [json.dumps(one, ensure_ascii=False) for one in said]
    return sorted(_unnumbered(one) for one in said)


def _unnumbered(one: dict[str, Any]) -> str:
    told = {name: value for name, value in one.items() if name != "exchange"}
    if told.get("line", "").startswith("{"):
        told["line"] = json.loads(told["line"])
    return re.sub(r"<id \d+>", "<id>", json.dumps(told, ensure_ascii=False, sort_keys=True))
