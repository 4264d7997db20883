"""`harness run --url`: a server answers, the tools run here."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from contract_tests.cli.command import Shell, fake, line_with, rest_of
from contract_tests.requirements import requirement
from harness.contract import HostResponse
from harness.remote import RemoteHarness


@contextmanager
def served(shell: Shell, *steps: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The URL and the token of a server whose peer follows the steps."""
    with shell.started("serve", *fake(*steps), "--print-token") as server:
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        yield url, line_with(server, "token ").removeprefix("token ").strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


@requirement("cli:run:remote")
def test_tools_run_here_and_a_cancel_reaches_the_server(shell: Shell) -> None:
    weather = {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "w"}]}
    steps = (weather, {"text": "{{results.w}}"}, {"calls": [{"name": "forever"}]})
    with served(shell, *steps) as (url, _):
        arguments = ("run", "Go.", "--url", url, "--tools", "tools.py", "-o", "jsonl")
        with shell.started(*arguments) as process:
            line_with(process, '"text":"3 °C in Oslo"')
            line_with(process, '"type":"request"')
            process.send_signal(signal.SIGINT)
            rest, err = rest_of(process)
    last = json.loads(rest.splitlines()[-1])
    assert (process.returncode, last["status"], last["content"]) == (130, "cancelled", "3 °C in Oslo")
    assert [call["outcome"] for call in last["calls"]] == ["ok", "unknown"]
    assert "a tool may print" in err


@requirement("cli:run:approve", "cli:run:remote")
async def test_what_waits_is_answered_by_another_host(shell: Shell) -> None:
    approval = {"approval": {"tool": "Bash", "arguments": {"command": "ls"}, "id": "a"}}
    with served(shell, approval, {"text": "heard {{results.a}}"}) as (url, token):
        arguments = ("run", "Go.", "--url", url, "--approve", "wait", "-o", "jsonl")
        with shell.started(*arguments) as process, anyio.fail_after(30):
            await anyio.to_thread.run_sync(line_with, process, '"type":"request"')
            async with RemoteHarness(url, token) as inbox:
                [waiting] = await inbox.list_requests()
                answer = HostResponse(request_id=waiting.request.request_id, selected_option="allow_once")
                await inbox.submit_responses(waiting.conversation_id, waiting.turn_id, [answer])
            rest, _ = await anyio.to_thread.run_sync(rest_of, process)
    last = json.loads(rest.splitlines()[-1])
    assert (process.returncode, last["content"]) == (0, "heard allow_once")


@requirement("cli:run:remote")
@pytest.mark.parametrize(
    ("url", "code", "told"),
    [("http://127.0.0.1:9", 1, "the server at 'http://127.0.0.1:9' is gone"), ("here", 2, "'here' is no server's URL")],
)
def test_a_server_that_is_not_there_is_one_line(shell: Shell, url: str, code: int, told: str) -> None:
    done = shell.run("run", "Go.", "--url", url)
    assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1)
    assert told in done.err
