"""Turns of the real CLI: calls, rounds, ends, usage, and what the model read."""

import hashlib
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.connectors.claude.cli import SAVE, WEATHER, needs_cli, newest_only, open_claude, result
from contract_tests.requirements import requirement
from harness.contract import (
    ImageBlock,
    ItemDiscarded,
    Limits,
    Message,
    TextBlock,
    ToolDescriptor,
)
from harness.contract.requests import HostRequest, HostResponse

pytestmark = needs_cli

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def call(name: str, call_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments} | ({"id": call_id} if call_id else {})


@requirement("claude:turn:text")
async def test_an_answer_streams_and_ends_as_the_final_message(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"thinking": "Hm.", "text": ["Hello ", "there."]}], tmp_path) as claude:
            seen = await claude.say("Hi.")

    assert (seen.state.status, seen.state.stop_reason) == ("completed", "end_turn")
    assert seen.text == seen.deltas == "Hello there."
    assert [item.kind for item in seen.items if item.kind == "thinking_delta"] == ["thinking_delta"]
    assert "pid" in seen.notices("peer_started")[0]
    assert seen.notices("unknown_peer_event") == []


@requirement("claude:call:exact")
async def test_a_call_reaches_the_host_as_the_model_wrote_it_and_its_result_reaches_the_model(tmp_path: Path) -> None:
    arguments = '{"city": "Oslo", "n": 9007199254740993, "x": 1.10}'
    script = [
        {"text": "I look.", "calls": [{"name": "get_weather", "arguments_json": arguments, "id": "toolu_a"}]},
        {"text": "It is {{results.toolu_a}}."},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say(answer=lambda request: result(request, "12 °C \u2028 sunny"))

    [request] = seen.requests
    assert request.call_id == request.request_id == "toolu_a"
    assert (request.call_id_source, request.tool_name, request.order) == ("exact", "get_weather", 0)
    assert request.read_only is True
    assert request.arguments_json == arguments
    assert seen.text == "It is 12 °C \u2028 sunny."
    commentary = [item for item in seen.items if isinstance(item, Message) and item.phase == "commentary"]
    assert [item.content for item in commentary] == [[TextBlock(text="I look.")]]


@requirement("R-M7", "R-G4")
async def test_two_identical_read_only_calls_are_pending_together(tmp_path: Path) -> None:
    script = [
        {"calls": [call("get_weather", "toolu_1", city="Oslo"), call("get_weather", "toolu_2", city="Oslo")]},
        {"text": "{{results.toolu_1}} and {{results.toolu_2}}"},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            turn_id = await claude.start("Go.")
            state, _ = await claude.until(turn_id, lambda state, _: len(state.pending_requests) == 2)
            first, second = state.pending_requests
            assert [first.call_id, second.call_id] == ["toolu_1", "toolu_2"]
            assert [first.order, second.order] == [0, 1]
            assert first.arguments_json == second.arguments_json
            await claude.answer(turn_id, result(second, "two"), result(first, "one"))
            seen = await claude.finished(turn_id)

    assert seen.text == "one and two"


@requirement("claude:call:one-by-one")
async def test_calls_that_are_not_read_only_come_one_after_the_other(tmp_path: Path) -> None:
    script = [{"calls": [call("save", "toolu_1"), call("save", "toolu_2")]}, {"text": "done"}]
    open_at_once: list[int] = []
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            turn_id = await claude.start("Go.")
            for number in (1, 2):
                wanted = f"toolu_{number}"
                state, _ = await claude.until(
                    turn_id, lambda s, _, w=wanted: any(r.call_id == w for r in s.pending_requests)
                )
                open_at_once.append(len(state.pending_requests))
                await claude.answer(turn_id, *(result(request, "ok") for request in state.pending_requests))
            assert (await claude.finished(turn_id)).text == "done"
    assert open_at_once == [1, 1]


@requirement("R-G3")
async def test_a_tool_error_reaches_the_model_as_an_error_with_its_text(tmp_path: Path) -> None:
    script = [{"calls": [call("save", "toolu_1")]}, {"text": "I see."}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            await claude.say(answer=lambda request: result(request, "disk full", is_error=True))
            [block] = claude.last_results(2)

    assert block["is_error"] is True
    assert block["content"] == "disk full"


@requirement("R-L7")
async def test_a_long_result_reaches_the_model_whole(tmp_path: Path) -> None:
    def long(length: int) -> str:
        body = ("0123456789abcde\n" * (length // 16 + 1))[: length - 64]
        return body + hashlib.sha256(body.encode()).hexdigest()

    results = iter([long(120_000), long(500_000)])
    script = [{"calls": [call("get_weather", "toolu_1")]}, {"calls": [call("save", "toolu_2")]}, {"text": "ok"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say(answer=lambda request: result(request, next(results)))
            [first], [second] = claude.last_results(2), claude.last_results(3)

    assert seen.state.status == "completed"
    assert [part["text"] for part in first["content"]] == [long(120_000)]
    assert [part["text"] for part in second["content"]] == [long(500_000)]


@requirement("claude:turn:rounds")
async def test_three_rounds_keep_the_order_of_calls_over_the_turn(tmp_path: Path) -> None:
    script = [
        {"calls": [call("get_weather", city="Oslo"), call("get_weather", city="Rome")]},
        {"text": "More.", "calls": [call("save")]},
        {"calls": [call("get_weather", city="Bern")]},
        {"text": "Done."},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say(answer=lambda request: result(request, "ok"))
            assert len(claude.model.requests) == 4

    assert [request.order for request in seen.requests] == [0, 1, 2, 3]
    assert seen.text == "Done."
    assert seen.state.usage is not None and seen.state.usage.model_calls == 4


@requirement("R-L1")
async def test_usage_is_that_of_the_turn_and_not_of_the_process(tmp_path: Path) -> None:
    used = {"input_tokens": 1500, "cached_input_tokens": 300, "cache_write_tokens": 200, "output_tokens": 50}
    script = [
        {"calls": [call("save")], "usage": used},
        {"text": "one", "usage": used},
        {"text": "two", "usage": used},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            first = (await claude.say(answer=lambda request: result(request, "ok"))).state
            second = (await claude.say("And?")).state

    assert first.usage is not None and second.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.model_calls) == (3000, 100, 2)
    assert (second.usage.input_tokens, second.usage.output_tokens, second.usage.model_calls) == (1500, 50, 1)
    assert (second.usage.cached_input_tokens, second.usage.cache_write_tokens) == (300, 200)
    assert [model.model for model in second.usage.by_model] == ["claude-sonnet-4-6"]
    assert first.usage.cost_usd == pytest.approx(2 * (second.usage.cost_usd or 0))
    assert second.conversation_usage is not None and second.conversation_usage.input_tokens == 4500


@requirement("claude:turn:stop-reasons")
async def test_a_limit_on_output_tokens_is_told_as_such(tmp_path: Path) -> None:
    script = [{"text": "cut ", "stop": "max_tokens"}] * 4
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, limits=Limits(max_output_tokens=1000)) as claude:
            seen = await claude.say()
            body: Any = claude.model.requests[0].body

    assert (seen.state.status, seen.state.stop_reason) == ("completed", "max_tokens")
    assert body["max_tokens"] == 1000
    assert seen.deltas.startswith("cut ")
    assert "API Error" not in seen.deltas + seen.text


@requirement("claude:turn:stop-reasons")
async def test_a_refusal_is_told_as_such_and_asked_once(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "I", "stop": "refusal"}], tmp_path) as claude:
            seen = await claude.say()
            assert len(claude.model.requests) == 1

    assert (seen.state.status, seen.state.stop_reason) == ("completed", "refusal")


@requirement("claude:turn:stop-reasons")
async def test_a_limit_of_model_calls_ends_the_turn_and_not_the_conversation(tmp_path: Path) -> None:
    script = [{"calls": [call("save")]}, {"calls": [call("save")]}, {"text": "next"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, limits=Limits(max_turns=2)) as claude:
            seen = await claude.say(answer=lambda request: result(request, "ok"))
            assert (seen.state.status, seen.state.stop_reason) == ("completed", "max_turns")
            assert (await claude.say("And?")).text == "next"


@requirement("claude:turn:stop-reasons")
async def test_a_budget_ends_the_turn(tmp_path: Path) -> None:
    script = [{"calls": [call("save")], "usage": {"input_tokens": 1_000_000}}, {"text": "never"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, limits=Limits(cost_budget_usd=0.01)) as claude:
            seen = await claude.say(answer=lambda request: result(request, "ok"))
    assert (seen.state.status, seen.state.stop_reason) == ("completed", "budget")


@requirement("claude:turn:stop-reasons")
async def test_a_budget_of_tokens_is_kept_while_the_turn_runs(tmp_path: Path) -> None:
    used = {"input_tokens": 1500, "output_tokens": 50}
    script = [{"text": "On.", "calls": [call("save")], "usage": used}] * 4 + [{"text": "never"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, limits=Limits(token_budget=3000)) as claude:
            seen = await claude.say(answer=lambda request: result(request, "ok"))
            assert len(claude.model.requests) <= 3
    assert (seen.state.status, seen.state.stop_reason) == ("completed", "budget")
    assert seen.notices("limit_near")


@requirement("R-L2")
async def test_a_rate_limit_is_told_while_the_cli_tries_again(tmp_path: Path) -> None:
    script = [{"error": {"status": 429, "message": "slow down", "retry_after": 0}}, {"text": "fine"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say()
    assert "status 429; attempt 1 of 2" in seen.notices("rate_limit")[0]
    assert seen.text == "fine"


@requirement("R-L2")
async def test_a_rate_limit_that_stays_fails_the_turn_with_the_providers_words(tmp_path: Path) -> None:
    script = [{"error": {"status": 429, "message": "slow down", "retry_after": 0}}] * 3 + [{"text": "fine"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            failed = (await claude.say()).state
            again = await claude.say("And now?")

    assert failed.status == "failed"
    assert failed.error is not None and failed.error.code == "provider_error"
    detail = json.loads(failed.error.detail_json or "{}")
    assert (detail["reason"], detail["status"]) == ("rate_limit", 429)
    assert "slow down" in failed.error.message
    assert again.text == "fine"


@newest_only
@requirement("claude:turn:restarted-message")
async def test_a_dropped_stream_is_discarded_and_the_whole_answer_counts(tmp_path: Path) -> None:
    script = [{"text": ["half an ", "answer"], "drop": True}, {"text": "The whole answer."}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say()

    assert seen.text == "The whole answer."
    kept = {item.item_id for item in seen.items if item.kind == "message"}
    dropped = {item.item_id for item in seen.items if isinstance(item, ItemDiscarded)}
    streamed = {item.item_id for item in seen.items if item.kind == "text_delta"}
    assert streamed == kept | dropped
    assert not kept & dropped
    assert seen.notices("retry")


@requirement("claude:turn:provider-errors")
@pytest.mark.parametrize(
    "refusals",
    [
        [(404, "model: nope", "provider_error", "request")],
        [(401, "invalid x-api-key", "provider_error", "auth")],
        [
            (400, "Your credit balance is too low to access the Anthropic API.", "provider_error", "billing"),
            (400, "prompt is too long: 250000 tokens > 200000 maximum", "context_overflow", None),
            (529, "Overloaded", "provider_error", "overloaded"),
        ],
    ],
)
async def test_what_the_provider_refuses_fails_the_turn_by_kind(
    tmp_path: Path, refusals: list[tuple[int, str, str, str | None]]
) -> None:
    # the last one is met as often as the CLI tries again, the others once
    script = [{"error": {"status": status, "message": text, "retry_after": 0}} for status, text, _, _ in refusals]
    seen: list[tuple[str, str | None]] = []
    with anyio.fail_after(30):
        async with open_claude([*script, *[script[-1]] * 4], tmp_path) as claude:
            for _ in refusals:
                error = (await claude.say()).state.error
                assert error is not None and "ede_diagnostic" not in error.message
                seen.append((error.code, json.loads(error.detail_json or "{}").get("reason")))
    assert seen == [(code, reason) for *_, code, reason in refusals]


@newest_only
@requirement("claude:prompt:exact")
async def test_the_users_text_reaches_the_model_as_it_is(tmp_path: Path) -> None:
    texts = ["/compact", "Look at @note.txt", "!ls", "# keep this", "<system-reminder>x"]
    with anyio.fail_after(30):
        async with open_claude([{"text": "ok"}] * len(texts), tmp_path) as claude:
            (tmp_path / "work" / "note.txt").write_text("secret note")
            for text in texts:
                await claude.say(text)
            bodies: list[Any] = [request.body for request in claude.model.requests]

    last = [body["messages"][-1]["content"] for body in bodies]
    assert [content if isinstance(content, str) else content[-1]["text"] for content in last] == texts
    assert "secret note" not in json.dumps(bodies)


@requirement("claude:prompt:system")
async def test_the_system_prompt_replaces_the_clis_own(tmp_path: Path) -> None:
    prompt = "You are terse. " * 2000
    with anyio.fail_after(30):
        async with open_claude([{"text": "ok"}], tmp_path, system_prompt=prompt) as claude:
            await claude.say()
            body: Any = claude.model.requests[0].body
    assert body["system"][-1]["text"] == prompt
    assert len(body["system"]) == 3


@requirement("claude:tools:only-ours")
async def test_the_model_sees_the_hosts_tools_and_no_others(tmp_path: Path) -> None:
    schema = '{"$defs":{"c":{"enum":["a"]}},"type":"object","properties":{"c":{"$ref":"#/$defs/c"}},"x-mine":1}'
    long = ToolDescriptor(name="x" * 64, input_schema_json=schema)
    with anyio.fail_after(30):
        async with open_claude([{"text": "ok"}], tmp_path, tools=[WEATHER, SAVE, long]) as claude:
            await claude.say()
            body: Any = claude.model.requests[0].body
    tools = {tool["name"]: tool for tool in body["tools"]}
    assert len(tools) == 3
    assert all(name.startswith("mcp__host__") and len(name) <= 64 for name in tools)
    [shortened] = [tool for name, tool in tools.items() if "xxx" in name]
    assert shortened["input_schema"] == json.loads(schema)


@requirement("claude:images")
async def test_images_pass_in_prompts_and_in_results(tmp_path: Path) -> None:
    image = ImageBlock(data=PIXEL, media_type="image/png")
    script = [{"calls": [call("save", "toolu_1")]}, {"text": "seen"}]

    def picture(request: HostRequest) -> HostResponse:
        return HostResponse(request_id=request.request_id, content=[TextBlock(text="here"), image])

    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say([TextBlock(text="What is this?"), image], picture)
            prompt: Any = claude.model.requests[0].body
            [block] = claude.last_results(2)
    assert seen.text == "seen"
    assert PIXEL in json.dumps(prompt["messages"])
    assert [part["source"]["data"] for part in block["content"] if part["type"] == "image"] == [PIXEL]


@requirement("claude:call:not-delivered")
async def test_a_call_the_cli_answers_itself_is_told(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "get_weather", "arguments_json": '{"city": ', "id": "toolu_1"}]}, {"text": "ok"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            seen = await claude.say()
    assert seen.requests == []
    assert "toolu_1" in seen.notices("call_not_delivered")[0]
    assert seen.text == "ok"
