"""The real Claude Code CLI takes the scripted model for the API."""

import importlib.util
import json
import subprocess
from pathlib import Path

import anyio
import pytest

from contract_tests.requirements import requirement
from harness.scripted_model import ScriptedModel, open_scripted_model


@pytest.fixture
def claude() -> Path:
    package = importlib.util.find_spec("claude_agent_sdk")
    binary = Path(package.origin).parent / "_bundled" / "claude" if package and package.origin else None
    if binary is None or not binary.exists():
        pytest.skip("no Claude CLI here: install the extra 'claude'")
    return binary


async def ask(claude: Path, home: Path, model: ScriptedModel, *options: str) -> dict[str, object]:
    """One prompt in a clean environment in which only the scripted model can be reached."""
    environment = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "ANTHROPIC_API_KEY": "sk-made-up",
        "ANTHROPIC_BASE_URL": model.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }
    command = [str(claude), "-p", "Hello", "--output-format", "json", "--setting-sources", "", *options]
    with anyio.fail_after(30):
        done = await anyio.run_process(
            command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False
        )
    return json.loads(done.stdout)


@pytest.mark.live
@requirement("scripted-model:claude-cli:accepts")
async def test_the_cli_prints_the_scripted_text_and_its_usage(claude: Path, tmp_path: Path) -> None:
    usage = {"input_tokens": 1500, "cached_input_tokens": 300, "cache_write_tokens": 200, "output_tokens": 50}
    async with open_scripted_model([{"thinking": "Hm.", "text": ["Hello ", "there."], "usage": usage}]) as model:
        result = await ask(claude, tmp_path, model, "--tools", "")

    assert result["result"] == "Hello there."
    assert (
        result["usage"]
        | {  # type: ignore[operator]
            "input_tokens": 1000,
            "cache_read_input_tokens": 300,
            "cache_creation_input_tokens": 200,
            "output_tokens": 50,
        }
        == result["usage"]
    )
    assert model.requests[0].headers["user-agent"].startswith("claude-cli/")
    assert len(model.requests) == 1


@pytest.mark.live
@requirement("scripted-model:claude-cli:accepts")
async def test_the_cli_runs_a_scripted_call_and_the_answer_quotes_its_result(claude: Path, tmp_path: Path) -> None:
    script = [
        {"calls": [{"name": "Bash", "arguments": {"command": "echo $((6 * 7))"}}]},
        {"error": {"status": 429, "message": "slow down", "retry_after": 0}},
        {"text": "half", "drop": True},
        {"text": "It is {{results.Bash}}."},
    ]
    async with open_scripted_model(script) as model:
        result = await ask(claude, tmp_path, model, "--tools", "Bash", "--allowedTools", "Bash(echo *)")

    assert result["result"] == "It is 42."
    assert [request.entry for request in model.requests] == [1, 2, 3, 4]
    assert model.requests[3].past_calls[0].result == "42"


@pytest.mark.live
@requirement("scripted-model:end:says-so")
async def test_the_cli_shows_that_the_script_is_over(claude: Path, tmp_path: Path) -> None:
    async with open_scripted_model([]) as model:
        result = await ask(claude, tmp_path, model, "--tools", "")

    assert "the script is over: it has 0 entries" in str(result["result"])
    assert result["is_error"] is True
