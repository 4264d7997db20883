"""`harness chat` with the real Claude CLI: tools, an approval, a cancel, and the next day."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread

from contract_tests.cli.chat_screen import open_chat, plain
from contract_tests.cli.command import Shell
from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.requirements import requirement
from harness.scripted_model import open_scripted_model

pytestmark = needs_cli

OSLO = {"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "toolu_oslo"}
MKDIR = {"name": "Bash", "arguments": {"command": "mkdir made", "description": "Makes."}, "id": "toolu_run"}
SCRIPT: list[dict[str, Any]] = [
    {"text": "I look. ", "calls": [OSLO]},
    {"text": "{{results.toolu_oslo}}."},
    {"calls": [MKDIR]},
    {"text": "It is there."},
    {"text": "I begin", "hang": True},
    {"text": "Still here."},
    {"text": "Good morning."},
]


@requirement("chat:claude")
async def test_a_chat_with_the_real_cli_over_two_processes(shell: Shell) -> None:
    async with open_scripted_model(SCRIPT) as model:
        given = {"base_url": model.url, "key": "sk-made-up", "home": str(shell.directory / "home")}
        options = [word for name, value in given.items() for word in ("-O", f"{name}={value}")]
        begun = ("--connector", "claude", "-m", MODEL, "--internal-tools", "Bash", *options)

        def first_day() -> str:
            with open_chat(shell, *begun, "--tools", "tools.py") as chat:
                chat.at_prompt()
                told = chat.say("What is the weather?")
                assert '→ get_weather(city="Oslo")' in told
                assert told[-1] == "3 °C in Oslo."
                chat.screen.type("Make a directory.\n")
                assert 'Bash(command="mkdir made"' in chat.until("(a reason may follow): ")
                chat.screen.type("y\n")
                assert chat.at_prompt().splitlines()[-1] == "It is there."
                assert (shell.directory / "made").is_dir()
                chat.screen.type("Think.\n")
                chat.until("I begin")
                chat.screen.type("\x03")
                assert chat.at_prompt().endswith("harness: The turn was cancelled.\n")
                assert chat.say("And now?")[-1] == "Still here."
                assert "model calls" in chat.say("/cost")[0]
                chat.leave()
                return plain(chat.screen.shown)

        def second_day() -> None:
            with open_chat(shell, "--continue", "--tools", "tools.py") as chat:
                assert "What is the weather?" in chat.at_prompt()
                assert chat.say("Hello again.")[-1] == "Good morning."
                chat.leave()

        with anyio.fail_after(120):
            print(await anyio.to_thread.run_sync(first_day))
            await anyio.to_thread.run_sync(second_day)
        assert "What is the weather?" in model.requests[-1].body_text
