"""What is delegated to the real CLI: MCP servers of its own, and decisions by a policy of ours."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from bridge_mcp.http import open_endpoint
from contract_tests.bridge_mcp.desk import Desk, server, text
from contract_tests.connectors.claude.cli import Claude, Seen, both_routes, needs_cli, open_claude
from contract_tests.connectors.claude.test_live_approvals import results
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    InternalToolFinished,
    InternalToolStarted,
    Label,
    PolicyMode,
    PolicyRule,
    RequestPolicy,
    ToolSourceDescriptor,
)
from harness.policy import rule_of_text

pytestmark = needs_cli

SERVER = Path(__file__).parents[2] / "peers" / "mcp_server.py"
SECRETS = {"OUR_SERVER_TOKEN": "our-secret", "OPENAI_API_KEY": "sk-other"}


def books(name: str = "books", **fields: Any) -> ToolSourceDescriptor:
    return ToolSourceDescriptor(
        name=name, kind="mcp_stdio", command=sys.executable, args=["-I", "-S", str(SERVER)], **fields
    )


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "id": call_id}


@asynccontextmanager
async def open_delegating(
    script: list[dict[str, Any]],
    directory: Path,
    *,
    sources: list[ToolSourceDescriptor] | None = None,
    policy: RequestPolicy | None = None,
    **options: Any,
) -> AsyncGenerator[Claude]:
    async with open_claude(script, directory, **options) as claude:
        if sources is not None:
            await claude.harness.delegate_tool_sources(claude.conversation_id, sources)
        if policy is not None:
            await claude.harness.delegate_request_policy(claude.conversation_id, policy)
        yield claude


def rules(*texts: str) -> list[PolicyRule]:
    return [rule_of_text(one) for one in texts]


def allow(request: HostRequest) -> HostResponse:
    return HostResponse(request_id=request.request_id, selected_option="allow_once")


def asked(seen: Seen) -> list[str | None]:
    return [request.call_id for request in seen.requests]


@requirement("claude:delegation:sources", "claude:delegation:secrets")
async def test_a_delegated_server_is_used_by_the_cli_and_sees_no_secret(tmp_path: Path) -> None:
    script = [
        {"calls": [call("mcp__books__env", "e1")]},
        {"calls": [call("mcp__trusted__env", "e2")]},
        {"calls": [call("mcp__books__echo", "e3", q="hi")]},
        {"text": "Done."},
    ]
    sources = [
        books(env=[Label(name="SHELF", value="42")], tool_names=["env"]),
        books("trusted", share_secrets=True),
    ]
    added = {"env": {"CLAUDE_CODE_MAX_RETRIES": "2", "CLOUD_KEY": "for-the-cli-alone"}}
    environ = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **SECRETS}
    with anyio.fail_after(30):
        async with open_delegating(
            script, tmp_path, sources=sources, route="bridge", environ=environ, connector_options=added
        ) as claude:
            seen = await claude.say(answer=allow)
            told = results(claude)

    assert seen.text == "Done."
    assert asked(seen) == ["e1", "e2"], "what no rule covers still arrives"
    assert (seen.requests[0].kind, seen.requests[0].tool_name) == ("approval", "mcp__books__env")
    private, shared = (json.loads(told[key]["content"][0]["text"]) for key in ("e1", "e2"))
    assert private["SHELF"] == "42"
    assert not {"sk-made-up", "for-the-cli-alone", *SECRETS.values()} & set(private.values())
    assert (shared["ANTHROPIC_API_KEY"], shared["CLOUD_KEY"]) == ("sk-made-up", "for-the-cli-alone")
    assert not set(SECRETS.values()) & set(shared.values())
    started = [item for item in seen.items if isinstance(item, InternalToolStarted)]
    finished = {i.call_id: i.result for i in seen.items if isinstance(i, InternalToolFinished)}
    assert [(item.call_id, item.source) for item in started] == [("e1", "books"), ("e2", "trusted"), ("e3", "books")]
    assert finished == {"e1": "ok", "e2": "ok", "e3": "refused"}
    assert "was not given" in told["e3"]["content"]


@requirement("claude:delegation:sources")
async def test_a_delegated_server_over_http_gets_its_headers_and_needs_no_program(tmp_path: Path) -> None:
    desk = Desk()
    script = [{"calls": [call("mcp__far__echo", "h1", q=1)]}, {"text": "Done."}]
    policy = RequestPolicy(allow=rules("mcp__far__echo"))
    with anyio.fail_after(30):
        async with open_endpoint(server(), desk.on_call) as address:
            bearer = Label(name="Authorization", value=f"Bearer {address.token}")
            source = ToolSourceDescriptor(name="far", kind="mcp_http", url=address.url, headers=[bearer])
            async with open_delegating(script, tmp_path, sources=[source], policy=policy) as claude:
                turn_id = await claude.start("Go.")
                [one] = await desk.holds(1)
                desk.answer(one.key, text("from afar"))
                seen = await claude.finished(turn_id)
                told = results(claude)
    assert (seen.text, seen.requests) == ("Done.", [])
    assert (one.tool_name, one.arguments) == ("echo", {"q": 1})
    assert told["h1"]["content"] == [{"type": "text", "text": "from afar"}]


@requirement("claude:questions:elicitation")
async def test_a_delegated_server_asks_the_user_through_the_host(tmp_path: Path) -> None:
    script = [{"calls": [call("mcp__books__ask", f"q{n}")]} for n in (1, 2)] + [{"text": "Done."}]
    policy = RequestPolicy(allow=rules("mcp__books__ask"))
    says: list[dict[str, Any]] = [{"answers": [Answer(question_id="name", text="Ada")]}, {"action": "decline"}]
    answers = iter(says)
    with anyio.fail_after(30):
        async with open_delegating(script, tmp_path, sources=[books()], policy=policy) as claude:
            seen = await claude.say(answer=lambda r: HostResponse(request_id=r.request_id, **next(answers)))
            told = results(claude)
    assert [(r.kind, r.call_id, r.description) for r in seen.requests] == [("user_question", None, "Your name?")] * 2
    first, second = (json.loads(told[key]["content"][0]["text"]) for key in ("q1", "q2"))
    assert first == {"action": "accept", "content": {"name": "Ada"}}
    assert second == {"action": "decline"}


@requirement("claude:delegation:policy", "R-D10")
@both_routes
async def test_the_cli_decides_by_our_policy_and_leaves_the_rest_to_the_host(tmp_path: Path, route: str) -> None:
    script = [
        {"calls": [call("Bash", "allowed", command="touch allowed")]},
        {"calls": [call("Bash", "compound", command="touch allowed && touch more")]},
        {"calls": [call("Bash", "denied", command="touch x; rm -rf /")]},
        {"calls": [call("Bash", "uncovered", command="ls")]},
        {"calls": [call("Write", "edit", file_path=str(tmp_path / "work" / "new"), content="x")]},
        {"calls": [call("Write", "outside", file_path=str(tmp_path / "outside"), content="x")]},
        {"calls": [call("get_weather", "ours", city="Oslo")]},
        {"text": "Done."},
    ]
    policy = RequestPolicy(
        mode=PolicyMode.ACCEPT_EDITS, allow=rules("Bash(touch *)"), deny=rules("Bash(rm *)", "WebFetch")
    )

    def answer(request: HostRequest) -> HostResponse:
        if request.kind == "tool_call":
            return HostResponse(request_id=request.request_id)
        return HostResponse(request_id=request.request_id, selected_option="deny")

    with anyio.fail_after(30):
        async with open_delegating(
            script, tmp_path, policy=policy, route=route, internal_tools=["Bash", "Write", "WebFetch"]
        ) as claude:
            seen = await claude.say(answer=answer)
            told = results(claude)
            offered = claude.model.requests[0].tools

    assert seen.text == "Done."
    assert asked(seen) == ["compound", "uncovered", "outside", "ours"]
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"allowed", "new"}
    assert "Bash(rm *)" in told["denied"]["content"]
    assert "WebFetch" not in offered and "Bash" in offered


@requirement("claude:delegation:policy")
async def test_the_same_call_denied_by_policy_again_and_again_ends_the_turn(tmp_path: Path) -> None:
    script = [{"calls": [call("Bash", f"b{n}", command="rm x")]} for n in range(8)] + [{"text": "never"}]
    policy = RequestPolicy(deny=rules("Bash(rm *)"))
    with anyio.fail_after(30):
        async with open_delegating(script, tmp_path, policy=policy, internal_tools=["Bash"]) as claude:
            seen = await claude.say()
            assert len(claude.model.requests) <= 4
            again = await claude.say("And now?")
    assert seen.state.error is not None and seen.state.error.code == "loop_guard"
    assert again.state.status in ("completed", "failed")
