"""`harness serve --stdio` as a program starts it: what has its streams, how it ends, and the real CLI behind it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.cli.command import HARNESS, Shell, fake
from contract_tests.cli.conftest import shell as shell  # the fixture
from contract_tests.cli.test_claude import claude, live
from contract_tests.connectors.claude.cli import MODEL
from contract_tests.connectors.processes import kill, living, until_gone
from contract_tests.requirements import requirement
from contract_tests.surfaces.stdio.client import Client, ended, started
from harness.scripted_model import open_scripted_model

HANG: tuple[dict[str, Any], ...] = ({"text": "one"}, {"hang": True})


async def parked(client: Client) -> int:
    """A call that waits in the harness, and nothing else does."""
    turn = await client.begin_turn()
    await client.ask("poll_turn", **turn, max_wait_ms=30_000)
    waiting = await client.send("poll_turn", **turn, since_sequence_no=1, max_wait_ms=60_000)
    await client.ask("list_connectors")
    return waiting


@requirement("stdio:end")
@pytest.mark.parametrize("end", ["eof", "shutdown", signal.SIGINT, signal.SIGTERM])
async def test_every_orderly_end_answers_what_waits_and_leaves_no_process(
    shell: Shell, end: str | signal.Signals
) -> None:
    async with started(shell, *fake(*HANG)) as (client, process):
        waiting = await parked(client)
        if isinstance(end, signal.Signals):
            process.send_signal(end)
        elif end == "eof":
            client.close()
        else:
            await client.send("shutdown")
        rest = await client.rest_of_it()
        code, err = await ended(process)

    assert rest[0]["id"] == waiting
    assert rest[0]["result"]["status"] == "running"
    assert (code, err) == (0, "")


@requirement("stdio:end")
async def test_a_client_that_reads_no_more_ends_it_too(shell: Shell) -> None:
    async with started(shell, *fake(*HANG)) as (client, process):
        await client.next()
        assert process.stdout
        process.stdout.close()
        await client.send("list_conversations")
        code, _ = await ended(process)
    assert code == 0


@requirement("stdio:streams")
async def test_the_protocol_has_its_streams_alone(shell: Shell) -> None:
    async with started(shell, *fake(*HANG), "-v") as (client, process):
        await client.next()
        own = Path(f"/proc/{process.pid}/fd")
        streams = [str((own / number).readlink()) for number in ("0", "1", "2")]
        await client.notify("nothing")
        await client.ask("list_conversations")
        client.close()
        assert await client.rest_of_it() == []
        _, err = await ended(process)

    assert streams[0] == os.devnull
    assert streams[1] == streams[2]
    assert "'nothing' was dropped" in err


@requirement("stdio:streams")
def test_files_are_streams_too(shell: Shell) -> None:
    asked, told = shell.directory / "asked", shell.directory / "told"
    asked.write_text('{"jsonrpc":"2.0","id":1,"method":"list_connectors"}')
    with asked.open("rb") as stdin, told.open("wb") as stdout:
        done = subprocess.run(
            [HARNESS, "serve", "--stdio", *fake()],
            stdin=stdin,
            stdout=stdout,
            cwd=shell.directory,
            env=shell.environment_of_commands(),
            timeout=60,
            check=False,
        )
    ready, answer = [json.loads(line) for line in told.read_text().splitlines()]
    assert done.returncode == 0
    assert ready["method"] == "ready"
    assert answer["result"] == {"connectors": [{"name": "fake", "is_default": True}]}


@requirement("stdio:streams")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--connector", "fake", "--port", "8800", "-o", "json"), "'--port', '--output' and '--stdio' do not go"),
        (("--connector", "fake", "--hide-fault-details"), "'--hide-fault-details' and '--stdio' do not go"),
        (("--connector", "nobody"), "unknown connector 'nobody'"),
    ],
)
def test_what_cannot_be_served_is_one_line_on_stderr(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    done = shell.run("serve", "--stdio", *arguments)

    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert len(done.err.splitlines()) == 1


@live
@requirement("stdio:claude")
async def test_the_real_claude_code_cli_calls_the_clients_tool_and_ends_with_it(shell: Shell) -> None:
    script = [
        {"text": "I look.", "calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "toolu_one"}]},
        {"text": "{{results.toolu_one}}."},
        {"calls": [{"name": "weather", "arguments": {"city": "Bergen"}, "id": "toolu_two"}]},
        {"text": "never"},
    ]
    async with open_scripted_model(script) as model, started(shell, *claude(shell, model)) as (client, process):
        tools = [{"name": "weather", "input_schema_json": '{"type":"object","properties":{"city":{"type":"string"}}}'}]
        begun = await client.ask("begin_conversation", options={"tools": tools, "model": MODEL})
        content = [{"type": "text", "text": "How is Oslo?"}]
        turn = {**begun, **await client.ask("submit_user_message", **begun, content=content, follow=True)}
        waiting = await client.until("turn/items", status="awaiting_host")
        [request] = waiting["state"]["pending_requests"]
        result = {"request_id": request["request_id"], "content": [{"type": "text", "text": "3 °C \N{SNOWFLAKE}"}]}
        await client.ask("submit_responses", **turn, responses=[result])
        await client.until("turn/items", status="completed")

        again = {**begun, **await client.ask("submit_user_message", **begun, content=content, follow=True)}
        await client.until("turn/items", status="awaiting_host")
        heard = json.dumps(client.heard)
        pid = re.search(r"pid (\d+)", heard)
        assert pid is not None
        pids = [int(pid[1])]
        assert living(pids) == pids
        parked_call = await client.send("poll_turn", **again, since_sequence_no=10_000, max_wait_ms=60_000)
        client.close()
        try:
            rest = await client.rest_of_it()
            code, err = await ended(process)
            with anyio.fail_after(10):
                await until_gone(pids)
        finally:
            kill(pids)

    items = [
        item
        for message in client.heard
        if message.get("method") == "turn/items" and message["params"]["turn_id"] == turn["turn_id"]
        for item in message["params"]["state"]["new_output_items"]
    ]
    assert (request["call_id"], json.loads(request["arguments_json"])) == ("toolu_one", {"city": "Oslo"})
    assert "3 °C \N{SNOWFLAKE}." in "".join(item["text"] for item in items if item["kind"] == "text_delta")
    assert {call.call_id: call.result for call in model.requests[1].past_calls} == {"toolu_one": "3 °C \N{SNOWFLAKE}"}
    assert [message["id"] for message in rest if "id" in message] == [parked_call]
    assert code == 0
    assert {line.partition(" for ")[0] for line in err.splitlines()} <= {"harness: canary"}
