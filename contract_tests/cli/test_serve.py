"""`harness serve` as a process: what it prints, who may use it, how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import anyio
import httpx2
import pytest

from contract_tests.cli.command import rest_of
from contract_tests.llm_suite import begin, is_waiting, texts, to_end, until
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import problem_of
from harness.contract import ConversationOptions
from harness.errors import Forbidden, InvalidArgument
from harness.remote import RemoteHarness
from harness.server_record import find_local_token

STEPS = 'steps=[{"calls": [{"name": "clock", "id": "c"}]}, {"text": "{{results.c}}"}]'
CODE = (
    "import typer; from harness.cli.failures import reported; from harness.cli.serve import serve\n"
    "with reported(): typer.run(serve)"
)


BASES = {"openai": "/openai/v1", "anthropic": "/anthropic"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", CODE, *arguments]


def first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the first line it printed."""
    with subprocess.Popen(command(*arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process, first_line(process.stdout)
        finally:
            if process.poll() is None:
                process.kill()


def url_in(line: str) -> str:
    assert line.startswith("listening on http://127.0.0.1:")
    return line.removeprefix("listening on ").strip()


@requirement("serve:command", "R-K2", "R-K4")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
async def test_it_prints_its_addresses_only_serves_and_ends_cleanly_on_a_signal(end: signal.Signals) -> None:
    with anyio.fail_after(20), running("--connector", "fake", "-O", STEPS) as (process, line):
        url = url_in(line)
        token = find_local_token(url)
        async with RemoteHarness(url) as llm:
            assert texts(await to_end(llm, await begin(llm), "noon")) == "noon"
            ids = await begin(llm)
            await until(llm, ids, is_waiting)
            connectors = await llm.list_connectors()
            about_itself = [(Path("/proc") / str(process.pid) / name).read_bytes() for name in ("cmdline", "environ")]
            process.send_signal(end)
            rest, stderr = rest_of(process, 10)

    told = f"openai clients: {url}/openai/v1\nanthropic clients: {url}/anthropic\n"
    assert (rest, stderr, process.returncode) == (told, "", 0)
    assert token
    assert not any(token.encode() in text for text in about_itself)
    assert find_local_token(url) is None
    assert [(one.name, one.is_default) for one in connectors] == [("fake", True)]


@requirement("serve:command")
async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    # the peer neither hears an interrupt nor ends: closing it takes as long as the harness allows
    script = tmp_path / "deaf.yaml"
    script.write_text("ignore_interrupt: true\nturns:\n- - text: one\n  - hang: true\n")
    with anyio.fail_after(20), running("--connector", "fake", "-O", f"script={script}") as (process, line):
        async with RemoteHarness(url_in(line)) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.7)
            process.send_signal(signal.SIGTERM)
            assert process.wait(2) == 130


@requirement("R-K4")
async def test_json_output_has_no_token_unless_it_is_asked_for() -> None:
    with running("--connector", "fake", "-o", "json") as (_, line):
        told = json.loads(line)
        secret = find_local_token(told["url"])
    with running("--connector", "fake", "-o", "json", "--print-token") as (_, line):
        asked = json.loads(line)
        its_secret = find_local_token(asked["url"])
    with running("--connector", "fake", "--print-token") as (process, line):
        second = first_line(process.stdout)
        third_secret = find_local_token(url_in(line))

    assert set(told) == {"url", "pid", "connectors", "base_urls"}
    assert told["base_urls"] == {name: told["url"] + path for name, path in BASES.items()}
    assert told["connectors"] == ["fake"]
    assert secret
    assert asked["token"] == its_secret
    assert second == f"token {third_secret}\n"


@requirement("R-K3", "R-K4")
async def test_a_token_file_gives_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("sesame\n")
    file.chmod(0o600)
    with anyio.fail_after(20), running("--connector", "fake", "--token-file", str(file)) as (_, line):
        async with RemoteHarness(url_in(line), "sesame") as llm:
            assert await llm.list_conversations() == []
        with httpx2.Client(trust_env=False) as client:
            assert problem_of(client.get(f"{url_in(line)}/v1/conversations"))["code"] == "unauthorized"


@requirement("http:rights")
async def test_callers_get_only_the_connectors_and_directories_that_are_served() -> None:
    with anyio.fail_after(20), running("--connector", "fake:ask", "-O", STEPS) as (_, line):
        async with RemoteHarness(url_in(line)) as llm:
            with pytest.raises(InvalidArgument, match="known: fake"):
                await llm.begin_conversation(ConversationOptions(connector="claude"))
            with pytest.raises(Forbidden, match="script"):
                await llm.begin_conversation(ConversationOptions(connector_options_json='{"script": "/etc/passwd"}'))
            with pytest.raises(Forbidden, match="cwd"):
                await llm.begin_conversation(ConversationOptions(cwd="/"))
            own = ConversationOptions(connector_options_json='{"steps": [{"text": "mine"}]}', cwd=str(Path.cwd()))
            conversation_id = await llm.begin_conversation(own)
            assert (await llm.get_conversation(conversation_id)).connector == "fake:ask"


@requirement("serve:command")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--connector", "nobody"), "unknown connector 'nobody'"),
        (("--connector", "fake:nothing"), "no variant 'nothing'"),
        (("--connector", "fake", "--host", "0.0.0.0"), "give a token"),
        (("--connector", "fake", "--token-file", "/nowhere/token"), "cannot read the token file"),
        (("--connector", "fake", "-O", "nothing"), "KEY=VALUE"),
        (("--connector", "fake", "-O", "nothing=1"), "'nothing'"),
        (("--connector", "fake", "-O", "steps=7"), "'steps'"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_2(arguments: tuple[str, ...], told: str) -> None:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=20, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@requirement("ujmw:settings")
async def test_how_ujmw_writes_enums_and_faults_is_an_option() -> None:
    arguments = ("--connector", "fake", "--ujmw-enums", "numbers", "--hide-fault-details")
    with anyio.fail_after(20), running(*arguments) as (_, line):
        url = url_in(line)
        service, headers = f"{url}/ujmw/IConversationalLLM", {"Authorization": f"Bearer {find_local_token(url)}"}
        with httpx2.Client(trust_env=False, headers=headers) as client:
            capabilities = client.post(f"{service}/GetCapabilities", json={}).json()["return"]
            fault = client.post(f"{service}/CancelTurn", json={"conversationId": "c_0", "turnId": "t"}).json()["fault"]

    assert isinstance(capabilities["callIds"], int)
    assert fault == "[unknown_conversation] the call failed; the server's log has the details"


@requirement("openai:side-requests")
@pytest.mark.parametrize(("answer", "status"), [("keep", 200), ("answer", 200), ("refuse", 400)])
async def test_side_requests_are_answered_as_it_was_told(answer: str, status: int) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "A title, please."}]}
    with anyio.fail_after(20), running("--connector", "fake", "--side-requests", answer) as (_, line):
        url = url_in(line)
        token = find_local_token(url)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=10) as client:
            answered = await client.post("/openai/v1/chat/completions", json=body)

    assert answered.status_code == status
