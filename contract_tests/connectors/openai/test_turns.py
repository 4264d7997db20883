"""Whole turns of `openai` in both of its modes, over loopback HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from connectors.openai import OpenAiConfig, OpenAiConnector
from contract_tests.connectors.model_talk import OSLO, PIXEL, ROME, final_text, model_talk
from contract_tests.core.scripted_chat_model import Talk, answered, kinds, notices
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostRequest,
    HostResponse,
    ImageBlock,
    Message,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    ToolDescriptor,
    TurnStatus,
)
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.scripted_model import ScriptedModel

APIS = ("responses", "chat")


@asynccontextmanager
async def talk_to(
    api: str, *script: Mapping[str, Any], connector_options: Mapping[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[Talk, ScriptedModel]]:
    asked = {"api": api, "quirks": "openai", **(connector_options or {})}
    async with model_talk(OpenAiConnector(), *script, path="/v1", connector_options=asked, **options) as both:
        yield both


@requirement("openai:turn")
@pytest.mark.parametrize("api", APIS)
async def test_a_turn_with_parallel_calls_passes_ids_order_and_text_through(api: str) -> None:
    script = (
        {
            "thinking": "Two.",
            "text": ["I ", "look."],
            "calls": [OSLO, ROME],
            "usage": {"input_tokens": 50, "cached_input_tokens": 20, "output_tokens": 9},
        },
        {"text": "Oslo {{results.call_oslo}}, Rome {{results.call_rome}}."},
    )
    async with talk_to(api, *script, connector_options={"reasoning_summary": "auto"}) as (talk, model):
        state = await talk.run("Weather?", lambda r: answered(r, "7" if r.call_id == "call_oslo" else "19"))
    assert state.status == TurnStatus.COMPLETED
    assert final_text(state) == "Oslo 7, Rome 19."
    assert [(r.call_id, r.call_id_source, r.arguments_json) for r in talk.opened] == [
        ("call_oslo", "exact", OSLO["arguments_json"]),
        ("call_rome", "exact", ROME["arguments_json"]),
    ]
    deltas = [item.text for item in state.new_output_items if isinstance(item, TextDelta)]
    assert "".join(deltas) == "I look.Oslo 7, Rome 19."
    assert [item.text for item in state.new_output_items if isinstance(item, ThinkingDelta)] == ["Two."]
    assert state.usage is not None
    assert (state.usage.input_tokens, state.usage.cached_input_tokens, state.usage.model_calls) == (150, 20, 2)
    assert [(past.call_id, past.result) for past in model.requests[1].past_calls] == [
        ("call_oslo", "7"),
        ("call_rome", "19"),
    ]


@requirement("openai:responses:items-go-back")
async def test_reasoning_goes_back_before_its_calls_and_nothing_is_stored() -> None:
    async with talk_to("responses", {"thinking": "Hm.", "text": "I look.", "calls": [OSLO]}, {"text": "7"}) as (
        talk,
        model,
    ):
        await talk.run()
    first, second = [request.body or {} for request in model.requests]
    assert first["store"] is False and first["include"] == ["reasoning.encrypted_content"]
    items: Any = second["input"]
    assert [item["type"] for item in items] == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert items[1]["encrypted_content"].startswith("enc-")


@requirement("openai:responses:chained")
async def test_a_conversation_may_be_kept_by_the_server() -> None:
    script = ({"text": "one", "calls": [OSLO]}, {"text": "two"}, {"text": "three"})
    options = {"state": "server"}
    async with talk_to("responses", *script, connector_options=options, system_prompt="Be kind.") as (talk, model):
        await talk.run("first")
        await talk.run("second")
    bodies: list[Any] = [request.body for request in model.requests]
    assert "previous_response_id" not in bodies[0] and bodies[0]["store"] is True
    assert [item["type"] for item in bodies[1]["input"]] == ["function_call_output"]
    assert [item["type"] for item in bodies[2]["input"]] == ["message"]
    assert all(body["instructions"] == "Be kind." for body in bodies)
    assert bodies[2]["previous_response_id"] != bodies[1]["previous_response_id"]


@requirement("R-G3")
@pytest.mark.parametrize("api", APIS)
async def test_a_tools_error_is_marked_in_its_text(api: str) -> None:
    async with talk_to(api, {"calls": [OSLO]}, {"text": "sorry"}) as (talk, model):
        await talk.run(tool=lambda request: answered(request, "no such city", is_error=True))
    assert [past.result for past in model.requests[1].past_calls] == ["Error: no such city"]


@requirement("R-I4")
@pytest.mark.parametrize("api", APIS)
async def test_schemas_pass_through_as_they_are(api: str) -> None:
    schema = (
        '{"$defs":{"p":{"type":"object","properties":{"x":{"type":"number","minimum":0}}}},"type":"object",'
        '"properties":{"z":{"$ref":"#/$defs/p"},"a":{"anyOf":[{"const":1},{"pattern":"^x","type":"string"}],"default":1}},'
        '"additionalProperties":false}'
    )
    tool = ToolDescriptor(name="odd", input_schema_json=schema)
    async with talk_to(api, {"text": "ok"}, tools=[tool]) as (talk, model):
        await talk.run()
    (declared,) = json.loads(model.requests[0].body_text)["tools"]
    sent = declared["parameters"] if api == "responses" else declared["function"]["parameters"]
    assert json.dumps(sent, separators=(",", ":")) == schema


@requirement("R-I5")
@pytest.mark.parametrize("api", APIS)
async def test_a_tool_without_arguments_is_declared_and_called(api: str) -> None:
    async with talk_to(api, {"calls": [{"name": "clock"}]}, {"text": "noon"}) as (talk, _):
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert talk.opened[0].arguments_json == "{}"


@requirement("openai:images")
@pytest.mark.parametrize("api", APIS)
async def test_images_reach_the_model_from_prompts_and_results(api: str) -> None:
    image = ImageBlock(data=PIXEL, media_type="image/png")

    def tool(request: HostRequest) -> HostResponse:
        return HostResponse(request_id=request.request_id, content=[TextBlock(text="see"), image])

    async with talk_to(api, {"calls": [OSLO]}, {"text": "ok"}) as (talk, model):
        turn = await talk.house.submit_user_message(talk.conversation_id, [TextBlock(text="what?"), image])
        assert (await talk.finish(turn, tool)).status == TurnStatus.COMPLETED
    assert model.requests[1].body_text.count(f"data:image/png;base64,{PIXEL}") == 2


@requirement("openai:turn-options")
@pytest.mark.parametrize("api", APIS)
async def test_every_option_of_a_turn_is_on_the_wire(api: str) -> None:
    schema = '{"type":"object"}'
    async with talk_to(api, {"text": "{}"}, {"text": "plain"}, effort="low") as (talk, model):
        state = await talk.run(
            model="other",
            tool_names=["clock"],
            tool_mode="one",
            effort="extra_high",
            temperature=0.25,
            max_output_tokens=99,
            instructions="Rhyme.",
            output_schema_json=schema,
        )
        await talk.run(tool_mode="none")
    body: Any = model.requests[0].body
    assert state.structured_output_json == "{}"
    assert (body["model"], body["tool_choice"], body["parallel_tool_calls"]) == ("other", "required", False)
    assert (body["temperature"], model.requests[0].tools) == (0.25, ("clock",))
    if api == "responses":
        assert (body["reasoning"], body["max_output_tokens"], body["instructions"]) == (
            {"effort": "xhigh"},
            99,
            "Rhyme.",
        )
        assert body["text"]["format"]["schema"] == {"type": "object"}
    else:
        assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("xhigh", 99)
        assert body["messages"][0] == {"role": "system", "content": "Rhyme."}
        assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    second: Any = model.requests[1].body
    assert (second["model"], second["tool_choice"]) == ("m", "none")
    assert "Rhyme" not in model.requests[1].body_text


@requirement("openai:stop-reasons")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("stop", "expected"), [("max_tokens", "max_tokens"), ("refusal", "refusal")])
async def test_stop_reasons_are_ours(api: str, stop: str, expected: str) -> None:
    async with talk_to(api, {"text": "I can", "stop": stop}) as (talk, _):
        state = await talk.run()
    assert (state.status, state.stop_reason, final_text(state)) == (TurnStatus.COMPLETED, expected, "I can")


@requirement("openai:stop-reasons")
@pytest.mark.parametrize("api", APIS)
async def test_a_call_that_was_cut_off_is_not_run(api: str) -> None:
    cut = {"calls": [OSLO, {"name": "weather", "arguments_json": '{"city": "Ro', "id": "cut"}], "stop": "max_tokens"}
    async with talk_to(api, {"calls": [cut["calls"][1]], "stop": "max_tokens"}, {"text": "next"}) as (talk, _):
        state = await talk.run()
        assert (state.status, state.stop_reason) == (TurnStatus.COMPLETED, "max_tokens")
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert talk.opened == []


@requirement("R-L2")
@pytest.mark.parametrize("api", APIS)
async def test_a_rate_limit_is_waited_for_as_the_server_asks(api: str) -> None:
    limited = {"error": {"status": 429, "message": "slow down", "retry_after": 0}}
    async with talk_to(api, limited, {"text": "ok"}) as (talk, _):
        state = await talk.run()
        assert state.status == TurnStatus.COMPLETED
        assert "slow down" in notices(state, "rate_limit")[0]


@requirement("openai:errors")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("status", "reason"), [(401, "auth"), (402, "billing"), (400, "request"), (500, "server")])
async def test_refusals_fail_the_turn_with_their_reason(api: str, status: int, reason: str) -> None:
    error = {"error": {"status": status, "message": "no", "retry_after": 0}}
    async with talk_to(api, error, {"text": "ok"}, connector_options={"max_retries": 0}) as (talk, _):
        state = await talk.run()
        assert state.error is not None and state.error.code == "provider_error"
        detail = json.loads(state.error.detail_json or "")
        assert (detail["reason"], detail["status"]) == (reason, status)
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("model-loop:retry:only-before-delivery")
@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_is_cut_is_an_error_and_not_repeated_once_shown(api: str) -> None:
    async with talk_to(api, {"text": "half", "drop": True}, {"text": "ok"}) as (talk, model):
        state = await talk.run()
        assert state.error is not None and json.loads(state.error.detail_json or "")["reason"] == "network"
        assert len(model.requests) == 1
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("model-loop:retry:only-before-delivery")
@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_is_cut_before_anything_was_shown_is_repeated(api: str) -> None:
    options = {"max_retries": 1}
    async with talk_to(api, {"drop": True}, {"text": "ok"}, connector_options=options) as (talk, _):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and len(notices(state, "retry")) == 1


@requirement("openai:cancel")
@pytest.mark.parametrize("api", APIS)
async def test_a_cancel_closes_the_connection_and_the_conversation_goes_on(api: str) -> None:
    async with talk_to(api, {"text": "half", "hang": True}, {"text": "ok"}) as (talk, model):
        turn = await talk.begin()
        await talk.until(turn, lambda state: "text_delta" in kinds(state.new_output_items))
        await talk.house.cancel_turn(talk.conversation_id, turn)
        assert (await talk.finish(turn)).status == TurnStatus.CANCELLED
        with anyio.fail_after(5):
            assert await model.requests[0].wait_ended() == "client_left"
        assert (await talk.run("go on")).status == TurnStatus.COMPLETED
    assert "half" in model.requests[1].body_text


@requirement("R-M1")
@pytest.mark.parametrize("api", APIS)
async def test_a_server_that_falls_silent_stalls_the_turn_and_is_left(api: str) -> None:
    script = ({"text": "half", "hang": True},)
    async with talk_to(api, *script, timeouts={"idle_ms": 200}) as (talk, model):
        state = await talk.run()
        assert state.error is not None and state.error.code == "turn_stalled"
        with anyio.fail_after(5):
            assert await model.requests[0].wait_ended() == "client_left"


@requirement("openai:history")
@pytest.mark.parametrize("api", APIS)
async def test_a_seeded_history_is_on_the_wire_with_its_pairs(api: str) -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
        {
            "role": "assistant",
            "tool_calls": [{"call_id": "x", "tool_name": "weather", "arguments_json": '{"city":"Oslo"}'}],
        },
        {"role": "user", "tool_results": [{"call_id": "x", "content": [{"type": "text", "text": "7"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Seven."}]},
    ]
    async with talk_to(api, {"text": "It was {{results.x}}."}, history=history) as (talk, _):
        assert final_text(await talk.run("And again?")) == "It was 7."


async def test_a_history_with_an_open_call_is_refused_at_begin() -> None:
    history = [{"role": "assistant", "tool_calls": [{"call_id": "x", "tool_name": "weather"}]}]
    with pytest.raises(InvalidArgument, match="'x'"):
        async with talk_to("chat", history=history):
            pass


@requirement("openai:key")
async def test_without_a_key_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConnectorUnavailable, match="export OPENAI_API_KEY="):
        await OpenAiConnector().get_capabilities(ConversationOptions(connector="openai"))


@requirement("openai:key")
def test_the_key_goes_to_the_server_it_is_for_and_to_no_other() -> None:
    environment = {"OPENAI_API_KEY": "sk-openai", "OTHER_KEY": "sk-other"}
    assert OpenAiConfig().target(environment).key == "sk-openai"
    assert OpenAiConfig(base_url="http://10.0.0.5:8000/v1").target(environment).key == "none"
    assert OpenAiConfig(base_url="http://10.0.0.5/v1", api_key_env="OTHER_KEY").target(environment).key == "sk-other"
    own = OpenAiConfig().target({**environment, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert (own.url, own.key, own.quirks) == ("http://127.0.0.1:1/v1", "sk-openai", "compatible")
    with pytest.raises(ConnectorUnavailable, match="export GONE="):
        OpenAiConfig(base_url="http://10.0.0.5/v1", api_key_env="GONE").target(environment)


async def test_messages_of_rounds_are_commentary_and_the_last_is_final() -> None:
    async with talk_to("chat", {"text": "I look.", "calls": [OSLO]}, {"text": "7"}) as (talk, _):
        state = await talk.run()
    assert [item.phase for item in state.new_output_items if isinstance(item, Message)] == ["commentary", "final"]
