"""The real CLI behind a server: an approval from another process, and the death of the server while a command runs."""

import os
import re
from pathlib import Path

import anyio
import pytest

from contract_tests.cli.command import Shell
from contract_tests.cli.test_claude import reapers_of, server, url_of
from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.connectors.processes import kill, living, until_gone
from contract_tests.requirements import requirement
from harness import RemoteHarness
from harness.contract import ConversationOptions, HostResponse, Notice, TextBlock
from harness.scripted_model import open_scripted_model

pytestmark = needs_cli


@requirement("claude:server:killed", "claude:approvals:routed")
async def test_a_command_that_another_process_allowed_ends_with_a_server_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    shell, told = Shell(tmp_path), tmp_path / "pids"
    os.mkfifo(told)
    command = f"setsid sleep 1000 & echo $$ $! > {told}; sleep 1000"
    script = [{"calls": [{"name": "Bash", "arguments": {"command": command}, "id": "toolu_1"}]}, {"text": "never"}]
    with anyio.fail_after(60):
        async with open_scripted_model(script) as model, server(shell, model) as process:
            url = await url_of(process)
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
            async with RemoteHarness(url) as far:
                options = ConversationOptions(connector="claude", model=MODEL, internal_tools=["Bash"])
                begun = await far.begin_conversation(options)
                turn_id = await far.submit_user_message(begun, [TextBlock(text="Go.")])
                state = await far.poll_turn(begun, turn_id, max_wait_ms=30_000)
                while not state.pending_requests:
                    state = await far.poll_turn(begun, turn_id, state.sequence_no, max_wait_ms=30_000)
                [asked] = await far.list_requests()
                assert (asked.request.kind, asked.request.call_id) == ("approval", "toolu_1")
                allowed = HostResponse(request_id=asked.request.request_id, selected_option="allow_once")
                await far.submit_responses(begun, turn_id, [allowed])
                commands = [int(pid) for pid in (await anyio.to_thread.run_sync(told.read_text)).split()]
                items = (await far.poll_turn(begun, turn_id)).new_output_items
                [started] = [i.text for i in items if isinstance(i, Notice) and i.code == "peer_started"]
                found = re.search(r"pid (\d+)", started)
                assert found is not None
                pids = [int(found[1]), *commands, *reapers_of(process.pid)]
                assert living(pids) == pids
                process.kill()
                try:
                    with anyio.fail_after(5):
                        await until_gone(pids)
                finally:
                    kill(pids)
    assert len(model.requests) == 1
