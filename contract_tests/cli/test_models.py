"""`harness models`: every connector that keeps a catalogue is asked; the servers are scripted ones on loopback."""

from __future__ import annotations

import json
from functools import partial

import anyio.to_thread

from contract_tests.cli.command import Done, Shell
from contract_tests.requirements import requirement
from harness.scripted_model import open_scripted_model


async def run(shell: Shell, *arguments: str, **environment: str) -> Done:
    """The command in a thread: the server it asks lives in this loop."""
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, **environment))


@requirement("models:list")
async def test_every_connector_is_asked_and_says_why_it_cannot_be(shell: Shell) -> None:
    async with open_scripted_model([]) as model:
        environment = {"OLLAMA_HOST": model.url, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "sk-made-up"}
        done = await run(shell, "models", "list", "--json", **environment)
    assert done.code == 0
    by_connector = {entry["connector"]: entry for entry in done.json}
    assert by_connector["ollama"]["name"] == "scripted:latest"
    assert by_connector["ollama"]["capabilities"] == ["tools", "thinking", "vision"]
    assert by_connector["ollama"]["context_window"] == 131072
    assert by_connector["openai"]["name"] == "scripted"
    assert "anthropic: no API key in 'ANTHROPIC_API_KEY'" in done.err
    assert "sk-made-up" not in done.out + done.err


@requirement("models:list")
async def test_one_that_was_named_fails_with_its_reason(shell: Shell) -> None:
    done = await run(shell, "models", "list", "--connector", "ollama", OLLAMA_HOST="127.0.0.1:9")
    assert done.code == 3 and "type: ollama serve" in done.err and done.out == ""


@requirement("models:list")
async def test_one_model_is_shown_for_people_and_an_unknown_one_is_not(shell: Shell) -> None:
    async with open_scripted_model([]) as model:
        shown = await run(shell, "models", "show", "scripted:latest", "--connector", "ollama", OLLAMA_HOST=model.url)
        unknown = await run(shell, "models", "show", "gone", "--connector", "ollama", OLLAMA_HOST=model.url)
    assert shown.code == 0 and "context_window  131072" in shown.out
    assert unknown.code == 2 and "no model 'gone' here" in unknown.err


@requirement("models:pull")
async def test_a_pull_shows_its_progress_and_a_missing_model_its_reason(shell: Shell) -> None:
    async with open_scripted_model([]) as model:
        pulled = await run(shell, "models", "pull", "m", "--connector", "ollama", OLLAMA_HOST=model.url)
        missing = await run(shell, "models", "pull", "missing", "--connector", "ollama", OLLAMA_HOST=model.url)
        (body,) = [r.body for r in model.side_requests if r.path == "/api/pull" and r.body and r.body["model"] == "m"]
    assert pulled.code == 0 and pulled.out == "'m' is there\n"
    assert "100%" in pulled.err or "success" in pulled.err
    assert json.dumps(body) == '{"model": "m", "stream": true}'
    assert missing.code == 1 and "not found" in missing.err
