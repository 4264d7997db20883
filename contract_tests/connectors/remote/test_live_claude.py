"""The real Claude CLI below another harness: its calls, its approvals and its end are the top's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import anyio

from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import ENVIRONMENT, Claude, claude_options, needs_cli, result
from contract_tests.connectors.processes import until_gone
from contract_tests.connectors.remote.stack import TOKEN, open_house, remote, through
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse, InternalToolFinished, Notice, RequestKind
from harness.scripted_model import open_scripted_model
from harness.surfaces.server import serve

pytestmark = needs_cli

OSLO = {"name": "get_weather", "arguments": {"city": "Oslo"}}
SCRIPT = [
    {"text": "Twice.", "calls": [{**OSLO, "id": "toolu_one"}, {**OSLO, "id": "toolu_two"}]},
    {"calls": [{"name": "Bash", "arguments": {"command": "mkdir made", "description": "Makes."}, "id": "toolu_run"}]},
    {"text": "{{results.toolu_one}} and {{results.toolu_two}}."},
    {"text": "I begin", "hang": True},
    {"text": "Still here."},
]


def answer(request: HostRequest) -> HostResponse:
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option="allow_once")
    return result(request, f"3 °C by {request.call_id}")


@requirement("stacking:claude")
async def test_the_real_cli_at_the_bottom_calls_the_tools_of_the_top_and_stops_with_it(tmp_path: Path) -> None:
    with anyio.fail_after(120):
        async with (
            open_scripted_model(SCRIPT) as model,
            open_house(ClaudeConnector(ENVIRONMENT)) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
        ):
            asked = claude_options(model, tmp_path, internal_tools=["Bash"])
            chosen = through(server.url, "claude", json.loads(asked.connector_options_json or "{}"))
            more = {name: getattr(asked, name) for name in ("model", "tools", "cwd", "internal_tools")}
            claude = Claude(top, model, await top.begin_conversation(remote(chosen, **more)))

            seen = await claude.say(answer=answer)
            assert (seen.state.status, seen.state.stop_reason) == ("completed", "end_turn")
            assert [one.call_id for one in seen.requests] == ["toolu_one", "toolu_two", "toolu_run"]
            assert [one.request_id for one in seen.requests if one.kind == "tool_call"] == ["toolu_one", "toolu_two"]
            assert [i.result for i in seen.items if isinstance(i, InternalToolFinished)] == ["ok"]
            assert (tmp_path / "work" / "made").is_dir()
            assert seen.text == "3 °C by toolu_one and 3 °C by toolu_two."
            assert seen.deltas.startswith("Twice.")
            assert seen.state.usage is not None and seen.state.usage.model_calls == 3

            started = [i.text for i in seen.items if isinstance(i, Notice) and i.code == "peer_started"]
            pid = int(re.findall(r"pid (\d+)", " ".join(started))[0])
            turn_id = await claude.start("Wait.")
            await claude.until(turn_id, lambda _, items: any(getattr(i, "text", "") == "I begin" for i in items))
            await claude.cancel(turn_id)
            assert (await claude.finished(turn_id)).state.status == "cancelled"
            assert (await claude.say("And now?")).text == "Still here."

            await top.end_conversation(claude.conversation_id)
            await until_gone([pid])
