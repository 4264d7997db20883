"""The real Claude Code CLI below, a scripted model below that, and a person in the client who is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.requirements import requirement
from contract_tests.surfaces.acp_agent.client import Person, started
from harness.scripted_model import open_scripted_model

pytestmark = needs_cli

QUESTION: dict[str, Any] = {
    "question": "Which color?",
    "header": "Color",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SCRIPT: list[dict[str, Any]] = [
    {"text": "I make it.", "calls": [{"name": "Bash", "arguments": {"command": "touch made"}, "id": "toolu_made"}]},
    {"calls": [{"name": "AskUserQuestion", "arguments": {"questions": [QUESTION]}, "id": "toolu_ask"}]},
    {"text": "Done."},
]


@requirement("acp-agent:claude")
async def test_claude_code_asks_in_the_client_and_does_what_the_person_says(tmp_path: Path) -> None:
    async with open_scripted_model(SCRIPT) as model:
        given = {"base_url": model.url, "key": "sk-made-up", "home": str(tmp_path / "claude")}
        options = [word for name, value in given.items() for word in ("-O", f"{name}={value}")]
        person = Person(choose="allow_once", fill={QUESTION["question"]: "Blue"})
        arguments = ["--connector", "claude", "-m", MODEL, *options]
        async with started(tmp_path, *arguments, person=person, has_forms=True) as agent:
            session_id = await agent.new_session()
            answer = await agent.say(session_id, "Make it.")
            assert answer.stop_reason == "end_turn"
            assert (agent.cwd / "made").exists()

        [(call, options_offered)] = person.permissions
        assert (call.tool_call_id, call.kind, call.raw_input["command"]) == ("toolu_made", "execute", "touch made")
        assert "allow_once" in [option.kind for option in options_offered]
        [(message, mode)] = person.forms
        assert message == "Which color?"
        assert mode.session_id == session_id
        by_call = {update.tool_call_id: update.status for update in person.of("tool_call_update")}
        assert by_call["toolu_made"] == "completed"
        assert person.text.startswith("I make it.")
        assert person.text.endswith("Done.")
        assert answer.usage.input_tokens > 0
        assert "Blue" in str(model.requests[-1].body)
