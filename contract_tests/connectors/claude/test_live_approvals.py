"""Approvals and questions with the real CLI: whatever the host says is what happens."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from contract_tests.connectors.claude.cli import Claude, Seen, both_routes, needs_cli, open_claude
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    InternalToolFinished,
    InternalToolStarted,
    RequestResolved,
)

pytestmark = needs_cli

QUESTIONS = {
    "questions": [
        {
            "question": "Which color?",
            "header": "Color",
            "multiSelect": False,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        },
        {
            "question": "Which sizes?",
            "header": "Size",
            "multiSelect": True,
            "options": [{"label": "S", "description": "small"}, {"label": "L", "description": "large"}],
        },
    ]
}


def bash(command: str, call_id: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command}, "id": call_id}


def asked(call_id: str) -> dict[str, Any]:
    return {"name": "AskUserQuestion", "arguments": QUESTIONS, "id": call_id}


def choosing(**by_call: dict[str, Any]) -> Callable[[HostRequest], HostResponse]:
    return lambda request: HostResponse(request_id=request.request_id, **by_call[request.call_id or ""])


def calls_asked(seen: Seen) -> list[str | None]:
    return [request.call_id for request in seen.requests]


def finished(seen: Seen) -> dict[str, str]:
    return {item.call_id: str(item.result) for item in seen.items if isinstance(item, InternalToolFinished)}


def results(claude: Claude) -> dict[str, dict[str, Any]]:
    """All tool results the model has read by its last request, by the id of their call."""
    body: Any = claude.model.requests[-1].body
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}


@requirement("claude:approvals:answers", "claude:approvals:routed", "claude:approvals:no-files")
@both_routes
async def test_what_the_host_says_about_an_internal_tool_is_what_happens(tmp_path: Path, route: str) -> None:
    script = [
        {"calls": [bash("touch once", "once")]},
        {"calls": [bash("touch no", "no")]},
        {"calls": [bash("touch changed", "change")]},
        {"calls": [bash("touch always", "always")]},
        {"calls": [bash("touch always", "again")]},
        {"calls": [bash("touch p1", "p1"), bash("touch p2", "p2")]},
        {"text": "Done."},
    ]
    say = choosing(
        once={"selected_option": "allow_once"},
        no={"selected_option": "deny", "reason": "Not that one."},
        change={"selected_option": "allow_once", "updated_arguments_json": '{"command": "touch other"}'},
        always={"selected_option": "allow_always"},
        p1={"selected_option": "deny"},
        p2={"selected_option": "allow_once"},
    )
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route=route, internal_tools=["Bash"]) as claude:
            seen = await claude.say(answer=say)
            told = results(claude)

    assert seen.text == "Done."
    assert calls_asked(seen) == ["once", "no", "change", "always", "p1", "p2"]
    assert {request.kind for request in seen.requests} == {"approval"}
    made = {path.name for path in (tmp_path / "work").iterdir()}
    assert made == {"once", "other", "always", "p2"}, "no settings file either"
    assert (told["no"]["is_error"], told["no"]["content"]) == (True, "Not that one.")
    assert finished(seen)["no"] == finished(seen)["p1"] == "refused"
    assert finished(seen)["again"] == "ok"
    started = {item.call_id: item for item in seen.items if isinstance(item, InternalToolStarted)}
    assert json.loads(started["once"].arguments_json or "") == {"command": "touch once"}


@requirement("claude:approvals:answers", "R-H1", "R-H3")
@both_routes
async def test_a_denial_that_stops_and_a_cancel_end_the_turn_and_not_the_conversation(
    tmp_path: Path, route: str
) -> None:
    script = [
        {"calls": [bash("touch a", "stop")]},
        {"calls": [bash("touch b", "pending")]},
        {"text": "Still here."},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route=route, internal_tools=["Bash"]) as claude:
            stopped = await claude.say(answer=choosing(stop={"selected_option": "deny_and_interrupt"}))
            turn_id = await claude.start("Again.")
            state, _ = await claude.until(turn_id, lambda state, _: state.pending_requests)
            await claude.cancel(turn_id)
            cancelled = await claude.finished(turn_id)
            [pending] = state.pending_requests
            await claude.answer(turn_id, HostResponse(request_id=pending.request_id, selected_option="allow_once"))
            after = await claude.say("And now?")

    assert stopped.state.stop_reason == cancelled.state.stop_reason == "cancelled"
    assert [item.outcome for item in cancelled.items if isinstance(item, RequestResolved)] == ["cancelled"]
    assert after.text == "Still here."
    assert list((tmp_path / "work").iterdir()) == []


@requirement("claude:questions", "R-D11")
async def test_questions_of_the_model_are_answered_by_the_host(tmp_path: Path) -> None:
    script = [{"calls": [asked("both")]}, {"calls": [asked("free")]}, {"calls": [asked("no")]}, {"text": "Done."}]
    say = choosing(
        both={"answers": [Answer(question_id="q1", selected=["Blue"]), Answer(question_id="q2", selected=["S", "L"])]},
        free={"answers": [Answer(question_id="q1", text="A deep green")]},
        no={"action": "decline", "reason": "Ask me later."},
    )
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, internal_tools=["AskUserQuestion"]) as claude:
            seen = await claude.say(answer=say)
            told = results(claude)

    assert seen.text == "Done."
    assert calls_asked(seen) == ["both", "free", "no"]
    assert '"Which color?"="Blue"' in told["both"]["content"] and '"Which sizes?"="S, L"' in told["both"]["content"]
    assert '"Which color?"="A deep green"' in told["free"]["content"]
    assert (told["no"]["is_error"], told["no"]["content"]) == (True, "Ask me later.")
    resolved = [item.outcome for item in seen.items if isinstance(item, RequestResolved)]
    assert resolved == ["answered", "answered", "refused"]
