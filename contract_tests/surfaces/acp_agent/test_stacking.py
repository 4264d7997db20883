"""Our own connector `acp` on top of `harness acp`: two of our houses, with the protocol between them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.cli.command import HARNESS
from contract_tests.requirements import requirement
from contract_tests.surfaces.acp_agent.client import SECONDS, scripted
from harness import ConversationOptions, LocalHarness
from harness.contract.output import InternalToolFinished, InternalToolStarted, OutputItem, Plan, ThinkingDelta
from harness.contract.requests import HostRequest, HostResponse, OptionKind
from harness.orchestrator.conversation import ConversationHandle
from harness.orchestrator.opening import open_conversation


@asynccontextmanager
async def stacked(
    tmp_path: Path, *arguments: str, tools: Any = (), approver: Any = "deny"
) -> AsyncGenerator[ConversationHandle]:
    given = {
        "command": [HARNESS, "acp", *arguments],
        "env": {"HARNESS_STORE": "memory"},
        "home": str(tmp_path / "agent"),
        "isolated_home": True,
    }
    options = ConversationOptions(connector="acp", cwd=str(tmp_path), connector_options_json=json.dumps(given))
    with anyio.fail_after(SECONDS):
        async with (
            LocalHarness() as harness,
            open_conversation(harness, options=options, tools=tools, approver=approver) as handle,
        ):
            yield handle


class Deciding:
    """Chooses by kind and remembers what it was asked."""

    def __init__(self, kind: OptionKind) -> None:
        self.kind = kind
        self.asked: list[HostRequest] = []

    async def decide(self, request: HostRequest) -> Any:
        from harness.orchestrator.approvals import Decision

        self.asked.append(request)
        option = next(one.id for one in request.options if one.kind == self.kind)
        return Decision(HostResponse(request_id=request.request_id, selected_option=option))


@requirement("acp-agent:stacking")
@pytest.mark.parametrize(
    ("kind", "result"), [(OptionKind.ALLOW_ONCE, "ok"), (OptionKind.ALLOW_ALWAYS, "ok"), (OptionKind.DENY, "refused")]
)
async def test_what_the_lower_house_says_and_asks_comes_out_of_the_upper_one(
    tmp_path: Path, kind: OptionKind, result: str
) -> None:
    call = {"tool": "Bash", "id": "p1", "call_id": "c1", "arguments": {"command": "rm x"}}
    script = [
        {"thinking": "Hm."},
        {"plan": [{"text": "Look", "status": "in_progress"}]},
        {"approval": call},
        {"internal_tool": {"name": "Bash", "call_id": "c1", "arguments": {"command": "rm x"}, "result_text": "gone"}},
        {"text": ["It ", "was {{results.p1}}."]},
        {"end": "max_turns"},
    ]
    approver = Deciding(kind)
    items: list[OutputItem] = []
    async with stacked(tmp_path, *scripted(script), approver=approver) as handle:
        completion = await handle.ask("Go.", on_item=items.append)

    assert (completion.status, completion.stop_reason) == ("completed", "max_turns")
    assert completion.content == f"It was {kind}."
    [request] = approver.asked
    assert (request.call_id, request.tool_name, request.target) == ("c1", "Bash", "rm x")
    assert [str(option.kind) for option in request.options] == ["allow_once", "allow_always", "deny"]
    [begun] = [item for item in items if isinstance(item, InternalToolStarted)]
    [ended] = [item for item in items if isinstance(item, InternalToolFinished)]
    assert (begun.call_id, begun.tool_name, begun.arguments_json) == ("c1", "Bash", '{"command":"rm x"}')
    assert (ended.call_id, ended.result) == ("c1", result)
    assert [item.text for item in items if isinstance(item, ThinkingDelta)] == ["Hm."]
    assert [entry.text for item in items if isinstance(item, Plan) for entry in item.entries] == ["Look"]


@requirement("acp-agent:stacking")
async def test_the_upper_hosts_tools_are_called_from_the_lower_house(tmp_path: Path) -> None:
    def get_weather(city: str) -> str:
        """The weather."""
        return f"3 °C in {city}"

    call = {"name": "get_weather", "id": "w1", "arguments": {"city": "Oslo"}}
    routes = {"delegatable_tool_sources": []}
    lower = scripted([{"calls": [call]}, {"text": "{{results.w1}}"}], capabilities=routes)
    async with stacked(tmp_path, *lower, tools=[get_weather]) as handle:
        completion = await handle.ask("Go.")
    assert completion.content == "3 °C in Oslo"
    assert [(one.tool, one.outcome) for one in completion.calls] == [("get_weather", "ok")]


@requirement("acp-agent:stacking")
async def test_a_cancel_reaches_the_bottom_and_an_error_the_top(tmp_path: Path) -> None:
    turns: list[list[dict[str, Any]]] = [
        [{"text": "I begin."}, {"hang": True}],
        [{"error": {"code": "provider_error", "message": "too many", "detail": {"reason": "rate_limit"}}}],
        [{"text": "Again."}],
    ]
    async with stacked(tmp_path, *scripted(*turns)) as handle:
        stop = anyio.Event()
        completion = await handle.ask(
            "Go.", stop=stop, on_item=lambda item: stop.set() if item.kind == "text_delta" else None
        )
        assert completion.stop_reason == "cancelled"
        completion = await handle.ask("Go.")
        assert completion.error is not None
        assert (completion.error.code, "too many" in completion.error.message) == ("provider_error", True)
        assert (await handle.ask("Go.")).content == "Again."
