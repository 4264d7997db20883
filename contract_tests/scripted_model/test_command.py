"""`harness scripted-model` as a process: what it prints, how it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from contract_tests.cli.command import rest_of
from contract_tests.requirements import requirement
from contract_tests.scripted_model.wire import body

COMMAND = (
    sys.executable,
    "-c",
    "import typer; from harness.cli.scripted_model import scripted_model as s; typer.run(s)",
)


@requirement("scripted-model:command:lifecycle")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_and_ends_cleanly_on_a_signal(tmp_path: Path, end: signal.Signals) -> None:
    script, log = tmp_path / "script.yaml", tmp_path / "log.jsonl"
    script.write_text("- text: hello\n- hang: true\n")
    command = [*COMMAND, str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.removeprefix("listening on ").strip()
        with httpx2.Client(base_url=url, trust_env=False) as client:
            answer = client.post("/v1/messages", json=body()).json()
            with client.stream("POST", "/v1/messages", json=body(stream=True)) as hanging:
                assert hanging.status_code == 200
                process.send_signal(end)
                rest, stderr = rest_of(process, 5)

    assert url.startswith("http://127.0.0.1:")
    assert answer["content"][0]["text"] == "hello"
    assert [json.loads(line)["entry"] for line in log.read_text().splitlines()] == [1, 2]
    assert (rest, stderr, process.returncode) == ("", "", 0)


@requirement("scripted-model:command:lifecycle")
def test_a_bad_script_is_one_line_and_exit_2(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- text: hello\n- txt: hello\n")

    done = subprocess.run([*COMMAND, str(script)], capture_output=True, text=True, timeout=20, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"harness: the script '{script}', entry 2, 'txt': unknown member, take it out or correct its name"
    ]
